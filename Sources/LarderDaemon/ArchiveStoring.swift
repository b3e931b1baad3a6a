import Dispatch
import LarderControl
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Puts responses of an archive into a store, from one thread that may wait.
///
/// A store takes bodies without ever saying "not so fast": so no more than a window of each is under
/// way, and no more than a few responses are on their way to be committed.
final class ArchiveStoring: Sendable {
    /// What a store has said of the responses that were handed to it.
    struct Tally: Sendable {
        var stored: UInt64 = 0
        var bytes: UInt64 = 0
        var refused: [String: UInt64] = [:]
    }

    private static let mostUnderWay = 64
    private let store: any ObjectStore
    private let tally = Mutex(Tally())
    private let room = DispatchSemaphore(value: ArchiveStoring.mostUnderWay)

    init(_ store: any ObjectStore) {
        self.store = store
    }

    /// What is stored under a key now.
    func lookup(_ key: CacheKey) -> [StoredObject] {
        if let resident = self.store.lookupResident(key) { return resident }
        let found = Mutex<[StoredObject]>([])
        let isThere = DispatchSemaphore(value: 0)
        self.store.lookup(key) { objects in
            found.withLock { $0 = objects }
            isThere.signal()
        }
        isThere.wait()
        return found.withLock { $0 }
    }

    /// Begins to store; nil where the store does not take it.
    func begin(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID]
    ) -> PendingResponse? {
        self.begin { observer in
            self.store.store(
                head, for: key, length: length, replacing: replacing,
                begun: self.store.removalMark(), observer: observer)
        }
    }

    /// Begins to add a part to a stored one.
    func extend(
        _ id: ObjectID, of key: CacheKey, range: Range<UInt64>, completeLength: UInt64?
    ) -> PendingResponse? {
        self.begin { observer in
            self.store.extend(
                id, of: key, at: range.lowerBound, length: range.upperBound - range.lowerBound,
                completeLength: completeLength, begun: self.store.removalMark(),
                observer: observer)
        }
    }

    /// Takes a place among those that are under way, when one is free.
    private func takePlace() {
        if self.room.wait(timeout: .now()) == .success { return }
        // No more comes to what the store is about to commit.
        self.hurry()
        self.room.wait()
    }

    /// Whoever fills the store is about to wait for it.
    fileprivate func hurry() { self.store.flush {} }

    private func begin(_ begin: (PendingResponse) -> (any ObjectSink)?) -> PendingResponse? {
        self.takePlace()
        let pending = PendingResponse(self)
        guard let sink = begin(pending) else {
            // No observer hears an end that had no beginning.
            self.room.signal()
            return nil
        }
        pending.take(sink)
        return pending
    }

    fileprivate func ended(_ outcome: SinkOutcome, bytes: UInt64, counts: Bool) {
        self.tally.withLock { tally in
            switch outcome {
            case .visible:
                tally.bytes += bytes
                if counts { tally.stored += 1 }
            case .abandoned(.byWriter): break  // Its reason has been counted.
            case .abandoned(let reason): tally.refused[reason.rawValue, default: 0] += 1
            }
        }
        self.room.signal()
    }

    /// Waits until all has ended that was begun.
    func finish() -> Tally {
        self.hurry()
        for _ in 0..<Self.mostUnderWay { self.room.wait() }
        for _ in 0..<Self.mostUnderWay { self.room.signal() }
        return self.tally.withLock { $0 }
    }
}

/// One response on its way into a store; what is released without `commit` is forgotten.
final class PendingResponse: ObjectSinkObserver {
    private struct State {
        var sink: (any ObjectSink)?
        var given: UInt64 = 0
        var written: UInt64 = 0
        var outcome: SinkOutcome?
        /// Whether it is a response of its own, and not one more part of one.
        var counts = true
    }

    /// How far the reading runs ahead of the store: more than a segment, which is written as a whole.
    private static let window: UInt64 = 2 << 20

    private let storing: ArchiveStoring
    private let state = Mutex(State())
    private let moved = DispatchSemaphore(value: 0)

    /// Memory's word would let the reading run ahead of the disk as far as it likes, and count what the
    /// disk does not take.
    var awaitsLowest: Bool { true }

    init(_ storing: ArchiveStoring) {
        self.storing = storing
    }

    func take(_ sink: any ObjectSink) { self.state.withLock { $0.sink = sink } }

    /// Hands a piece over, and waits until the store has taken enough; false where it takes no more.
    func write(_ piece: ByteBuffer) -> Bool {
        let sink = self.state.withLock { state in
            state.given += UInt64(piece.readableBytes)
            return state.outcome == nil ? state.sink : nil
        }
        guard let sink else { return false }
        sink.write(piece)
        while true {
            let (isOver, waits) = self.state.withLock {
                ($0.outcome != nil, $0.given - min($0.given, $0.written) > Self.window)
            }
            if isOver { return false }
            if !waits { return true }
            sink.hurry()
            self.moved.wait()
        }
    }

    func commit(trailers: Fields, counts: Bool = true) {
        let sink = self.state.withLock { state in
            state.counts = counts
            return state.sink.take()
        }
        sink?.commit(trailers: trailers)
    }

    /// Forgets it all.
    func abandon() {
        let sink = self.state.withLock { $0.sink.take() }
        sink?.abandon()
    }

    /// Waits for the store's last word.
    func outcome() -> SinkOutcome {
        self.storing.hurry()
        while true {
            if let outcome = self.state.withLock({ $0.outcome }) { return outcome }
            self.moved.wait()
        }
    }

    func sink(written offset: UInt64) {
        self.state.withLock { $0.written = max($0.written, offset) }
        self.moved.signal()
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let (bytes, counts) = self.state.withLock { state in
            state.outcome = outcome
            return (state.given, state.counts)
        }
        self.moved.signal()
        self.storing.ended(outcome, bytes: bytes, counts: counts)
    }
}
