import Foundation
import LarderCredentials
import LarderEngine
import LarderHTTP
import LarderSession
import LarderState
import Synchronization

/// What outlives the process of a storage's credentials: sees to it that the storage has what other
/// processes have kept.
final class KeptCredentials: Sendable {
    /// A state that cannot be read is not tried again sooner.
    private static let patience = Duration.seconds(5)
    /// Somebody who changes the storage all the time is not waited for.
    private static let attempts = 4

    private let state: SharedState
    private let credentials: SessionCredentials
    private let failed = Mutex<Timestamp?>(nil)
    private let isBeginning = Atomic(false)

    init(_ state: SharedState, of credentials: SessionCredentials) {
        self.state = state
        self.credentials = credentials
        LastWork.add { await credentials.save() }
    }

    /// Reads what is kept, if it was not read yet or another process has changed it; waits for the
    /// disk.
    func refresh() {
        guard self.state.isStale else { return }
        let now = SystemClock().now()
        let mayTry = self.failed.withLock { failed in
            guard let moment = failed else { return true }
            return now < moment || now - moment >= Self.patience
        }
        guard mayTry else { return }
        do throws(StateError) {
            for _ in 0..<Self.attempts {
                let count = self.credentials.changeCount
                let kept = try self.state.readCredentials()
                if self.credentials.reread(kept, unchangedSince: count) { return }
            }
        } catch {
            // The storage goes on in memory.
            DiskNotices.unread(error, in: self.state.configuration.directory)
            self.failed.withLock { $0 = now }
        }
    }

    /// Reads what is kept for the first time, elsewhere: a request is on its way that may be
    /// challenged.
    func beginSoon() {
        guard !self.isBeginning.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Self.queue.async { self.refresh() }
    }

    private static let queue = DispatchQueue(label: "url-loading.credentials.reading")
}
