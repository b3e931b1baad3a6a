/// What is seen to where nobody asks for it, and when: a value.
///
/// *The meta page of the last commit* comes to the disk with the next one; where none follows, power
/// that fails even hours later would undo it. So it is brought there once nothing was committed for a
/// while: under load no commit is waited for twice.
///
/// *Readers whose process died* keep what was freed since from being used again, and the file grows
/// instead. So they are looked for where it has grown. lmdb.h: "Stale reader transactions left behind
/// by an aborted program cause further writes to grow the database quickly".
struct IdleUpkeep: Sendable, Equatable {
    /// After so long without a commit the last one is brought to the disk.
    static let calm = Duration.seconds(1)
    /// Dead readers are looked for no more often.
    static let lookSpacing = Duration.seconds(5)

    private var syncDue: ContinuousClock.Instant?
    /// nil: that of the file as it was opened, when they were looked for, is still to be told.
    private var lastPage: UInt64?
    private var hasGrown = false
    private var lastLook: ContinuousClock.Instant?
    private var lookDue: ContinuousClock.Instant?

    /// When something is to be done though nobody calls; nil where nothing is.
    var due: ContinuousClock.Instant? { [self.syncDue, self.lookDue].compactMap { $0 }.min() }

    /// Something was committed, after which the file has pages up to this one.
    mutating func committed(_ lastPage: UInt64?) {
        self.syncDue = nil
        guard let lastPage else { return }
        if let before = self.lastPage, lastPage > before { self.hasGrown = true }
        self.lastPage = lastPage
    }

    /// Whether dead readers are to be looked for now; which counts as done.
    mutating func looksForReaders(at now: ContinuousClock.Instant) -> Bool {
        guard self.hasGrown else { return false }
        if let last = self.lastLook, now - last < Self.lookSpacing {
            self.lookDue = last + Self.lookSpacing
            return false
        }
        self.hasGrown = false
        self.lastLook = now
        self.lookDue = nil
        return true
    }

    /// Nothing else is to be done: whether the last commit is to be brought to the disk now.
    mutating func synchronizes(isOnDisk: Bool, at now: ContinuousClock.Instant) -> Bool {
        guard !isOnDisk else {
            self.syncDue = nil
            return false
        }
        let due = self.syncDue ?? now + Self.calm
        self.syncDue = due
        return due <= now
    }

    /// It could not be brought there: it is tried again after a pause.
    mutating func synchronizingFailed(until moment: ContinuousClock.Instant) {
        self.syncDue = moment
    }

    /// There is no file, or another one.
    mutating func forget() { self = IdleUpkeep() }
}
