import LarderHTTP
import LarderStore
import NIOCore
import Synchronization

/// Takes a body into a store's sink, and commits it no sooner than a gate has said so.
///
/// Knows the store's progress by a relay between the store's sink and the fetch, which holds neither
/// of them longer than the store does.
final class GatedSink: ObjectSink {
    private enum Phase {
        case writing
        /// All bytes have been handed over.
        case whole(trailers: Fields)
        /// Committed, abandoned or given up.
        case over
    }

    private struct State {
        var phase = Phase.writing
        var decision: Bool?
        var count: UInt64 = 0
        var waiters: [@Sendable (Bool) -> Void] = []
    }

    private let inner: any ObjectSink
    private let relay: SinkRelay
    private let limit: UInt64
    /// Without, only the limit counts.
    private let isHeld: Bool
    private let state = Mutex(State())

    init(_ inner: any ObjectSink, relay: SinkRelay, limit: UInt64, isHeld: Bool) {
        self.inner = inner
        self.relay = relay
        self.limit = limit
        self.isHeld = isHeld
    }

    // MARK: The writer

    func write(_ piece: ByteBuffer) {
        let fits = self.state.withLock { state in
            state.count &+= UInt64(piece.readableBytes)
            return state.count <= self.limit
        }
        guard fits else {
            self.relay.endsAs(.tooLarge)
            return self.abandon()
        }
        if self.isHeld { self.relay.takes(piece) }
        self.inner.write(piece)
    }

    func hurry() { self.inner.hurry() }

    func commit(trailers: Fields) {
        guard self.isHeld else { return self.inner.commit(trailers: trailers) }
        let (decision, waiters) = self.state.withLock { state in
            guard case .writing = state.phase else {
                return (Bool?.none, [@Sendable (Bool) -> Void]())
            }
            state.phase = state.decision == nil ? .whole(trailers: trailers) : .over
            defer { state.waiters = [] }
            return (state.decision, state.waiters)
        }
        if let decision { self.end(commits: decision, trailers) }
        for waiter in waiters { waiter(decision == nil) }
    }

    func keep(completeLength: UInt64?) {
        // A part is nothing that the gate could look at.
        guard self.isHeld else { return self.inner.keep(completeLength: completeLength) }
        self.abandon()
    }

    func abandon() {
        let waiters = self.state.withLock { state in
            state.phase = .over
            defer { state.waiters = [] }
            return state.waiters
        }
        self.inner.abandon()
        for waiter in waiters { waiter(false) }
    }

    func reader(from offset: UInt64) -> (any BodySource)? {
        self.inner.reader(from: offset)
    }

    private func end(commits: Bool, _ trailers: Fields) {
        if commits { self.inner.commit(trailers: trailers) } else { self.inner.abandon() }
    }

    // MARK: The gate

    func decide(commits: Bool) {
        let trailers = self.state.withLock { state -> Fields? in
            guard state.decision == nil else { return nil }
            state.decision = commits
            guard case .whole(let trailers) = state.phase else { return nil }
            state.phase = .over
            return trailers
        }
        if let trailers { self.end(commits: commits, trailers) }
    }

    var isPossible: Bool {
        let isOver = self.state.withLock { state in
            if case .over = state.phase { return true }
            return false
        }
        return !isOver && !self.relay.hasEnded
    }

    func whenWhole(_ completion: @escaping @Sendable (Bool) -> Void) {
        let isWhole: Bool? = self.state.withLock { state in
            switch state.phase {
            case .whole: return true
            case .over: return false
            case .writing:
                state.waiters.append(completion)
                return nil
            }
        }
        if let isWhole { completion(isWhole) }
    }

    /// Reads back what was handed over, once that is all; nil where it is not to be had.
    func read(_ completion: @escaping @Sendable ([ByteBuffer]?) -> Void) {
        self.whenWhole { isWhole in
            // First: what leaves it from now on the store has.
            guard isWhole, let rest = self.relay.unwritten else { return completion(nil) }
            guard let source = self.inner.reader(from: 0) else {
                return completion(rest.start == 0 ? rest.pieces : nil)
            }
            BodyCollector(source) { pieces in
                completion(pieces.flatMap { rest.following($0) })
            }.begin()
        }
    }
}

/// The end of a body that a store has not told to be written.
struct UnwrittenBody: Sendable {
    /// Where it begins in the body.
    var start: UInt64 = 0
    var pieces: [ByteBuffer] = []

    mutating func append(_ piece: ByteBuffer) {
        self.pieces.append(piece)
    }

    /// Lets go of the pieces below `offset`.
    mutating func wrote(_ offset: UInt64) {
        while let first = self.pieces.first, self.start &+ UInt64(first.readableBytes) <= offset {
            self.start &+= UInt64(first.readableBytes)
            self.pieces.removeFirst()
        }
    }

    /// The whole, where `written` is its beginning; nil where bytes are missing in between.
    func following(_ written: [ByteBuffer]) -> [ByteBuffer]? {
        let end = written.reduce(UInt64(0)) { $0 &+ UInt64($1.readableBytes) }
        guard end >= self.start else { return nil }
        var known = Int(clamping: end - self.start)
        var whole = written
        for var piece in self.pieces {
            let skipped = min(known, piece.readableBytes)
            piece.moveReaderIndex(forwardBy: skipped)
            known -= skipped
            if piece.readableBytes > 0 { whole.append(piece) }
        }
        return whole
    }
}

/// Stands between a store's sink and the one who hears of it, and keeps what the store has not told to
/// be written: a store may hold the end of a body back until it is committed.
final class SinkRelay: ObjectSinkObserver {
    private struct State {
        var unwritten = UnwrittenBody()
        var hasEnded = false
        var reason: SinkAbandonment?
    }

    private let observer: any ObjectSinkObserver
    private let state = Mutex(State())

    init(_ observer: any ObjectSinkObserver) {
        self.observer = observer
    }

    var hasEnded: Bool { self.state.withLock { $0.hasEnded } }

    /// nil once the sink has ended.
    var unwritten: UnwrittenBody? {
        self.state.withLock { $0.hasEnded ? nil : $0.unwritten }
    }

    /// A piece is about to be given to the sink.
    func takes(_ piece: ByteBuffer) {
        self.state.withLock { $0.unwritten.append(piece) }
    }

    /// Tells an abandonment that comes from now on by this reason.
    func endsAs(_ reason: SinkAbandonment) {
        self.state.withLock { $0.reason = reason }
    }

    func sink(written offset: UInt64) {
        self.state.withLock { $0.unwritten.wrote(offset) }
        self.observer.sink(written: offset)
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let reason = self.state.withLock { state in
            state.hasEnded = true
            state.unwritten = UnwrittenBody()
            return state.reason
        }
        if let reason, case .abandoned = outcome {
            self.observer.sinkEnded(.abandoned(reason))
        } else {
            self.observer.sinkEnded(outcome)
        }
    }
}
