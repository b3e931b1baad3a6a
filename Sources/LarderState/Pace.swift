import Dispatch
import LarderCookies
import Synchronization

/// Keeps batches apart: each opens the file anew, and responses can bring cookies faster than that.
final class Pace: Sendable {
    private static let interval = Duration.milliseconds(50)

    private let next = Mutex<ContinuousClock.Instant?>(nil)

    /// A delay in whole microseconds.
    static func microseconds(of delay: Duration) -> Int {
        let (seconds, attoseconds) = delay.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return overflow || carry ? .max : Int(clamping: sum)
    }

    /// Returns when the next batch may begin: at once, unless one has begun just now.
    func wait() async {
        let now = ContinuousClock.now
        let delay = self.next.withLock { next in
            let moment = max(next ?? now, now)
            next = moment + Self.interval
            return moment - now
        }
        guard delay > .zero else { return }
        let microseconds = Self.microseconds(of: delay)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) {
                continuation.resume()
            }
        }
    }
}

/// Cookies in a state that others use, too: batches come at intervals, and those who bring them
/// gather what comes meanwhile.
struct PacedCookies<Cookies: CookieStorage>: CookieStorage {
    let cookies: Cookies
    let pace: Pace

    func load() async throws(CookieStorageError) -> [Cookie] {
        try await self.cookies.load()
    }

    func apply(_ changes: [CookieChange]) async throws(CookieStorageError) {
        await self.pace.wait()
        try await self.cookies.apply(changes)
    }
}
