import Dispatch
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// The disk tier of a cache that a program may make small, large or none at any time: opened when it
/// is needed, closed without anybody waiting.
///
/// ```
/// none ◀─(capacity)─▶ vacant | unopened ─▶ opening ─▶ open ─▶ closed
///                        ▲                    └─▶ failed | crowded (tried again after a while)
/// ```
///
/// *Vacant*: nothing is on the disk, and the first response to be stored makes the file. Calls that
/// come while it is being opened are made afterwards, in their order.
///
/// **Several processes.** A cache file belongs to one process at a time. In the directory of a cache
/// lie places, `responses`, `responses-2` and so on, and a process takes the first that is free: so
/// each of several at a time has its own responses, bounded by its own capacity, and sees nothing of
/// what the others store or remove. The first of them to come, and whoever comes when it is gone, has
/// the first place with what was stored there. A process that finds all places taken goes on in
/// memory.
///
/// **Ids** are the file's with a number in front that is new for each file, so that what is known of
/// an old one names nothing in the next.
final class DiskTier: ObjectStore {
    enum Phase {
        /// There is to be no file.
        case none
        case vacant
        case unopened
        /// Being opened, closed or taken away: who comes waits.
        case changing
        case open(DiskStore)
        /// It could not be opened; not tried again before this moment.
        case failed(until: ContinuousClock.Instant)
        /// Other processes have all places, and what lies in them; not tried again before this moment.
        case crowded(until: ContinuousClock.Instant)
        case closed
    }

    /// Who waits until it is known whether there is a disk.
    struct Waiting {
        /// Wants a file made where there is none.
        let creating: Bool
        /// Is to take something out of it.
        let removing: Bool
        let body: @Sendable (DiskStore?) -> Void
    }

    struct State {
        var phase: Phase
        var capacity: ByteCount
        /// Keeps the directory's place among those in use, until the file is closed.
        var hold: DirectoryHold?
        /// Had the same directory before, and may not have closed its file yet.
        var predecessor: DiskTier?
        /// Tries to get it a hold that it lacks; nil: it has one, or needs none.
        var settling: (@Sendable () -> Void)?
        var waiting: [Waiting] = []
        /// Changes of the capacity that came meanwhile: made one after the other, each once what is
        /// under way is over.
        var resizes: [@Sendable () -> Void] = []
        /// Counts the files that there were.
        var generation: UInt64 = 0
        /// The directory of the last one.
        var place: String?
        /// What the last one has in common with those whose ids go on with its own.
        var lineage: UInt64?
        /// Something was removed while the file could not be opened, which may lie in it: the file goes
        /// before one is used.
        var owesRemoval = false
        /// That is written down beside the file.
        var hasNotedRemoval = false
        var isFileClosed = false
        var closers: [@Sendable () -> Void] = []
    }

    let directory: String
    let clock: @Sendable () -> Timestamp
    let report: @Sendable (DiskEvent) -> Void
    let state: Mutex<State>
    /// Bodies that are to be stored once the file is open.
    let waitingBytes = WaitingBytes()
    /// Waits for the disk when files are opened, closed and taken away, one after the other.
    let queue = DispatchQueue(label: "larder.disk-tier")

    /// - Parameters:
    ///   - directory: of the places; made with the first file. Empty: there is to be none.
    ///   - mayHaveFile: whether there may be a file in one of them; nil: to be looked for now.
    init(
        directory: String, capacity: ByteCount, hold: DirectoryHold? = nil,
        after predecessor: DiskTier? = nil, mayHaveFile: Bool? = nil,
        clock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (DiskEvent) -> Void
    ) {
        self.directory = directory
        self.clock = clock
        self.report = report
        var phase = Phase.none
        if capacity > .zero {
            phase =
                predecessor != nil || mayHaveFile ?? DiskPlaces(directory: directory).hasAny
                ? .unopened : .vacant
        }
        self.state = Mutex(
            State(phase: phase, capacity: capacity, hold: hold, predecessor: predecessor))
    }

    // MARK: The directory

    /// Whether it has its place among those in use.
    var isHeld: Bool { self.state.withLock { $0.hold != nil } }

