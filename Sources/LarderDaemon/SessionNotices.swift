import LarderHTTP

/// What bounds how often the log says the same of a session.
struct SessionNotices {
    var damage = DamageNotices()
    var cookies = KeepingNotices()
}

/// Which principals' troubles with keeping cookies the log tells, and which are counted only.
///
/// All principals of a session share one file: what keeps one from being written mostly keeps all of
/// them, be they thousands. Not always: where it is full, small changes may still fit. So troubles may
/// begin and end time and again; each of the two is said once a span at most. A value: the time is given.
struct KeepingNotices {
    enum Verdict: Equatable {
        /// Is said, with how many troubles were counted only since that was said last.
        case say(untold: UInt64)
        case count
    }

    /// What was said is not said again within this; what lasts, or comes back, is said again after it.
    static let span = Duration.seconds(3_600)

    /// Whether the last word of the log is that cookies are not kept.
    private var isTold = false
    private var beginSaid: Timestamp?
    private var endSaid: Timestamp?
    private var untold: UInt64 = 0
    /// Since the end was said.
    private var all: UInt64 = 0

    /// Those of one more principal are not being kept.
    mutating func began(at now: Timestamp) -> Verdict {
        self.all &+= 1
        guard Self.maySay(after: self.beginSaid, at: now) else {
            self.untold &+= 1
            return .count
        }
        defer { self.untold = 0 }
        self.isTold = true
        self.beginSaid = now
        return .say(untold: self.untold)
    }

    /// Those of one are kept again, and as far as anybody knows it with it all.
    ///
    /// The others may never say so themselves, as a principal that is out of memory says nothing more.
    /// Where they still are not kept, the next trouble after the span is said with all that were counted.
    ///
    /// - Returns: of how many they were not, where that is said.
    mutating func ended(at now: Timestamp) -> UInt64? {
        guard self.isTold, Self.maySay(after: self.endSaid, at: now) else { return nil }
        defer { self.all = 0 }
        self.isTold = false
        self.endSaid = now
        return self.all
    }

    private static func maySay(after said: Timestamp?, at now: Timestamp) -> Bool {
        guard let said, now >= said else { return true }
        return now - said >= Self.span
    }
}
