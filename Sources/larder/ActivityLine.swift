import Glibc

/// A line on the terminal that tells how far a long work is, written over and over; nothing where
/// standard error is no terminal.
struct ActivityLine {
    private let isShown: Bool
    private var last: Int64 = 0
    private var isThere = false

    /// Microseconds between two writings.
    private static let interval: Int64 = 200_000

    /// - Parameter isWanted: nothing is shown where standard output tells it all to a program.
    init(isWanted: Bool = true) {
        self.isShown = isWanted && isatty(STDERR_FILENO) == 1
    }

    /// Shows `text` where the last one is old enough.
    mutating func show(at now: Int64, _ text: () -> String) {
        guard self.isShown, now &- self.last >= Self.interval else { return }
        self.last = now
        self.isThere = true
        Self.write("\r\u{1B}[K" + text())
    }

    /// Takes the line away, so that others may follow.
    mutating func clear() {
        if self.isThere { Self.write("\r\u{1B}[K") }
        self.isThere = false
    }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        // It is a nicety: what cannot be shown is not missed.
        _ = unsafe Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }
}
