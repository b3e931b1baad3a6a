import Dispatch
package import LarderHTTP
package import LarderPolicy
package import LarderStore
package import NIOCore
import Synchronization

/// A disk store that could not be opened when its session began, and is once it can be.
///
/// ```
/// absent ─(something is to be stored, after the pause)─▶ opening ─▶ open ─▶ closed
///    ▲                                                      │
///    └──────────(longer pauses: see DiskHealth)─────────────┘
/// ```
///
/// *Absent* and *opening*: nothing is found here and nothing stored, so that memory alone answers; no
/// call waits for the disk but a removal that comes while the file is being opened. *Open*: every call
/// goes to the file, which minds its own troubles from then on.
///
/// **What lies in the file meanwhile** is older than what memory was given: of every key that was to be
/// stored, it goes before the file is used. What is removed may lie in it, too, and another process
/// might serve it. So the first removal is noted beside the file, as one is that the disk refuses to
/// write, and the file is taken away at the next opening. A disk that refuses even the note leaves
/// removals to the life of this process, which is said once.
package final class LateDisk: ObjectStore, AbsentTier {
    private enum Phase {
        case absent
        case opening
        case open(DiskStore)
        case closed
    }

    /// A call that came while the file was being opened.
    private struct Waiting {
        /// It takes something out of the file.
        let removes: Bool
        let body: @Sendable (DiskStore?) -> Void
    }

    private struct State {
        var phase = Phase.absent
        /// When it is tried again, and what is told of it.
        var health: DiskHealth
        var overtaken = OvertakenKeys()
        /// Something was removed that may lie in the file.
        var owesRemoval = false
        /// That is written down beside the file.
        var isNoted = false
        /// Why the last removal was not.
        var failure: StoreError?
        var waiting: [Waiting] = []
    }

    private let configuration: DiskConfiguration
    private let clock: @Sendable () -> Timestamp
    private let report: @Sendable (DiskEvent) -> Void
    /// Waits for the disk.
    private let queue = DispatchQueue(label: "larder.late-disk")
    private let state: Mutex<State>
    /// A file is not looked at any longer.
    private let isClosing = Atomic(false)

    /// - Parameters:
    ///   - failure: why it could not be opened; told already.
    ///   - clock: gives the time; called on any thread.
    ///   - report: hears what a person should know, when it is open at last among it; called on any
    ///     thread, must not block.
    package init(
        _ configuration: DiskConfiguration, after failure: StoreError,
        clock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (DiskEvent) -> Void
    ) {
        self.configuration = configuration
        self.clock = clock
        self.report = report
        var health = DiskHealth(firstPause: configuration.retryInterval)
        _ = health.failed(failure, at: clock())
        self.state = Mutex(State(health: health))
    }

    /// The file; nil where it is not open.
    package var disk: DiskStore? {
        self.state.withLock { state in
            if case .open(let disk) = state.phase { return disk }
            return nil
        }
    }

    /// For how long it is not tried now; zero where that is over, or it is open.
    var pause: Duration {
        let now = self.clock()
        return self.state.withLock { state in
            if case .absent = state.phase { return state.health.left(at: now) }
            return .zero
        }
    }

    // MARK: Opening

    /// Opens the file, on the queue.
    private func open() {
        do throws(StoreError) {
            if self.state.withLock({ $0.owesRemoval }) {
                // Whoever opens it takes what was noted for what was removed in another process.
                if let failure = self.noteRemoval() { throw failure }
            }
            let disk = try DiskStore.open(
                self.configuration, clock: self.clock,
                mayGoOn: { !self.isClosing.load(ordering: .relaxed) }, report: self.report)
            self.opened(disk)
        } catch {
            self.failed(error)
        }
    }

    private enum Step {
        /// Older responses than memory was given are to go first.
        case forget(OvertakenKeys)
        case call([Waiting])
        case tell
        case end
    }

    private func opened(_ disk: DiskStore) {
        while true {
            let step: Step = self.state.withLock { state in
                guard case .opening = state.phase else { return .end }
                if !state.overtaken.isEmpty {
                    defer { state.overtaken = OvertakenKeys() }
                    return .forget(state.overtaken)
                }
                if !state.waiting.isEmpty {
                    defer { state.waiting = [] }
                    return .call(state.waiting)
                }
                state.phase = .open(disk)
                state.owesRemoval = false
                state.failure = nil
                return .tell
            }
            switch step {
            case .forget(let keys):
                let goOn = { @Sendable in self.queue.async { self.opened(disk) } }
                guard let keys = keys.all else { return disk.removeAll(in: .all) { _ in goOn() } }
                for key in keys { disk.remove(key, ids: nil, nil) }
                return disk.flush(goOn)
            case .call(let waiting): for waiting in waiting { waiting.body(disk) }
            case .tell: return self.report(.opened)
            case .end: return
            }
        }
    }

    private func failed(_ error: StoreError) {
        let (event, waiting) = self.state.withLock { state -> (DiskEvent?, [Waiting]) in
            state.phase = .absent
            if state.waiting.contains(where: \.removes) { state.owesRemoval = true }
            defer { state.waiting = [] }
            return (state.health.failed(error, at: self.clock()).event, state.waiting)
        }
        if let event, !self.isClosing.load(ordering: .relaxed) { self.report(event) }
        for waiting in waiting { waiting.body(nil) }
    }

    /// Makes a call to the file now, or once it is known whether it can be opened; with nil where it is
    /// not open.
    ///
    /// - Parameter removes: it takes something out of the file. Who gets none calls
    ///   ``willAnswerRemoval(_:)``.
    private func withDisk(removes: Bool = false, _ body: @escaping @Sendable (DiskStore?) -> Void) {
        let (disk, waits) = self.state.withLock { state -> (DiskStore?, Bool) in
            switch state.phase {
            case .open(let disk): return (disk, false)
            case .opening:
                state.waiting.append(Waiting(removes: removes, body: body))
                return (nil, true)
            case .absent, .closed:
                if removes { state.owesRemoval = true }
                return (nil, false)
            }
        }
        if !waits { body(disk) }
    }

    // MARK: Storing

    package func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        let now = self.clock()
        let (disk, opens) = self.state.withLock { state -> (DiskStore?, Bool) in
            switch state.phase {
            case .open(let disk): return (disk, false)
            case .closed: return (nil, false)
            case .opening, .absent: state.overtaken.insert(key)
            }
            guard case .absent = state.phase, state.health.isHealthy(at: now) else {
                return (nil, false)
            }
            state.phase = .opening
            return (nil, true)
        }
        if opens { self.queue.async { self.open() } }
        return disk?.store(
            head, for: key, length: length, replacing: replacing, observer: observer)
    }

    package func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.disk?.extend(
            id, of: key, at: offset, length: length, completeLength: completeLength, begun: begun,
            observer: observer)
    }

    /// Of a file that is not open nobody knows an id.
    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        guard let disk = self.disk else { written?(); return }
        disk.update(id, of: key, head: head, written: written)
    }

    package func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        self.disk?.noteUse(id, of: key, at: time)
    }

    package var largestBody: UInt64 { self.configuration.objectLimit }

    // MARK: Finding

    /// Always nil: only the disk knows.
    package func lookupResident(_ key: CacheKey) -> [StoredObject]? { nil }

    package func lookupInPlace(_ key: CacheKey) -> [StoredObject]? {
        self.disk?.lookupInPlace(key)
    }

    package func bodyAgain(at place: FoundPlace, of key: CacheKey) -> ByteBuffer? {
        self.disk?.bodyAgain(at: place, of: key)
    }

    package var mayHoldWithoutSearch: Bool { self.disk?.mayHoldWithoutSearch ?? false }

    package func lookup(
        _ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void
    ) {
        self.ask(for: key) { completion($0.objects) }
    }

    /// Certain only where the file is open: nobody must remember that there is nothing.
    package func ask(
        for key: CacheKey, _ completion: @escaping @Sendable (StoreAnswer) -> Void
    ) {
        guard let disk = self.disk else { return completion(.unknown) }
        disk.ask(for: key, completion)
    }

    package func statistics() -> StoreStatistics { self.disk?.statistics() ?? StoreStatistics() }

    // MARK: Removing

    package func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?
    ) {
        self.withDisk(removes: true) { disk in
            guard let disk else { return self.willAnswerRemoval { completion?(0) } }
            disk.remove(key, ids: ids, completion)
        }
    }

    package func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        self.withDisk(removes: true) { disk in
            guard let disk else { return self.willAnswerRemoval { completion(0) } }
            disk.removeAll(in: selection, completion)
        }
    }

    /// Who asks wants them removed.
    package func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void
    ) {
        self.withDisk(removes: true) { disk in
            guard let disk else { return self.willAnswerRemoval { completion([]) } }
            disk.names(storedSince: time, completion)
        }
    }

    package func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp) {
        self.withDisk(removes: true) { disk in
            guard let disk else { return self.willAnswerRemoval {} }
            disk.noteInvalidation(ofGroup: name, at: time)
        }
    }

    package func groupInvalidation(of name: [UInt8]) -> Timestamp? {
        self.disk?.groupInvalidation(of: name)
    }

    package func willAnswerRemoval(_ completion: @escaping @Sendable () -> Void) {
        let isDue = self.state.withLock { state in
            if case .open = state.phase { return false }
            if case .opening = state.phase { return true }
            state.owesRemoval = true
            return !state.isNoted
        }
        guard isDue else { return completion() }
        // Behind an opening that is under way.
        self.withDisk(removes: true) { disk in
            if disk != nil { return completion() }
            self.queue.async {
                _ = self.noteRemoval()
                completion()
            }
        }
    }

    package var unkeptRemoval: UnkeptRemoval? {
        if let disk = self.disk { return disk.unkeptRemoval }
        return self.state.withLock { $0.failure }.map { UnkeptRemoval($0) }
    }

    /// Notes beside the file that something was removed, unless that is done; on the queue.
    ///
    /// - Returns: why it could not be.
    private func noteRemoval() -> StoreError? {
        if self.state.withLock({ $0.isNoted }) { return nil }
        let note = RemovalNote.write(besideFileIn: self.configuration.directory)
        let tells = self.state.withLock { state in
            state.isNoted = note == .written
            state.failure = note.failure
            return state.failure != nil && state.health.tellsOfUnkeptRemoval()
        }
        if tells, let failure = note.failure { self.report(.removalNotKept(failure)) }
        return note.failure
    }

    // MARK: The end

    package func flush(_ completion: @escaping @Sendable () -> Void) {
        self.withDisk { disk in
            guard let disk else { return completion() }
            disk.flush(completion)
        }
    }

    package func close(_ completion: @escaping @Sendable () -> Void) {
        self.isClosing.store(true, ordering: .relaxed)
        self.withDisk { disk in
            self.state.withLock { $0.phase = .closed }
            // Behind what is being noted.
            guard let disk else { return self.queue.async(execute: completion) }
            disk.close(completion)
        }
    }
}

/// Keys of which something newer was stored elsewhere, a bounded number of them.
private struct OvertakenKeys: Sendable {
    private static let keyLimit = 16_384
    private static let byteLimit = 4 << 20

    private var keys: Set<CacheKey> = []
    private var bytes = 0
    private var isOverfull = false

    var isEmpty: Bool { self.keys.isEmpty && !self.isOverfull }

    /// nil: there were too many to remember, and it may be any.
    var all: Set<CacheKey>? { self.isOverfull ? nil : self.keys }

    mutating func insert(_ key: CacheKey) {
        guard !self.isOverfull, self.keys.insert(key).inserted else { return }
        self.bytes += key.bytes.count
        guard self.keys.count > Self.keyLimit || self.bytes > Self.byteLimit else { return }
        self.keys = []
        self.isOverfull = true
    }
}
