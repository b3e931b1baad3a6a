import LarderHTTP

/// What bounds how often the log says the same of a session.
struct SessionNotices {
    var damage = DamageNotices()
    var cookies = KeepingNotices()
}

/// Which principals' troubles with keeping cookies the log tells, and which are counted only.
///
/// All principals of a session share one file: what keeps one from being written keeps all of them, be
/// they thousands. A value: the time is given.
struct KeepingNotices {
    enum Verdict: Equatable {
        /// Is said, with how many principals had it since it was said last.
        case say(untold: UInt64)
        case count
    }

    /// One hour, in microseconds: a trouble that lasts is said again.
    static let span: Int64 = 3_600_000_000

    /// Principals whose cookies are not being kept.
    private var troubled: UInt64 = 0
    private var said: Timestamp?
    private var untold: UInt64 = 0
    /// Since the trouble began.
    private var all: UInt64 = 0

    /// Those of one more principal are not being kept.
    mutating func began(at now: Timestamp) -> Verdict {
        if self.troubled == 0 { (self.said, self.untold, self.all) = (nil, 0, 0) }
        self.troubled &+= 1
        self.all &+= 1
        if let said = self.said, now >= said,
            now.microseconds.subtractingReportingOverflow(said.microseconds).partialValue
                < Self.span
        {
            self.untold &+= 1
            return .count
        }
        defer { self.untold = 0 }
        self.said = now
        return .say(untold: self.untold)
    }

    /// Those of one are kept again.
    ///
    /// - Returns: of how many they were not, where it was the last; nil otherwise.
    mutating func ended() -> UInt64? {
        guard self.troubled > 0 else { return nil }
        self.troubled -= 1
        return self.troubled == 0 ? self.all : nil
    }
}
