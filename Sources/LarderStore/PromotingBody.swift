import LarderHTTP
import NIOCore
import Synchronization

/// The body of a response that lies in the lower tier: the first client who reads it whole brings
/// it up into memory.
struct PromotingBody: StoredBody {
    private let object: StoredObject
    private let store: TieredStore
    private let lookup: LowerLookup

    /// - Parameter lookup: the one that found the object.
    init(_ object: StoredObject, store: TieredStore, _ lookup: LowerLookup) {
        self.object = object
        self.store = store
        self.lookup = lookup
    }

    var resident: ByteBuffer? { nil }

    func letGo() { self.object.body.letGo() }

    func reader(range: Range<UInt64>) -> any BodySource {
        let source = self.object.body.reader(range: range)
        guard range == 0..<self.object.bodyLength, self.store.beganPromoting(self.object) else {
            return source
        }
        return PromotingSource(source, self.object, self.store, self.lookup)
    }
}

/// Hands on what the lower tier reads, and keeps a copy until it is whole.
///
/// One a body at a time: of many clients that read it at once, the others cost no copy.
private final class PromotingSource: BodySource {
    private let source: any BodySource
    private let object: StoredObject
    private let store: TieredStore
    private let lookup: LowerLookup
    private let copy: CollectedBody
    private let hasEnded = Atomic(false)

    init(
        _ source: any BodySource, _ object: StoredObject, _ store: TieredStore,
        _ lookup: LowerLookup
    ) {
        self.source = source
        self.object = object
        self.store = store
        self.lookup = lookup
        self.copy = CollectedBody(
            length: object.bodyLength, limit: object.bodyLength, isCertain: true)
    }

    deinit {
        self.finish()
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.source.attach(wake: wake)
    }

    func next() -> BodyStep {
        let step = self.source.next()
        switch step {
        case .piece(let piece):
            _ = self.copy.append(piece)
        case .end:
            if let body = self.copy.finish(),
                UInt64(body.readableBytes) == self.object.bodyLength
            {
                var object = self.object
                object.body = MemoryBody(body, trailers: object.trailers)
                self.store.promote(object, self.lookup)
            }
            self.finish()
        case .failed:
            self.finish()
        case .pending:
            break
        }
        return step
    }

    func cancel() {
        self.source.cancel()
        self.finish()
    }

    /// Lets go of the copy, and lets another reader make one; harmless when repeated.
    private func finish() {
        self.copy.giveUp()
        if !self.hasEnded.exchange(true, ordering: .relaxed) {
            self.store.endedPromoting(self.object)
        }
    }
}
