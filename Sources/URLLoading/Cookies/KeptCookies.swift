import Foundation
import LarderHTTP
import LarderSession
import LarderState
import Synchronization

/// What outlives the process of a storage's cookies: sees to it that the jar has what others have
/// kept.
final class KeptCookies: Sendable {
    /// How often sessions look whether another process has changed something.
    private static let interval = Duration.milliseconds(100)
    /// A state that cannot be read is not tried again sooner.
    private static let patience = Duration.seconds(5)

    private struct Times {
        var looked: Timestamp?
        var failed: Timestamp?
        var isReading = false
    }

    private let state: SharedState
    private let cookies: SessionCookies
    private let times = Mutex(Times())

    init(_ state: SharedState, of cookies: SessionCookies) {
        self.state = state
        self.cookies = cookies
    }

    /// Makes the directory of what is kept; a failure shows when something is to be written.
    func prepare() {
        try? self.state.prepare()
    }

    /// Reads what is kept, if it was not read yet or another process has changed it; waits for the disk.
    func refresh() {
        guard self.state.isStale else { return }
        let now = CookieMoment.now
        guard self.mayTry(at: now) else { return }
        do throws(StateError) {
            try self.state.readCookies { _ = self.cookies.reread($0, at: now) }
        } catch {
            // The jar goes on in memory.
            DiskNotices.unread(error, in: self.state.configuration.directory)
            self.times.withLock { $0.failed = now }
        }
    }

    private func mayTry(at now: Timestamp) -> Bool {
        self.times.withLock { times in
            guard let failed = times.failed else { return true }
            return now < failed || now - failed >= Self.patience
        }
    }

    /// Reads what is kept for a request that is about to be sent: does not wait, and looks now and
    /// then.
    func refreshSoon(at now: Timestamp) {
        let looks = self.times.withLock { times in
            if let looked = times.looked, now >= looked, now - looked < Self.interval {
                return false
            }
            times.looked = now
            return !times.isReading
        }
        guard looks, self.state.isStale, self.mayTry(at: now) else { return }
        self.times.withLock { $0.isReading = true }
        self.state.readCookiesLater { [self] kept in
            if let kept {
                self.cookies.reread(kept, at: CookieMoment.now)
            }
            self.times.withLock { times in
                times.isReading = false
                if kept == nil { times.failed = now }
            }
        }
    }
}

/// A session's view of cookies that are kept.
final class KeptCookieView: HopCookies {
    private let view: CookieView
    private let kept: KeptCookies

    init(_ view: CookieView, _ kept: KeptCookies) {
        self.view = view
        self.kept = kept
    }

    func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp) {
        self.kept.refreshSoon(at: now)
        self.view.addCookies(to: &fields, for: hop, at: now)
    }

    func showCookies(in fields: inout Fields, for hop: Hop, at now: Timestamp) {
        self.view.showCookies(in: &fields, for: hop, at: now)
    }

    var showsSetCookie: Bool { self.view.showsSetCookie }

    func takeCookies(from head: inout ResponseHead, for hop: Hop, at now: Timestamp) {
        self.view.takeCookies(from: &head, for: hop, at: now)
    }

    func whenKept(_ body: @escaping @Sendable () -> Void) -> Bool { false }
}
