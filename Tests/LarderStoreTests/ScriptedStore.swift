import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A lower tier whose pace and failures the test decides.
///
/// Takes up its calls in order. While it is held, what would happen waits in a queue until the
/// test lets it go on.
final class ScriptedStore: ObjectStore {
    enum Call: Hashable, Sendable {
        case lookup(CacheKey)
        case store(CacheKey, replacing: [ObjectID])
        case hurry, commit, abandon
        case update(ObjectID)
        case remove(CacheKey, [ObjectID]?)
        case removeAll
        case noteUse(ObjectID)
        case flush, close
    }

    private struct State {
        var objects: [CacheKey: [StoredObject]] = [:]
        var calls: [Call] = []
        var isHeld = false
        var readsEarly = false
        var readsInPlace = false
        var cannotRead = false
        var waiting: [@Sendable () -> Void] = []
        var whenWritten: (@Sendable () -> Void)?
        var whenReadInPlace: (@Sendable () -> Void)?
        var beforeUpdate: (@Sendable () -> Void)?
        var elsewhere: AsyncStream<@Sendable () -> Void>.Continuation?
        var refuses = false
        var failure: SinkAbandonment?
        var nextID: UInt64 = 100
        var hits: UInt64 = 0
    }

    private let state = Mutex(State())

    var calls: [Call] { self.state.withLock { $0.calls } }
    /// Whether sinks are refused.
    func refuse() { self.state.withLock { $0.refuses = true } }
    /// Lets sinks fail when they are to commit; nil lets them succeed again.
    func fail(_ failure: SinkAbandonment?) { self.state.withLock { $0.failure = failure } }
    /// Lets lookups see what is there when they are asked, whenever they answer.
    func readEarly() { self.state.withLock { $0.readsEarly = true } }
    /// Whether lookups find nothing because nothing can be read.
    func failToRead(_ fails: Bool) { self.state.withLock { $0.cannotRead = fails } }
    /// Whether lookups that must not wait find what is there.
    func readInPlace(_ reads: Bool = true) { self.state.withLock { $0.readsInPlace = reads } }
    /// What happens, once, when such a lookup has found something, before that is told.
    func whenReadInPlace(_ meanwhile: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.whenReadInPlace = meanwhile }
    }
    /// What happens, once, when a sink has been given a piece, before it is told anything else.
    func whenWritten(_ meanwhile: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.whenWritten = meanwhile }
    }

    /// What happens, once, when a head is about to be replaced, before that is taken up.
    func beforeUpdate(_ meanwhile: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.beforeUpdate = meanwhile }
    }

    fileprivate func wasWritten() { self.state.withLock { $0.whenWritten.take() }?() }

    func hold() { self.state.withLock { $0.isHeld = true } }

    /// Makes everything happen in order, wherever the stream is read, until it is finished.
    func runElsewhere() -> AsyncStream<@Sendable () -> Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: (@Sendable () -> Void).self)
        self.state.withLock { $0.elsewhere = continuation }
        return stream
    }

    func finishElsewhere() {
        self.state.withLock { $0.elsewhere?.finish() }
    }

    /// Lets the oldest thing that waits happen; false where none does.
    @discardableResult
    func step() -> Bool {
        let next = self.state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        next?()
        return next != nil
    }

    /// Lets the newest thing that waits happen, out of its turn.
    func stepLast() {
        self.state.withLock { $0.waiting.popLast() }?()
    }

    /// Lets all that waits happen, and what comes later at once.
    func letGo() {
        self.state.withLock { $0.isHeld = false }
        while self.step() {}
    }

    /// Drops an object as an eviction would: nobody is told.
    func evict(_ name: String) {
        self.state.withLock { $0.objects[Sample.key(name)] = nil }
    }

    func ids(_ name: String) -> [ObjectID] {
        self.state.withLock { $0.objects[Sample.key(name)]?.map(\.id) ?? [] }
    }

    func lengths(_ name: String) -> [UInt64] {
        self.state.withLock { $0.objects[Sample.key(name)]?.map(\.bodyLength) ?? [] }
    }

    func head(_ name: String) -> StoredHead? {
        self.state.withLock { $0.objects[Sample.key(name)]?.first?.head }
    }

    /// Puts an object there as an earlier run of the program would have.
    @discardableResult
    func seed(
        _ name: String, _ head: StoredHead = Sample.head(), body: ByteBuffer = Sample.body(10)
    ) -> ObjectID {
        self.put(head, Sample.key(name), body, Fields(), replacing: [])
    }

    /// Lets lookups find all that is there now together with its body, as the disk does where that is
    /// small.
    func showBodies() {
        self.state.withLock { state in
            for (key, objects) in state.objects {
                state.objects[key] = objects.map { object in
                    guard let body = object.body as? ReadBody else { return object }
                    var object = object
                    object.body = MemoryBody(body.bytes)
                    return object
                }
            }
        }
    }

    fileprivate func put(
        _ head: StoredHead, _ key: CacheKey, _ body: ByteBuffer, _ trailers: Fields,
        replacing: [ObjectID]
    ) -> ObjectID {
        self.state.withLock { state in
            state.nextID += 1
            let id = ObjectID(rawValue: state.nextID)
            state.objects[key, default: []].removeAll { replacing.contains($0.id) }
            state.objects[key, default: []].append(
                StoredObject(
                    id: id, key: key, head: head, trailers: trailers,
                    bodyLength: UInt64(body.readableBytes), tier: .disk,
                    lastUsed: head.responseTime, body: ReadBody(bytes: body)))
            return id
        }
    }

    fileprivate func log(_ call: Call) { self.state.withLock { $0.calls.append(call) } }
    fileprivate var failure: SinkAbandonment? { self.state.withLock { $0.failure } }

    fileprivate func perform(_ work: @escaping @Sendable () -> Void) {
        let isHeld = self.state.withLock { state in
            if let elsewhere = state.elsewhere {
                elsewhere.yield(work)
                return true
            }
            if state.isHeld { state.waiting.append(work) }
            return state.isHeld
        }
        if !isHeld { work() }
    }

    // MARK: ObjectStore

    func lookupResident(_ key: CacheKey) -> [StoredObject]? { nil }

    func lookupInPlace(_ key: CacheKey) -> [StoredObject]? {
        let (found, meanwhile) = self.state.withLock { state in
            (state.readsInPlace ? state.objects[key] ?? [] : nil, state.whenReadInPlace.take())
        }
        meanwhile?()
        return found
    }

    func lookup(_ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void) {
        self.log(.lookup(key))
        let early = self.state.withLock { $0.readsEarly ? $0.objects[key] ?? [] : nil }
        self.perform { completion(early ?? self.state.withLock { $0.objects[key] ?? [] }) }
    }

    func ask(for key: CacheKey, _ completion: @escaping @Sendable (StoreAnswer) -> Void) {
        let cannotRead = self.state.withLock { $0.cannotRead }
        self.lookup(key) { completion(cannotRead ? .unknown : StoreAnswer($0)) }
    }

    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.log(.store(key, replacing: replacing))
        guard !self.state.withLock({ $0.refuses }) else { return nil }
        return ScriptedSink(self, head, key, replacing, observer)
    }

    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        self.state.withLock { $0.beforeUpdate.take() }?()
        self.log(.update(id))
        self.perform {
            self.state.withLock { state in
                guard let i = state.objects[key]?.firstIndex(where: { $0.id == id }) else {
                    return
                }
                state.objects[key]?[i].head = head
            }
            written?()
        }
    }

    func remove(_ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?) {
        self.log(.remove(key, ids))
        self.perform {
            let count = self.state.withLock { state in
                let before = state.objects[key]?.count ?? 0
                state.objects[key]?.removeAll { ids?.contains($0.id) ?? true }
                return before - (state.objects[key]?.count ?? 0)
            }
            completion?(count)
        }
    }

    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        self.log(.removeAll)
        self.perform {
            let count = self.state.withLock { state in
                let keys = state.objects.keys.filter(selection.contains)
                return keys.reduce(0) { $0 + (state.objects.removeValue(forKey: $1)?.count ?? 0) }
            }
            completion(count)
        }
    }

    func flush(_ completion: @escaping @Sendable () -> Void) {
        self.log(.flush)
        self.perform(completion)
    }

    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        self.log(.noteUse(id))
        self.state.withLock { $0.hits += 1 }
    }

    func statistics() -> StoreStatistics {
        self.state.withLock { state in
            var statistics = StoreStatistics()
            var disk = StoreStatistics.Tier()
            disk.objects = UInt64(state.objects.values.reduce(0) { $0 + $1.count })
            disk.hits = state.hits
            statistics.disk = disk
            statistics.fileBytes = 4096
            statistics.damaged = 3
            return statistics
        }
    }

    func close(_ completion: @escaping @Sendable () -> Void) {
        self.log(.close)
        self.perform(completion)
    }
}

