import LarderHTTP
import LarderPolicy
import NIOCore
import Synchronization

/// Collects a body, or a part of one, for the memory tier.
///
/// Tells its observer within its own calls.
final class MemorySink: ObjectSink {
    /// What the collected bytes become.
    enum Target: Sendable {
        /// A new response; a part of it where its head has an extent.
        case new(StoredHead, replacing: [ObjectID])
        case addition(ObjectID, completeLength: UInt64?)
    }

    private let store: MemoryStore
    private let target: Target
    private let key: HashedKey
    private let begun: RemovalMark
    /// Where the bytes begin in the representation.
    private let start: UInt64
    private let expected: UInt64?
    private let body: CollectedBody
    private let written = Atomic<UInt64>(0)
    /// nil once the sink has ended.
    private let observer: Mutex<(any ObjectSinkObserver)?>

    /// - Parameters:
    ///   - start: where the bytes begin; what they may end at is for the caller to check.
    ///   - length: how many will come, where that is known.
    init(
        _ store: MemoryStore, _ target: Target, _ key: HashedKey, start: UInt64, length: UInt64?,
        begun: RemovalMark, _ observer: any ObjectSinkObserver
    ) {
        self.store = store
        self.target = target
        self.key = key
        self.begun = begun
        self.start = start
        self.expected = length
        let limit = store.largestBody
        self.body = CollectedBody(length: length, limit: limit - min(limit, start))
        self.observer = Mutex(observer)
    }

    deinit {
        self.end(.abandoned(.byWriter))
    }

    func write(_ piece: ByteBuffer) {
        guard let observer = self.observer.withLock({ $0 }) else { return }
        guard self.body.append(piece) else { return self.end(.abandoned(.tooLarge)) }
        let offset = self.written.add(UInt64(piece.readableBytes), ordering: .relaxed).newValue
        // More than was said is a broken body.
        if self.isPart, let expected = self.expected, offset > expected {
            return self.end(.abandoned(.byWriter))
        }
        observer.sink(written: offset)
    }

    private var isPart: Bool {
        switch self.target {
        case .new(let head, _): head.extent != nil
        case .addition: true
        }
    }

    func commit(trailers: Fields) {
        // A part may be shorter than it was said to be: what came of it stays.
        if self.isPart { return self.keep(completeLength: nil) }
        guard self.observer.withLock({ $0 != nil }), let body = self.body.finish(),
            case .new(let head, let replacing) = self.target
        else { return }
        self.place(head, MemoryBody(body, trailers: trailers), body, replacing, trailers)
    }

    func keep(completeLength: UInt64?) {
        guard self.observer.withLock({ $0 != nil }), let body = self.body.finish() else { return }
        switch self.target {
        case .new(let head, let replacing):
            let known = head.extent == nil ? self.expected : head.extent?.completeLength
            self.keep(body, head, replacing, completeLength ?? known)
        case .addition(let id, let known):
            let outcome = self.store.add(
                body, at: self.start, completeLength: completeLength ?? known, to: id,
                of: self.key, begun: self.begun)
            self.end(outcome)
        }
    }

    /// Makes a new response visible as far as it came.
    private func keep(
        _ bytes: ByteBuffer, _ head: StoredHead, _ replacing: [ObjectID], _ completeLength: UInt64?
    ) {
        guard bytes.readableBytes > 0 else { return self.end(.abandoned(.byWriter)) }
        let extent: StoredExtent
        do throws(SinkAbandonment) {
            let end = self.start + UInt64(bytes.readableBytes)
            extent = try StoredExtent(completeLength: nil).adding(
                self.start..<end, completeLength: completeLength,
                limit: self.store.largestBody)
        } catch {
            return self.end(.abandoned(error))
        }
        let body: any StoredBody =
            extent.isComplete
            ? MemoryBody(bytes) : MemoryParts(bytes, at: self.start, extent: extent)
        self.place(head.with(extent: extent), body, bytes, replacing, Fields())
    }

    private func place(
        _ head: StoredHead, _ body: any StoredBody, _ bytes: ByteBuffer, _ replacing: [ObjectID],
        _ trailers: Fields
    ) {
        let object = StoredObject(
            id: self.store.newID(), key: self.key.key, head: head, trailers: trailers,
            bodyLength: head.extent?.bodyLength ?? UInt64(bytes.readableBytes), tier: .memory,
            lastUsed: head.responseTime, body: body)
        let admission = self.store.admit(self.key, begun: self.begun) { shard in
            shard.insert(MemoryEntry(object: object), self.key, replacing: replacing)
        }
        switch admission {
        case .admitted(true): self.end(.visible(object.id))
        case .admitted(false): self.end(.abandoned(.tooLarge))
        case .refused(let reason): self.end(.abandoned(reason))
        }
    }

    func abandon() {
        self.end(.abandoned(.byWriter))
    }

    func reader(from offset: UInt64) -> (any BodySource)? {
        self.body.reader(from: offset)
    }

    /// Tells the outcome, once.
    ///
    /// What was collected goes with the sink, not before: readers that lag may have been left to it.
    private func end(_ outcome: SinkOutcome) {
        self.observer.withLock { $0.take() }?.sinkEnded(outcome)
    }
}
