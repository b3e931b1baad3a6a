import LarderHTTP
import LarderSession
import Synchronization

/// A clock that stands still until the test moves it.
final class StandingClock: WallClock {
    private let time = Mutex(Timestamp(seconds: 1_800_000_000))

    func now() -> Timestamp { self.time.withLock { $0 } }

    func advance(_ duration: Duration) {
        self.time.withLock { $0 = $0 + duration }
    }
}

/// Timers that fire when the test says so.
final class ManualTimers: Timers {
    final class Token: TimerToken {
        private let work: Mutex<(@Sendable () -> Void)?>

        init(_ work: @escaping @Sendable () -> Void) {
            self.work = Mutex(work)
        }

        func cancel() {
            self.work.withLock { $0 = nil }
        }

        func fire() {
            let work = self.work.withLock { work in
                defer { work = nil }
                return work
            }
            work?()
        }
    }

    private let tokens = Mutex<[Token]>([])

    /// How many were scheduled since the last ones fired.
    var count: Int { self.tokens.withLock { $0.count } }

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken {
        let token = Token(work)
        self.tokens.withLock { $0.append(token) }
        return token
    }

    /// Fires all that were scheduled and not cancelled.
    func fireAll() {
        let due = self.tokens.withLock { tokens in
            defer { tokens = [] }
            return tokens
        }
        for token in due { token.fire() }
    }
}