/// A body that must be read, as from a disk.
private struct ReadBody: StoredBody {
    let bytes: ByteBuffer
    var resident: ByteBuffer? { nil }

    func reader(range: Range<UInt64>) -> any BodySource {
        MemoryBody(self.bytes).reader(range: range)
    }
}

private final class ScriptedSink: ObjectSink {
    private let store: ScriptedStore
    private let head: StoredHead
    private let key: CacheKey
    private let replacing: [ObjectID]
    private let observer: any ObjectSinkObserver
    private let body = Mutex(ByteBuffer())
    private let hasEnded = Atomic(false)

    init(
        _ store: ScriptedStore, _ head: StoredHead, _ key: CacheKey, _ replacing: [ObjectID],
        _ observer: any ObjectSinkObserver
    ) {
        self.store = store
        self.head = head
        self.key = key
        self.replacing = replacing
        self.observer = observer
    }

    func write(_ piece: ByteBuffer) {
        let count = self.body.withLock {
            $0.writeImmutableBuffer(piece)
            return $0.readableBytes
        }
        self.store.perform { self.observer.sink(written: UInt64(count)) }
        self.store.wasWritten()
    }

    func hurry() { self.store.log(.hurry) }

    func commit(trailers: Fields) {
        self.store.log(.commit)
        self.store.perform {
            if let failure = self.store.failure { return self.end(.abandoned(failure)) }
            let id = self.store.put(
                self.head, self.key, self.body.withLock { $0 }, trailers,
                replacing: self.replacing)
            self.end(.visible(id))
        }
    }

    func abandon() {
        self.store.log(.abandon)
        self.store.perform { self.end(.abandoned(.byWriter)) }
    }

    func reader(from offset: UInt64) -> (any BodySource)? {
        self.body.withLock { $0.getSlice(at: Int(offset), length: $0.readableBytes - Int(offset)) }
            .map { MemoryBody($0).reader(range: 0..<UInt64($0.readableBytes)) }
    }

    private func end(_ outcome: SinkOutcome) {
        if !self.hasEnded.exchange(true, ordering: .relaxed) {
            self.observer.sinkEnded(outcome)
        }
    }
}
