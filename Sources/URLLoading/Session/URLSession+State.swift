import LarderSession
import LarderTransfer
import Synchronization

extension URLSession {
    /// What of a session changes.
    struct State {
        var delegate: (any URLSessionDelegate)?
        var label: String?
        /// The identifier of the last task that was made.
        var identifier = 0
        /// From their first `resume`, or their end if that comes first, until they have completed.
        var tasks = SmallTable<Int, URLSessionTask>()
        /// Made before it was invalidated, never resumed or ended, and still there.
        var unbegun = 0
        var isInvalidated = false
        /// Its tasks were cancelled: so is what one of them goes on as.
        var isCancelled = false
        /// The last message is under way.
        var isEnding = false
    }

    /// The state under its lock.
    ///
    /// An object of its own, so that the timer of the session's deadlines can hold it: a weak reference
    /// to the session itself would give that a side table, by way of which it would then be retained
    /// and released for ever, some ten times a request.
    final class StateTable: Sendable {
        private let state: Mutex<State>

        init(_ delegate: (any URLSessionDelegate)?) {
            self.state = Mutex(State(delegate: delegate))
        }

        func withLock<R>(_ body: (inout State) -> sending R) -> R {
            self.state.withLock { body(&$0) }
        }

        /// Ends the session's tasks that take too long.
        func deadlines(
            of settings: URLSessionConfiguration, by timers: any Timers
        ) -> ResourceDeadlines {
            ResourceDeadlines(
                after: .bounded(seconds: settings.timeoutIntervalForResource), timers: timers
            ) { number in self.withLock { $0.tasks[number] }?.resourceTimeExpired() }
        }
    }

    /// Ends a session that was invalidated and has no task left, not even one that may still be
    /// resumed: tells the delegate, and lets it go.
    func endIfIdle() {
        let isMine = self.guarded.withLock { state in
            guard state.isInvalidated, state.tasks.isEmpty, !state.isEnding,
                state.unbegun == 0 || state.isCancelled
            else { return false }
            state.isEnding = true
            return true
        }
        guard isMine else { return }
        self.loaders.invalidate()
        guard self.delegate != nil else { return }
        self.dispatcher.session.send { [self] in
            self.delegate?.urlSession(self, didBecomeInvalidWithError: nil)
            // Taken out of the lock before it is released: its end is the program's code.
            let last = self.guarded.withLock { $0.delegate.take() }
            withExtendedLifetime(last) {}
        }
    }
}
