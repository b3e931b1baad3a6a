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
///                        ▲                    └─▶ failed (tried again after a while)
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
        case closed
    }

    struct State {
        var phase: Phase
        var capacity: ByteCount
        /// Had the same directory before, and may not have closed its file yet.
        var predecessor: DiskTier?
        /// What is to be done when it is known whether there is a disk.
        var waiting: [@Sendable (DiskStore?) -> Void] = []
        /// Counts the files that there were.
        var generation: UInt64 = 0
        /// The directory of the last one.
        var place: String?
        var isFileClosed = false
        var closers: [@Sendable () -> Void] = []
    }

    let directory: String
    let clock: @Sendable () -> Timestamp
    let report: @Sendable (DiskEvent) -> Void
    let state: Mutex<State>
    /// Waits for the disk when files are opened, closed and taken away, one after the other.
    let queue = DispatchQueue(label: "larder.disk-tier")

    /// - Parameter directory: of the places; made with the first file.
    init(
        directory: String, capacity: ByteCount, after predecessor: DiskTier? = nil,
        clock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (DiskEvent) -> Void
    ) {
        self.directory = directory
        self.clock = clock
        self.report = report
        var phase = Phase.none
        if capacity > .zero {
            phase =
                predecessor != nil || DiskPlaces(directory: directory).hasAny
                ? .unopened : .vacant
        }
        self.state = Mutex(
            State(phase: phase, capacity: capacity, predecessor: predecessor))
    }

    // MARK: The file

    /// Does something with the file, now or when it is open; nil where there is none.
    ///
    /// - Parameter creating: make a file where there is none.
    func withDisk(creating: Bool = false, _ body: @escaping @Sendable (DiskStore?) -> Void) {
        let (opens, disk, waits) = self.state.withLock { state -> (Bool, DiskStore?, Bool) in
            switch state.phase {
            case .open(let disk): return (false, disk, false)
            case .none, .closed: return (false, nil, false)
            case .vacant where !creating: return (false, nil, false)
            case .failed(let until) where !creating || ContinuousClock.now < until:
                return (false, nil, false)
            case .vacant, .unopened, .failed:
                state.phase = .changing
                state.waiting.append(body)
                return (true, nil, true)
            case .changing:
                state.waiting.append(body)
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
        self.afterPredecessor(open)
    }

    private func afterPredecessor(_ body: @escaping @Sendable () -> Void) {
        guard let predecessor = self.state.withLock({ $0.predecessor.take() }) else {
            return body()
        }
        predecessor.whenClosed(body)
    }

    /// Makes the calls that have waited, and lets later ones through when none is left.
    func settle(_ phase: Phase) {
        var disk: DiskStore?
        if case .open(let opened) = phase { disk = opened }
        while true {
            let waiting = self.state.withLock { state in
                if state.waiting.isEmpty { state.phase = phase }
                defer { state.waiting = [] }
                return state.waiting
            }
            if waiting.isEmpty { return }
            for body in waiting { body(disk) }
        }
    }

    func close(_ completion: @escaping @Sendable () -> Void) {
        // Whoever waits for an opening goes first.
        self.withDisk { _ in
            self.queue.async { self.closeFile(completion) }
        }
    }

    private func closeFile(_ completion: @escaping @Sendable () -> Void) {
        let disk = self.state.withLock { state in
            defer { state.phase = .closed }
            if case .open(let disk) = state.phase { return DiskStore?.some(disk) }
            return nil
        }
        let ended = { @Sendable in
            let closers = self.state.withLock { state in
                state.isFileClosed = true
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

    /// Calls back once the file is closed, which somebody must have asked for.
    func whenClosed(_ completion: @escaping @Sendable () -> Void) {
        let isClosed = self.state.withLock { state in
            if !state.isFileClosed { state.closers.append(completion) }
            return state.isFileClosed
        }
        if isClosed { completion() }
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
