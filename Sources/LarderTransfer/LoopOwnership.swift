/// Who has the loops of a thread in hand: the thread itself, nobody while it sleeps, or a *guest*, a
/// thread that begins a fetch by itself while nobody has them.
///
/// ```
///        parks                  enters
/// thread ─────▶ nobody (sleeps) ─────▶ guest ─(leaves, nothing is left to do)─▶ nobody
///    ▲            │ a command             │ leaves something to do
///    └────────────┴───────────────────────┘
/// ```
///
/// A value; `TransferMailbox` keeps it under its lock. What one owner did to the loops happens before
/// what the next one does, as both went through that lock. Nobody holds it while at work.
struct LoopOwnership: Equatable {
    private enum Owner: Equatable {
        case thread, nobody
        /// - Parameter threadWaits: the thread has woken up meanwhile, and waits to be let in.
        case guest(threadWaits: Bool)
    }

    /// What becomes of the thread when a guest leaves.
    enum Leaving: Equatable {
        case sleepsOn
        /// Its eventfd is to be written to.
        case wakes
        /// It is awake, and waits at the door.
        case letIn
    }

    private var owner = Owner.thread
    /// Until when the thread sleeps; nil: until it is woken.
    private var alarm: MonotonicTime?

    /// The thread is about to sleep.
    mutating func park(until alarm: MonotonicTime?) {
        self.owner = .nobody
        self.alarm = alarm
    }

    /// There is a command for the thread; whether it must be woken.
    mutating func posted() -> Bool {
        guard self.owner == .nobody else { return false }
        self.owner = .thread
        return true
    }

    /// The thread has woken up; false where it must wait for a guest to leave.
    mutating func wake() -> Bool {
        guard case .guest = self.owner else {
            self.owner = .thread
            return true
        }
        self.owner = .guest(threadWaits: true)
        return false
    }

    /// A guest wants to come in; false where somebody else is there.
    mutating func enter() -> Bool {
        guard self.owner == .nobody else { return false }
        self.owner = .guest(threadWaits: false)
        return true
    }

    /// The guest leaves.
    ///
    /// - Parameters:
    ///   - leavesWork: there is something that only the thread does.
    ///   - next: when the loops want to be looked at.
    mutating func leave(leavesWork: Bool, next: MonotonicTime?) -> Leaving {
        guard case .guest(let threadWaits) = self.owner else { return .sleepsOn }
        let isEarlier =
            switch (next, self.alarm) {
            case (nil, _): false
            case (.some, nil): true
            case (let next?, let alarm?): next < alarm
            }
        guard threadWaits || leavesWork || isEarlier else {
            self.owner = .nobody
            return .sleepsOn
        }
        self.owner = .thread
        return threadWaits ? .letIn : .wakes
    }
}
