import NIOCore

/// How many connections found all places taken, and whether that is to be said.
///
/// ```
/// open ── one has to wait ──▶ full ── an eighth of the places is free ──▶ open
/// ```
///
/// Said once each time that it gets full, and that it is over; once an hour at most.
struct Crowding {
    enum News: Equatable {
        /// - Parameter count: how many had to wait so far.
        case full(count: UInt64)
        case over(count: UInt64)
    }

    private(set) var count: UInt64 = 0
    private var isFull = false
    /// The end of it is news where its beginning was.
    private var isSaid = false
    private var saidAt: NIODeadline?

    static let silence = TimeAmount.hours(1)

    /// A connection has to wait for a place.
    mutating func waited(at now: NIODeadline) -> News? {
        self.count &+= 1
        guard !self.isFull else { return nil }
        self.isFull = true
        if let said = self.saidAt, now < said + Self.silence { return nil }
        self.saidAt = now
        self.isSaid = true
        return .full(count: self.count)
    }

    /// A connection has closed, and so many are left.
    mutating func left(_ open: Int, of maximum: Int) -> News? {
        // One place that is free is taken by the next who waits.
        guard self.isFull, open <= maximum - max(1, maximum / 8) else { return nil }
        self.isFull = false
        guard self.isSaid else { return nil }
        self.isSaid = false
        return .over(count: self.count)
    }
}
