import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A cache whose methods a program has overridden, as the engine's store.
///
/// A lookup asks the subclass for what it has for the task whose exchange has begun; what that answers
/// is judged like anything stored. Storing goes by way of the gate (``StoringOffer``), which hands the
/// whole response to the subclass: here it is only collected. Whatever a subclass answers, and however
/// often, a task gets on.
final class OverriddenCacheStore: ObjectStore {
    /// For whom the engine asks.
    struct Asking: Sendable {
        let task: URLSessionDataTask
        let request: Request
    }

    @TaskLocal static var asking: Asking?

    private struct Table {
        var lastID: UInt64 = 0
        /// What the subclass gave, the last of it: which task it was for.
        var given: [Given] = []
        /// The length of their bodies together.
        var bytes = 0

        mutating func add(_ cached: CachedURLResponse, of bytes: Int, for task: URLSessionDataTask)
            -> ObjectID
        {
            self.lastID += 1
            let id = ObjectID(rawValue: self.lastID)
            self.given.append(Given(id: id, cached: cached, bytes: bytes, task: task))
            self.bytes += bytes
            while self.given.count > OverriddenCacheStore.limit
                || self.bytes > OverriddenCacheStore.byteLimit && self.given.count > 1
            {
                self.bytes -= self.given.removeFirst().bytes
            }
            return id
        }
    }

    private struct Given {
        let id: ObjectID
        let cached: CachedURLResponse
        let bytes: Int
        let task: URLSessionDataTask
    }

    /// How many answers are remembered, for changes that validations make of them.
    private static let limit = 64
    /// How long their bodies may be together; the last one is remembered in any case.
    private static let byteLimit = 8 << 20

    private weak let cache: URLCache?
    private let table = Mutex(Table())
    private let marks = Atomic<UInt64>(1)
    /// A program's own methods run on it: one that waits holds up the other tasks of this cache alone.
    private let queue = DispatchQueue(label: "larder.overridden-cache")

    init(_ cache: URLCache) {
        self.cache = cache
    }

    // MARK: Finding

    func lookupResident(_ key: CacheKey) -> [StoredObject]? {
        Self.asking == nil ? [] : nil
    }

    var mayHoldWithoutSearch: Bool { false }

    func lookup(_ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void) {
        guard let asking = Self.asking, let cache = self.cache, !key.leavesOutSearch else {
            return completion([])
        }
        let answer = OnceAnswered<CachedURLResponse?> { cached in
            completion(cached.flatMap { self.object($0, key, asking) }.map { [$0] } ?? [])
        }
        self.queue.async {
            cache.getCachedResponse(for: asking.task) { answer.take($0) }
        }
        answer.take(nil, after: OverdueAnswers.patience)
    }

    private func object(
        _ cached: CachedURLResponse, _ key: CacheKey, _ asking: Asking
    ) -> StoredObject? {
        let now = Timestamp(Date())
        guard cached.response is HTTPURLResponse,
            var head = StoredResponse.head(cached, of: asking.request, at: now)
        else { return nil }
        head.staysInMemory = false
        let body = ByteBuffer(bytes: cached.data)
        let id = self.table.withLock { table in
            table.add(cached, of: body.readableBytes, for: asking.task)
        }
        return StoredObject(
            id: id, key: key, head: head, bodyLength: UInt64(body.readableBytes), tier: .memory,
            lastUsed: now, body: MemoryBody(body))
    }

    // MARK: Changing

    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        guard let limit = self.cache?.largestBody else { return nil }
        // A memory of its own, which nothing is ever found in.
        let room = ByteCount(UInt64(max(limit, 1)) &+ 1 << 20)
        return MemoryStore(MemoryConfiguration(capacity: room, maximumObject: room)).store(
            head, for: key, length: length, replacing: [], observer: observer)
    }

    /// Has the subclass told of something, behind what it was told and asked before.
    ///
    /// - Parameters:
    ///   - tell: calls its methods.
    ///   - done: called once, when they have returned, or have not for long.
    func tell(
        _ tell: @escaping @Sendable () -> Void, then done: @escaping @Sendable () -> Void
    ) {
        let answer = OnceAnswered<Void> { _ in done() }
        self.queue.async {
            tell()
            answer.take(())
        }
        answer.take((), after: OverdueAnswers.patience)
    }

    func removalMark() -> RemovalMark {
        RemovalMark(rawValue: self.marks.load(ordering: .relaxed))
    }

    /// A validation has changed a head: the subclass gets the response with it.
    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        defer { written?() }
        guard let given = self.given(id), let cache = self.cache, !head.isInvalidated,
            let url = given.cached.response.url
        else { return }
        let updated = CachedURLResponse(
            response: StoredResponse.response(head, at: url), body: CachedBody(given.cached.data),
            userInfo: given.cached.userInfo, storagePolicy: given.cached.storagePolicy,
            varyingFields: head.varyingFields)
        self.queue.async { cache.storeCachedResponse(updated, for: given.task) }
    }

    private func given(_ id: ObjectID) -> (cached: CachedURLResponse, task: URLSessionDataTask)? {
        self.table.withLock { table in
            table.given.first { $0.id == id }.map { ($0.cached, $0.task) }
        }
    }

    func remove(_ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?) {
        guard let cache = self.cache else {
            completion?(0)
            return
        }
        let tasks = ids?.compactMap { self.given($0)?.task } ?? []
        let url = ids == nil ? URL(string: key.parts.uri) : nil
        self.queue.async {
            for task in tasks { cache.removeCachedResponse(for: task) }
            if let url { cache.removeCachedResponse(for: URLRequest(url: url)) }
            completion?(tasks.count)
        }
    }

    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        completion(0)
    }

    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {}

    func statistics() -> StoreStatistics { StoreStatistics() }

    func close(_ completion: @escaping @Sendable () -> Void) {
        completion()
    }
}
