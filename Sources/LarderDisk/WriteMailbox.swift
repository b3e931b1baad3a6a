import LarderLMDB
import Synchronization

/// Commands on their way to the writer, in order, bounded in bytes.
final class WriteMailbox: Sendable {
    enum Posting: Sendable { case accepted, full, closed }

    /// What the writer finds when it looks.
    struct Look: Sendable {
        var hasCommands: Bool
        /// Somebody waits for what the commands bring about, or they are many.
        var isUrgent: Bool
        var isClosed: Bool
        /// When noted uses are to be written, where there are any.
        var usesDue: ContinuousClock.Instant?
        /// When a wait ends for a reason that the writer has.
        var alarm: ContinuousClock.Instant?
    }

    private struct State {
        var commands: [WriteCommand?] = []
        /// Commands before this index are taken.
        var first = 0
        /// Bytes that were posted and not yet released.
        var outstanding = 0
        /// What the commands that are not taken bring the next commit nearer by.
        var haste = 0
        /// Somebody waits for the commands that are not taken.
        var isHurried = false
        var writerWaits = false
        /// The writer lets commands gather, and is not to be woken by one that is not urgent.
        var isGathering = false
        /// The writer is to look again, also if it was awake when it was told.
        var isNudged = false
        var isClosed = false
        var usesDue: ContinuousClock.Instant?
        var alarm: ContinuousClock.Instant?
    }

    /// Places of taken commands that are kept, where they are not half of all.
    private static let mostTaken = 1024

    private let state = Mutex(State())
    private let doorbell: Doorbell
    private let limit: Int
    private let urgentHaste: Int

    /// - Parameters:
    ///   - limit: the bytes that may be outstanding.
    ///   - urgentHaste: the sum of the commands' haste at which they are urgent.
    init(limit: Int, urgentHaste: Int) throws(LMDBError) {
        self.doorbell = try Doorbell()
        self.limit = limit
        self.urgentHaste = urgentHaste
    }

    /// Hands a command to the writer; what may not be refused is taken, however much there is.
    @discardableResult
    func post(_ command: WriteCommand) -> Posting {
        let bytes = command.bytes
        let (posting, rings) = self.state.withLock { state -> (Posting, Bool) in
            if state.isClosed { return (.closed, false) }
            if command.mayBeRefused, state.outstanding > self.limit - bytes {
                return (.full, false)
            }
            state.outstanding += bytes
            state.haste += command.haste(of: self.urgentHaste)
            state.commands.append(command)
            if state.isGathering, !self.isUrgent(state) { return (.accepted, false) }
            return (.accepted, Self.wakes(&state))
        }
        if rings { self.doorbell.ring() }
        return posting
    }

    /// Has what was posted done without waiting for more.
    func hurry() {
        let rings = self.state.withLock { state in
            guard state.first < state.commands.count else { return false }
            state.isHurried = true
            return Self.wakes(&state)
        }
        if rings { self.doorbell.ring() }
    }

    /// Lets the writer look again, for a reason that it finds elsewhere.
    func nudge() {
        let rings = self.state.withLock { state in
            state.isNudged = true
            return Self.wakes(&state)
        }
        if rings { self.doorbell.ring() }
    }

    /// Says by when uses are to be written, unless an earlier moment was said before.
    func usesAreDue(at moment: ContinuousClock.Instant) {
        let rings = self.state.withLock { state in
            if state.isClosed { return false }
            if let due = state.usesDue, due <= moment { return false }
            state.usesDue = moment
            return state.isGathering ? false : Self.wakes(&state)
        }
        if rings { self.doorbell.ring() }
    }

    /// Accepts nothing more, and lets be done what was posted; false when it was closed before.
    func close() -> Bool {
        let (isFirst, rings) = self.state.withLock { state in
            let isFirst = !state.isClosed
            state.isClosed = true
            return (isFirst, Self.wakes(&state))
        }
        if rings { self.doorbell.ring() }
        return isFirst
    }

    private static func wakes(_ state: inout State) -> Bool {
        let wakes = state.writerWaits
        state.writerWaits = false
        return wakes
    }

    // MARK: The writer's side

    /// Ends a wait at `moment`, for a reason that the writer has; nil: at none.
    func wake(at moment: ContinuousClock.Instant?) {
        self.state.withLock { $0.alarm = moment }
    }

    func look() -> Look {
        self.state.withLock { self.look($0) }
    }

    /// Waits until there is something to do, or the time for uses or of the alarm has come.
    func wait() {
        let (end, waits) = self.state.withLock { state in
            let look = self.look(state)
            state.writerWaits = !look.hasCommands && !look.isClosed && !state.isNudged
            state.isNudged = false
            return ([look.usesDue, state.alarm].compactMap { $0 }.min(), state.writerWaits)
        }
        guard waits else { return }
        if let end {
            let limit = end - ContinuousClock.now
            if limit > .zero { self.doorbell.wait(limit: limit) }
        } else {
            self.doorbell.wait()
        }
        self.state.withLock { $0.writerWaits = false }
    }

    /// Waits until what is there is urgent, or until `moment`, so that more commands share a commit.
    func gather(until moment: ContinuousClock.Instant) {
        let waits = self.state.withLock { state in
            state.writerWaits = !self.isUrgent(state) && !state.isClosed && !state.isNudged
            state.isGathering = state.writerWaits
            state.isNudged = false
            return state.writerWaits
        }
        guard waits else { return }
        let limit = moment - ContinuousClock.now
        if limit > .zero { self.doorbell.wait(limit: limit) }
        self.state.withLock { state in
            state.writerWaits = false
            state.isGathering = false
        }
    }

    func take() -> WriteCommand? {
        self.state.withLock { state in
            guard state.first < state.commands.count else { return nil }
            let command = state.commands[state.first]
            state.commands[state.first] = nil
            state.first += 1
            if let command { state.haste -= command.haste(of: self.urgentHaste) }
            if state.first == state.commands.count {
                state.isHurried = false
                state.commands.removeAll(keepingCapacity: state.commands.count < 4096)
                state.first = 0
            } else if state.first > Self.mostTaken, state.first * 2 > state.commands.count {
                // Under load it may never be empty. What is moved is less than what was taken.
                state.commands.removeFirst(state.first)
                state.first = 0
            }
            return command
        }
    }

    /// Places for commands that it has now, those of taken ones among them.
    var places: Int { self.state.withLock { $0.commands.count } }

    /// Whether the writer waits to be called, or for a moment.
    var isWriterWaiting: Bool { self.state.withLock { $0.writerWaits } }

    /// Gives back the room of commands that are done.
    func release(_ bytes: Int) {
        self.state.withLock { $0.outstanding -= bytes }
    }

    func usesTaken() {
        self.state.withLock { $0.usesDue = nil }
    }

    private func look(_ state: State) -> Look {
        Look(
            hasCommands: state.first < state.commands.count, isUrgent: self.isUrgent(state),
            isClosed: state.isClosed, usesDue: state.usesDue, alarm: state.alarm)
    }

    private func isUrgent(_ state: State) -> Bool {
        // Before the bound of what may be outstanding turns somebody away.
        state.isHurried || state.haste >= self.urgentHaste || state.outstanding > self.limit / 2
    }
}
