import Dispatch
package import LarderHTTP
package import LarderPolicy
package import LarderStore
package import NIOCore
import Synchronization

/// A disk store that could not be opened when its session began, and is once it can be.
///
/// ```
/// absent ─(something is to be stored, after the pause)─▶ opening ─▶ forgetting ─▶ open ─▶ closed
///    ▲                                                      │
///    └──────────(longer pauses: see DiskHealth)─────────────┘
/// ```
///
/// *Absent* and *opening*: nothing is found here and nothing stored, so that memory alone answers, in
/// which no part of a response is stored then; no call waits for the disk but a removal that comes while
/// the file is being opened. *Forgetting*: it takes what is to be stored, and nothing is found yet.
/// *Open*: every call goes to the file, which minds its own troubles from then on.
///
/// **What lies in the file meanwhile** is older than what memory was given: of every key that was to be
/// stored, it goes before anything is found; and so it does where a response comes after the opening
/// whose request had been sent before. What is removed may lie in it, too, and another process might
/// serve it. So a removal is noted beside the file, as one is that the disk refuses to write, and the file
/// is taken away at the next opening. A disk that refuses even the note leaves removals to the life of
/// this process, which is said once.
package final class LateDisk: ObjectStore, AbsentTier {
    private enum Phase {
        case absent
        case opening
        case forgetting(DiskStore)
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
        /// Why the last removal is not written down beside the file.
        var failure: StoreError?
        var waiting: [Waiting] = []
        /// Who waits for the next note.
        var noting: [@Sendable () -> Void] = []
        /// Whose requests were sent before it does not know what the file had.
        var openTime: Timestamp?

        /// The file where it takes changes.
        var changeable: DiskStore? {
            switch self.phase {
            case .forgetting(let disk), .open(let disk): disk
            case .absent, .opening, .closed: nil
            }
        }
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

    /// The file where what is in it may be found; nil where it is not open.
    package var disk: DiskStore? {
        self.state.withLock { state in
            if case .open(let disk) = state.phase { return disk }
            return nil
        }
    }

    private var changeable: DiskStore? { self.state.withLock { $0.changeable } }

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
            // Also where it was noted: another process may have taken the note, and stored since.
            if self.state.withLock({ $0.owesRemoval }), let failure = self.noteRemoval() {
                throw failure
            }
            let disk = try DiskStore.open(
                self.configuration, clock: self.clock,
                mayGoOn: { !self.isClosing.load(ordering: .relaxed) }, report: self.report)
            self.opened(disk)
        } catch {
            self.failed(error)
        }
    }

    private func opened(_ disk: DiskStore) {
        self.report(.opened)
        while true {
            switch self.beforeUse(of: disk) {
            case .changes(let overtaken, let removals):
                overtaken.remove(from: disk)
                for removal in removals { removal.body(disk) }
            case .use(let waiting):
                disk.flush { self.hasForgotten(disk) }
                for call in waiting { call.body(disk) }
                return
            }
        }
    }

    private enum Next {
        /// What goes before the file is used.
        case changes(OvertakenKeys, removals: [Waiting])
        /// Nothing of that is left.
        case use([Waiting])
    }

    private func beforeUse(of disk: DiskStore) -> Next {
        self.state.withLock { state in
            let removals = state.waiting.filter(\.removes)
            guard state.overtaken.isEmpty, removals.isEmpty else {
                defer {
                    state.waiting.removeAll(where: \.removes)
                    state.overtaken = OvertakenKeys()
                }
                return .changes(state.overtaken, removals: removals)
            }
            state.phase = .forgetting(disk)
            state.owesRemoval = false
            state.failure = nil
            defer { state.waiting = [] }
            return .use(state.waiting)
        }
    }

    private func hasForgotten(_ disk: DiskStore) {
        let now = self.clock()
        self.state.withLock { state in
            guard case .forgetting = state.phase else { return }
            state.phase = .open(disk)
            state.openTime = now
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
            if let disk = state.changeable { return (disk, false) }
            if case .opening = state.phase {
                state.waiting.append(Waiting(removes: removes, body: body))
                return (nil, true)
            }
            if removes { state.owesRemoval = true }
            return (nil, false)
        }
        if !waits { body(disk) }
    }

    // MARK: Storing

    package func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        let now = self.clock()
        let (disk, isFirst, opens) = self.state.withLock { state -> (DiskStore?, Bool, Bool) in
            if let disk = state.changeable {
                // Looked up when nothing could be found: what it takes the place of is not named.
                let isEarly = state.openTime.map { head.requestTime <= $0 } ?? true
                return (disk, isEarly && replacing.isEmpty, false)
            }
            if case .closed = state.phase { return (nil, false, false) }
            state.overtaken.insert(key)
            guard case .absent = state.phase, state.health.isHealthy(at: now) else {
                return (nil, false, false)
            }
            state.phase = .opening
            return (nil, false, true)
        }
        if opens { self.queue.async { self.open() } }
        if isFirst { disk?.remove(key, ids: nil, nil) }
        return disk?.store(
            head, for: key, length: length, replacing: replacing, observer: observer)
    }

    package func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.changeable?.extend(
            id, of: key, at: offset, length: length, completeLength: completeLength, begun: begun,
            observer: observer)
    }

    /// Of a file that is not open nobody knows an id.
    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        guard let disk = self.changeable else { written?(); return }
        disk.update(id, of: key, head: head, written: written)
    }

    package func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        self.changeable?.noteUse(id, of: key, at: time)
    }

    package var largestBody: UInt64 { self.changeable?.largestBody ?? 0 }

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
        self.withDisk(removes: true) { disk in
            if disk != nil { return completion() }
            // One note serves all who have come by then.
            let isFirst = self.state.withLock { state in
                state.noting.append(completion)
                return state.noting.count == 1
            }
            guard isFirst else { return }
            self.queue.async {
                let waiting = self.state.withLock { state in
                    defer { state.noting = [] }
                    return state.noting
                }
                // An opening that came in between has minded what is owed.
                if self.changeable == nil { _ = self.noteRemoval() }
                for completion in waiting { completion() }
            }
        }
    }

    package var unkeptRemoval: UnkeptRemoval? {
        let (disk, failure) = self.state.withLock { ($0.changeable, $0.failure) }
        return disk.map(\.unkeptRemoval) ?? failure.map { UnkeptRemoval($0) }
    }

    /// Notes beside the file that something was removed; on the queue.
    ///
    /// - Returns: why it could not be.
    private func noteRemoval() -> StoreError? {
        let note = RemovalNote.write(besideFileIn: self.configuration.directory)
        let tells = self.state.withLock { state in
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
