import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A store that takes what it is given only when the test lets it, and gives back what it took.
final class SlowDisk: ObjectStore {
    final class Sink: ObjectSink {
        private struct State: ~Copyable {
            /// nil once the sink has ended.
            var observer: (any ObjectSinkObserver)?
            var given = ByteBuffer()
            var written = 0
            var hurries = 0
            var committed = false
            var abandoned = false
        }

        private let state: Mutex<State>

        init(observer: any ObjectSinkObserver) {
            self.state = Mutex(State(observer: observer))
        }

        var isAbandoned: Bool { self.state.withLock { $0.abandoned } }
        var isCommitted: Bool { self.state.withLock { $0.committed } }
        /// How often the writer has said that it can do no more.
        var hurries: Int { self.state.withLock { $0.hurries } }
        var given: Int { self.state.withLock { $0.given.readableBytes } }

        func write(_ piece: ByteBuffer) {
            self.state.withLock { state in _ = state.given.writeImmutableBuffer(piece) }
        }

        func hurry() { self.state.withLock { $0.hurries += 1 } }

        func commit(trailers: Fields) {
            self.state.withLock { $0.committed = true }
        }

        func abandon() {
            self.state.withLock { $0.abandoned = true }
            self.end(.abandoned(.byWriter))
        }

        func end(_ outcome: SinkOutcome) {
            self.state.withLock { $0.observer.take() }?.sinkEnded(outcome)
        }

        func reader(from offset: UInt64) -> (any BodySource)? {
            self.state.withLock { state in
                let part = state.given.getSlice(
                    at: Int(offset), length: max(0, state.written - Int(offset)))
                return Lent(part ?? ByteBuffer())
            }
        }

        /// Lets the disk take the next bytes.
        func takes(_ count: Int) {
            let (written, observer) = self.state.withLock { state in
                state.written = min(state.given.readableBytes, state.written + count)
                return (state.written, state.observer)
            }
            observer?.sink(written: UInt64(written))
        }

        func becomesVisible() {
            self.end(.visible(ObjectID(rawValue: 1)))
        }
    }

    final class Lent: BodySource {
        private let rest: Mutex<ByteBuffer>
        init(_ buffer: ByteBuffer) { self.rest = Mutex(buffer) }
        func attach(wake: @escaping @Sendable () -> Void) {}
        func next() -> BodyStep {
            self.rest.withLock { rest in
                guard let piece = rest.readSlice(length: min(1000, rest.readableBytes)),
                    piece.readableBytes > 0
                else { return .end(trailers: Fields()) }
                return .piece(piece)
            }
        }
        func cancel() {}
    }

    private let made = Mutex<[Sink]>([])
    var sinks: [Sink] { self.made.withLock { $0 } }

    private let held = Mutex<[@Sendable () -> Void]?>(nil)

    /// Lets lookups wait until they are told to answer.
    func holdLookups() { self.held.withLock { $0 = [] } }

    func answerLookups() {
        for answer in self.held.withLock({ $0.take() }) ?? [] { answer() }
    }

    func lookupResident(_ key: CacheKey) -> [StoredObject]? { nil }
    func lookup(_ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void) {
        let isHeld = self.held.withLock { held in
            held?.append { completion([]) }
            return held != nil
        }
        if !isHeld { completion([]) }
    }
    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        let sink = Sink(observer: observer)
        self.made.withLock { $0.append(sink) }
        return sink
    }
    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        written?()
    }
    func remove(_ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?) {
        completion?(0)
    }
    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) { completion(0) }
    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {}
    func statistics() -> StoreStatistics { StoreStatistics() }
    func close(_ completion: @escaping @Sendable () -> Void) { completion() }
}
