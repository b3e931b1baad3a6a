import LarderHTTP

/// Which of the damaged entries of a session its log names, and which are counted only.
///
/// Each matters to whoever looks for the cause; but a disk that dies has every entry damaged, and a
/// log that names them all fills the next one. A value: the time is given.
struct DamageNotices {
    enum Verdict: Equatable {
        /// Is said, with how many were counted only since the last one that was said.
        case say(untold: UInt64)
        /// Is said, and that the next ones will not be.
        case sayAsLast
        case count
    }

    /// How many are said in `span`.
    static let bound = 20
    /// It begins with the first one that is said.
    static let span = Duration.seconds(3_600)

    private var begin: Timestamp?
    private var said = 0
    private var untold: UInt64 = 0

    /// What to do with one that was found at this time; where the clock was set back, a span begins.
    mutating func verdict(at now: Timestamp) -> Verdict {
        if let begin = self.begin, now >= begin, now - begin < Self.span {
            guard self.said < Self.bound else {
                self.untold &+= 1
                return .count
            }
            self.said += 1
            return self.said == Self.bound ? .sayAsLast : .say(untold: 0)
        }
        defer { self.untold = 0 }
        self.begin = now
        self.said = 1
        return .say(untold: self.untold)
    }
}
