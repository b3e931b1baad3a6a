import LarderHTTP
import Synchronization

/// The `Date` line for responses that came without one, made anew once a second.
final class DateLines: Sendable {
    private struct Made {
        var second = Int64.min
        var line = Fields()
    }

    private let made = Mutex(Made())

    /// - Parameter now: when the response came.
    func line(at now: Timestamp) -> Fields {
        self.made.withLock { made in
            if made.second != now.seconds {
                var line = Fields()
                line.append("Date", HTTPDate.bytes(now))
                made = Made(second: now.seconds, line: line)
            }
            return made.line
        }
    }
}
