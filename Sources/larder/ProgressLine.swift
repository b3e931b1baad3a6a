import Glibc

/// A line on a terminal that says how far something has come: shown when it takes long, and taken
/// away before anything else is written.
///
/// Where a work has several threads, or words of its own and no count, ``ActivityLine`` serves.
///
/// A value: time comes in, what is to be written to the terminal comes out. Nothing is written
/// between two updates; no thread and no timer is needed.
struct ProgressLine {
    /// What is being done: `reading`.
    var verb: String
    private let began: ContinuousClock.Instant
    private var shown: ContinuousClock.Instant?

    /// What is done sooner than this needs no line.
    static let patience = Duration.seconds(1)
    private static let interval = Duration.milliseconds(100)
    private static let barWidth: UInt64 = 20
    /// To the beginning of the line, and the rest of it cleared (ECMA-48 EL).
    static let erasure = "\r\u{1B}[K"

    init(_ verb: String, at now: ContinuousClock.Instant) {
        self.verb = verb
        self.began = now
    }

    var isShown: Bool { self.shown != nil }

    /// - Parameters:
    ///   - total: 0 where it is not known.
    ///   - width: of the terminal.
    mutating func update(
        _ done: UInt64, of total: UInt64, width: Int, at now: ContinuousClock.Instant
    ) -> String? {
        guard now - self.began >= Self.patience,
            self.shown.map({ now - $0 >= Self.interval }) ?? true
        else { return nil }
        self.shown = now
        return Self.erasure + Self.text(self.verb, done, of: total).prefix(max(0, width - 1))
    }

    /// What takes the line away; nil where there is none.
    mutating func hide() -> String? {
        guard self.shown != nil else { return nil }
        self.shown = nil
        return Self.erasure
    }

    private static func text(_ verb: String, _ done: UInt64, of total: UInt64) -> String {
        guard total > 0 else { return "\(verb) \(Human.count(done))" }
        // The total was taken at the beginning: more may have come.
        let done = min(done, total)
        let filled = Int(Double(done) / Double(total) * Double(Self.barWidth))
        let bar =
            String(repeating: "#", count: filled)
            + String(repeating: ".", count: max(0, Int(Self.barWidth) - filled))
        let percent = Int(Double(done) / Double(total) * 100)
        return "\(verb) [\(bar)] \(percent)%  \(Human.count(done)) of \(Human.count(total))"
    }
}
