import Glibc
import Synchronization

/// A line on the terminal that tells how far a long work is, written over and over; nothing where
/// standard error is no terminal.
///
/// May be told from any thread, and writes by itself; of a work of its own words, as an archive that is
/// read by one thread and answered for by another. ``ProgressLine`` is the other kind: a value for one
/// loop that writes rows to the same terminal, so that it must be taken away before each of them, and
/// shows nothing of what is done at once.
final class ActivityLine: Sendable {
    private struct State {
        var last: Int64 = 0
        var isThere = false
    }

    private let isShown = isatty(STDERR_FILENO) == 1
    private let state = Mutex(State())

    /// Microseconds between two writings.
    private static let interval: Int64 = 200_000

    /// Shows `text` where the last one is old enough.
    func show(at now: Int64, _ text: () -> String) {
        guard self.isShown else { return }
        let isDue = self.state.withLock { state in
            guard now &- state.last >= Self.interval else { return false }
            state = State(last: now, isThere: true)
            return true
        }
        guard isDue else { return }
        Self.write("\r\u{1B}[K" + text())
    }

    /// Takes the line away, so that others may follow.
    func clear() {
        let wasThere = self.state.withLock { state in
            defer { state.isThere = false }
            return state.isThere
        }
        if wasThere { Self.write("\r\u{1B}[K") }
    }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        // It is a nicety: what cannot be shown is not missed.
        _ = unsafe Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }
}