    /// Has `settle` called before each opening until it has its place: its directory could not be used.
    ///
    /// - Parameter settle: calls `take` where it can be used by now; may wait for the disk.
    func settlesBeforeOpening(_ settle: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.settling = settle }
    }

    /// Takes its place, before there is any capacity or any file.
    ///
    /// - Parameter predecessor: had the directory before, and may not have closed its file yet.
    /// - Returns: false where it has one, or is closed.
    func take(_ hold: DirectoryHold, after predecessor: DiskTier?) -> Bool {
        self.state.withLock { state in
            guard state.hold == nil, !state.isFileClosed else { return false }
            state.hold = hold
            state.settling = nil
            if predecessor !== self { state.predecessor = predecessor }
            return true
        }
    }

    // MARK: The file

    /// Does something with the file, now or when it is open; nil where there is none.
    ///
    /// - Parameters:
    ///   - creating: make a file where there is none.
    ///   - removing: it takes something out of the file. Who gets none calls
    ///     ``answerRemoval(_:)``.
    func withDisk(
        creating: Bool = false, removing: Bool = false,
        _ body: @escaping @Sendable (DiskStore?) -> Void
    ) {
        let (opens, disk, waits) = self.state.withLock { state -> (Bool, DiskStore?, Bool) in
            switch state.phase {
            case .open(let disk): return (false, disk, false)
            case .none, .closed: return (false, nil, false)
            case .vacant where !creating: return (false, nil, false)
            case .failed(let until) where !creating || ContinuousClock.now < until:
                if removing { state.owesRemoval = true }
                return (false, nil, false)
            case .crowded(let until) where !creating || ContinuousClock.now < until:
                return (false, nil, false)
            case .vacant, .unopened, .failed, .crowded:
                state.phase = .changing
                state.waiting.append(
                    Waiting(creating: creating, removing: removing, body: body))
                return (true, nil, true)
            case .changing:
                state.waiting.append(
                    Waiting(creating: creating, removing: removing, body: body))
                return (false, nil, true)
            }
        }
        if opens { self.open(creating: creating) }
        if !waits { body(disk) }
    }

    /// The file where it is open.
    var disk: DiskStore? {
        self.state.withLock { state in
            if case .open(let disk) = state.phase { return disk }
            return nil
        }
    }

    private func open(creating: Bool) {
        let open = { @Sendable in
            self.queue.async { self.openPlace(creating: creating) }
        }
        guard let settle = self.state.withLock({ $0.settling }) else {
            return self.afterPredecessor(open)
        }
        self.queue.async {
            settle()
            self.afterPredecessor(open)
        }
    }

    private func afterPredecessor(_ body: @escaping @Sendable () -> Void) {
        guard let predecessor = self.state.withLock({ $0.predecessor.take() }) else {
            return body()
        }
        predecessor.whenClosed {
            if predecessor.takeDebt() { self.state.withLock { $0.owesRemoval = true } }
            body()
        }
    }

    /// Whether it owes something to who has the directory next, and it does so no more.
    private func takeDebt() -> Bool {
        self.state.withLock { state in
            defer {
                state.owesRemoval = false
                state.hold = nil
            }
            return state.owesRemoval
        }
    }

    /// Makes the calls that have waited, and lets later ones through when none is left.
    ///
    /// Where there is no file, those who want one made have it made first: they may have come when it
    /// was only being looked for.
    func settle(_ phase: Phase) {
        var disk: DiskStore?
        if case .open(let opened) = phase { disk = opened }
        var (isVacant, isFailed) = (false, false)
        if case .vacant = phase { isVacant = true }
        if case .failed = phase { isFailed = true }
        while true {
            let step: Settling = self.state.withLock { state in
                // In their order: who waits for what was stored comes behind the making of a file for it.
                let count = state.waiting.firstIndex { isVacant && $0.creating }
                let ready = Array(state.waiting.prefix(count ?? state.waiting.count))
                if isFailed, ready.contains(where: \.removing) { state.owesRemoval = true }
                state.waiting.removeFirst(ready.count)
                if !ready.isEmpty { return .call(ready) }
                if !state.waiting.isEmpty { return .create }
                state.phase = phase
                defer { state.resizes = [] }
                return .done(state.resizes)
            }
            switch step {
            case .call(let ready): for waiting in ready { waiting.body(disk) }
            case .create: return self.open(creating: true)
            case .done(let resizes): return resizes.forEach { $0() }
            }
        }
    }

    private enum Settling {
        case call([Waiting])
        case create
        case done([@Sendable () -> Void])
    }

    func close(_ completion: @escaping @Sendable () -> Void) {
        // Whoever waits for an opening goes first.
        self.withDisk { _ in
            self.queue.async { self.closeFile(completion) }
        }
    }

    private func closeFile(_ completion: @escaping @Sendable () -> Void) {
        let (disk, isChanging) = self.state.withLock { state -> (DiskStore?, Bool) in
            // A change of the capacity has come in between, and has the file.
            if case .changing = state.phase { return (nil, true) }
            defer { state.phase = .closed }
            if case .open(let disk) = state.phase { return (disk, false) }
            return (nil, false)
        }
        if isChanging { return self.close(completion) }
        let ended = { @Sendable in
            let closers = self.state.withLock { state in
                state.isFileClosed = true
                // What it owes belongs to the directory: that is to be known until somebody has it.
                if !state.owesRemoval { state.hold = nil }
                defer { state.closers = [] }
                return state.closers
            }
            for closer in closers { closer() }
            completion()
        }
        // Whoever comes next waits for this one alone.
        guard let disk else { return self.afterPredecessor(ended) }
        disk.close(ended)
    }

    /// Whether its file is closed for good.
    var isOver: Bool { self.state.withLock { $0.isFileClosed } }

    /// Whether nobody need know of it any more: it also owes nothing to who has the directory next.
    var isSettled: Bool { self.state.withLock { $0.isFileClosed && !$0.owesRemoval } }

    /// Calls back once the file is closed, which somebody must have asked for.
    func whenClosed(_ completion: @escaping @Sendable () -> Void) {
        let isClosed = self.state.withLock { state in
            if !state.isFileClosed { state.closers.append(completion) }
            return state.isFileClosed
        }
        if isClosed { completion() }
    }

    /// Calls back once the file is closed, for the end of the process: also once a file that is
    /// being closed is closed; opens none that is not being opened already.
    func finish(_ completion: @escaping @Sendable () -> Void) {
        enum Left { case nothing, notes, commands, closing }
        let left: Left = self.state.withLock { state in
            switch state.phase {
            case .open, .changing: .commands
            case .closed where !state.isFileClosed: .closing
            case .failed, .crowded: .notes
            case .none, .vacant, .unopened, .closed: .nothing
            }
        }
        switch left {
        case .nothing: completion()
        case .notes: self.queue.async { completion() }
        // Behind what is noted of removals that found no file.
        case .commands: self.flush { self.queue.async { self.whenClosing(completion) } }
        case .closing: self.whenClosed(completion)
        }
    }

    /// Calls back once the file is closed, where somebody has asked for that; else at once.
    private func whenClosing(_ completion: @escaping @Sendable () -> Void) {
        let isClosing = self.state.withLock { state in
            if case .closed = state.phase { return !state.isFileClosed }
            return false
        }
        if isClosing { self.whenClosed(completion) } else { completion() }
    }

    /// Calls back once all that was asked for before is committed, or has failed.
    func flush(_ completion: @escaping @Sendable () -> Void) {
        self.withDisk { disk in
            guard let disk else { return completion() }
            disk.flush(completion)
        }
    }

    // MARK: Ids

    private static let generationShift: UInt64 = 48

    var generation: UInt64 { self.state.withLock { $0.generation } }

    static func outer(_ id: ObjectID, _ generation: UInt64) -> ObjectID {
        ObjectID(rawValue: id.rawValue & 0xFFFF_FFFF_FFFF | generation << Self.generationShift)
    }

    /// The file's own id; nil where it is another file's.
    static func inner(_ id: ObjectID, _ generation: UInt64) -> ObjectID? {
        guard id.rawValue >> Self.generationShift == generation else { return nil }
        return ObjectID(rawValue: id.rawValue & 0xFFFF_FFFF_FFFF)
    }
}
