import LarderHTTP
import LarderPolicy
import NIOCore
import Synchronization

/// Collects a body for the memory tier.
///
/// Tells its observer within its own calls.
final class MemorySink: ObjectSink {
    private let store: MemoryStore
    private let head: StoredHead
    private let key: HashedKey
    private let replacing: [ObjectID]
    private let begun: RemovalMark
    private let body: CollectedBody
    private let written = Atomic<UInt64>(0)
    /// nil once the sink has ended.
    private let observer: Mutex<(any ObjectSinkObserver)?>

    init(
        _ store: MemoryStore, _ head: StoredHead, _ key: HashedKey, length: UInt64?,
        replacing: [ObjectID], begun: RemovalMark, _ observer: any ObjectSinkObserver
    ) {
        self.store = store
        self.head = head
        self.key = key
        self.replacing = replacing
        self.begun = begun
        self.body = CollectedBody(length: length, limit: store.configuration.largestBody)
        self.observer = Mutex(observer)
    }

    deinit {
        self.end(.abandoned(.byWriter))
    }

    func write(_ piece: ByteBuffer) {
        guard let observer = self.observer.withLock({ $0 }) else { return }
        guard self.body.append(piece) else { return self.end(.abandoned(.tooLarge)) }
        let offset = self.written.add(UInt64(piece.readableBytes), ordering: .relaxed).newValue
        observer.sink(written: offset)
    }

    func commit(trailers: Fields) {
        guard self.observer.withLock({ $0 != nil }), let body = self.body.finish() else { return }
        let object = StoredObject(
            id: self.store.newID(), key: self.key.key, head: self.head, trailers: trailers,
            bodyLength: UInt64(body.readableBytes), tier: .memory,
            lastUsed: self.head.responseTime,
            body: MemoryBody(body, trailers: trailers))
        let admission = self.store.admit(self.key, begun: self.begun) { shard in
            shard.insert(
                MemoryEntry(object: object), self.key, replacing: self.replacing)
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
