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

    /// A trouble that lasts is said again.
    static let span = Duration.seconds(3_600)

    /// Whether cookies are not being kept.
    private var isTroubled = false
    private var said: Timestamp?
    private var untold: UInt64 = 0
    /// Since the trouble began.
    private var all: UInt64 = 0

    /// Those of one more principal are not being kept.
    mutating func began(at now: Timestamp) -> Verdict {
        if !self.isTroubled { (self.said, self.untold, self.all) = (nil, 0, 0) }
        self.isTroubled = true
        self.all &+= 1
        if let said = self.said, now >= said, now - said < Self.span {
            self.untold &+= 1
            return .count
        }
        defer { self.untold = 0 }
        self.said = now
        return .say(untold: self.untold)
    }

    /// Those of one are kept again, and with it all: what kept one from being written is over.
    ///
    /// The others may never say so themselves, as a principal that is out of memory says nothing more.
    ///
    /// - Returns: of how many they were not, where that was not told yet.
    mutating func ended() -> UInt64? {
        guard self.isTroubled else { return nil }
        self.isTroubled = false
        return self.all
    }
}
