import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A store that shows what it was given only when the test lets it, as a disk that is slow to commit.
final class LateStore: ObjectStore {
    /// Holds back the end of what is written.
    private final class Sink: ObjectSink {
        private let sink: any ObjectSink
        private let report: Report
        private let store: LateStore

        init(_ sink: any ObjectSink, _ report: Report, _ store: LateStore) {
            self.sink = sink
            self.report = report
            self.store = store
        }

        func write(_ piece: ByteBuffer) { self.sink.write(piece) }

        func hurry() { self.report.hurry() }

        func commit(trailers: Fields) {
            self.store.hold { [sink] in sink.commit(trailers: trailers) }
        }

        func keep(completeLength: UInt64?) {
            self.store.hold { [sink] in sink.keep(completeLength: completeLength) }
        }

        func abandon() { self.sink.abandon() }

        func reader(from offset: UInt64) -> (any BodySource)? { self.sink.reader(from: offset) }
    }

    /// Holds back the word that something is written or stored, when lookups show it already.
    private final class Report: ObjectSinkObserver {
        private let observer: any ObjectSinkObserver
        private let store: LateStore
        /// What has been written and not told.
        private let untold = Mutex<UInt64?>(nil)

        init(_ observer: any ObjectSinkObserver, _ store: LateStore) {
            self.observer = observer
            self.store = store
        }

        func sink(written offset: UInt64) {
            if self.store.awaitsHurry {
                self.untold.withLock { $0 = offset }
            } else {
                self.observer.sink(written: offset)
            }
        }

        func hurry() {
            let offset = self.untold.withLock { $0.take() }
            if let offset { self.observer.sink(written: offset) }
        }

        func sinkEnded(_ outcome: SinkOutcome) {
            self.store.report { [observer] in observer.sinkEnded(outcome) }
        }
    }

    private struct State: ~Copyable {
        var reports: [@Sendable () -> Void]?
        var ends: [@Sendable () -> Void] = []
        var holdsEnds = true
        var awaitsHurry = false
        var answers: [@Sendable () -> Void]?
        var lookups = 0
        var meanwhile: (@Sendable () -> Void)?
    }

    private let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(64)))
    private let state = Mutex(State())

    var lookups: Int { self.state.withLock { $0.lookups } }

    private func hold(_ end: @escaping @Sendable () -> Void) {
        let isHeld = self.state.withLock { state in
            if state.holdsEnds { state.ends.append(end) }
            return state.holdsEnds
        }
        if !isHeld { end() }
    }

    private func report(_ report: @escaping @Sendable () -> Void) {
        let isHeld = self.state.withLock { state in
            state.reports?.append(report)
            return state.reports != nil
        }
        if !isHeld { report() }
    }

    /// Shows what is committed, and says so when it is told to.
    func holdReports() { self.state.withLock { $0.reports = [] } }

    func giveReports() {
        for report in self.state.withLock({ $0.reports.take() }) ?? [] { report() }
    }

    /// Shows what was committed so far, in its order.
    func settle() {
        let ends = self.state.withLock { state in
            defer { state.ends = [] }
            return state.ends
        }
        for end in ends { end() }
    }

    /// Shows everything at once from now on.
    func hurries() {
        self.state.withLock { $0.holdsEnds = false }
        self.settle()
    }

    fileprivate var awaitsHurry: Bool { self.state.withLock { $0.awaitsHurry } }

    /// Tells no sooner than it is hurried what it has taken, as a disk that waits for more.
    func awaitHurry() { self.state.withLock { $0.awaitsHurry = true } }

    /// Holds back again what is committed from now on.
    func holds() { self.state.withLock { $0.holdsEnds = true } }

    /// Lets lookups see what there is at once, and say it when they are told to.
    func holdLookups() { self.state.withLock { $0.answers = [] } }

    func answerLookups() {
        for answer in self.state.withLock({ $0.answers.take() }) ?? [] { answer() }
    }

    /// What happens between a lookup's seeing what there is and its saying so, each time.
    func whenLookedUp(_ meanwhile: (@Sendable () -> Void)?) {
        self.state.withLock { $0.meanwhile = meanwhile }
    }

    // MARK: A store

    func lookupResident(_ key: CacheKey) -> [StoredObject]? { nil }

    func lookup(_ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void) {
        let objects = self.memory.lookupResident(key) ?? []
        let (isHeld, meanwhile) = self.state.withLock { state in
            state.lookups += 1
            state.answers?.append { completion(objects) }
            return (state.answers != nil, state.meanwhile)
        }
        meanwhile?()
        if !isHeld { completion(objects) }
    }

    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.begin(observer) {
            self.memory.store(head, for: key, length: length, replacing: replacing, observer: $0)
        }
    }

    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.begin(observer) {
            self.memory.store(
                head, for: key, length: length, replacing: replacing, begun: begun, observer: $0)
        }
    }

    func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.begin(observer) {
            self.memory.extend(
                id, of: key, at: offset, length: length, completeLength: completeLength,
                begun: begun, observer: $0)
        }
    }

    private func begin(
        _ observer: any ObjectSinkObserver, _ begin: (Report) -> (any ObjectSink)?
    ) -> (any ObjectSink)? {
        let report = Report(observer, self)
        return begin(report).map { Sink($0, report, self) }
    }

    func removalMark() -> RemovalMark { self.memory.removalMark() }

    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        self.memory.update(id, of: key, head: head, written: written)
    }

    func update(_ id: ObjectID, of key: CacheKey, head: StoredHead, begun: RemovalMark) {
        self.memory.update(id, of: key, head: head, begun: begun)
    }

    func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?
    ) { self.memory.remove(key, ids: ids, completion) }

    func remove(
        _ key: CacheKey, begun: RemovalMark, _ completion: @escaping @Sendable (Int) -> Void
    ) -> RemovalMark { self.memory.remove(key, begun: begun, completion) }

    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) { self.memory.removeAll(in: selection, completion) }

    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        self.memory.noteUse(id, of: key, at: time)
    }

    func statistics() -> StoreStatistics { self.memory.statistics() }

    func close(_ completion: @escaping @Sendable () -> Void) { self.memory.close(completion) }

    /// What lies under a key now.
    func objects(_ key: CacheKey) -> [StoredObject] { self.memory.lookupResident(key) ?? [] }
}
