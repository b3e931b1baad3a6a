import NIOCore

/// When a tunnel has carried nothing for too long, as a value.
///
/// Bytes that come show by themselves that a tunnel is in use; that a socket takes what waits for it
/// shows only when one looks. So the tunnel's timer looks, each time it fires: the end of a tunnel
/// whose last bytes are stuck comes up to its limit later than it might, and never earlier.
struct TunnelIdleness {
    private let limit: TimeAmount
    private var lastActivity: NIODeadline
    /// What both sides had been given, when last looked.
    private var given: Int64 = 0

    /// - Parameter limit: how long a tunnel may carry nothing.
    init(limit: TimeAmount, now: NIODeadline) {
        self.limit = limit
        self.lastActivity = now
    }

    /// When it will count as idle, as far as is known.
    var deadline: NIODeadline { self.lastActivity + self.limit }

    mutating func noteActivity(at now: NIODeadline) { self.lastActivity = now }

    /// Whether it is idle.
    ///
    /// - Parameters:
    ///   - carried: all that has come.
    ///   - waiting: what of that has not been taken yet.
    mutating func isOver(at now: NIODeadline, carried: UInt64, waiting: Int) -> Bool {
        let given = Int64(truncatingIfNeeded: carried) &- Int64(waiting)
        // Where nothing waits any more, it was the last that came that was taken, or soon after it.
        if waiting > 0, given > self.given { self.lastActivity = now }
        self.given = given
        return self.deadline <= now
    }
}
