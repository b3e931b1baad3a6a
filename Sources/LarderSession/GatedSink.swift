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
        self.inner.write(piece)
    }

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

    /// The same when the store has taken all of it, and can give it back.
    func whenWritten(_ completion: @escaping @Sendable (Bool) -> Void) {
        self.whenWhole { isWhole in
            guard isWhole else { return completion(false) }
            self.relay.whenWritten(self.state.withLock { $0.count }, completion)
        }
    }
}

/// Stands between a store's sink and the one who hears of it, and notes how far the store is.
final class SinkRelay: ObjectSinkObserver {
    private struct State {
        var written: UInt64 = 0
        var hasEnded = false
        var reason: SinkAbandonment?
        var waiters: [(offset: UInt64, completion: @Sendable (Bool) -> Void)] = []
    }

    private let observer: any ObjectSinkObserver
    private let state = Mutex(State())

    init(_ observer: any ObjectSinkObserver) {
        self.observer = observer
    }

    var hasEnded: Bool { self.state.withLock { $0.hasEnded } }

    /// Tells an abandonment that comes from now on by this reason.
    func endsAs(_ reason: SinkAbandonment) {
        self.state.withLock { $0.reason = reason }
    }

    func sink(written offset: UInt64) {
        let ready = self.state.withLock { state in
            state.written = max(state.written, offset)
            let written = state.written
            let ready = state.waiters.filter { $0.offset <= written }
            state.waiters.removeAll { $0.offset <= written }
            return ready
        }
        self.observer.sink(written: offset)
        for waiter in ready { waiter.completion(true) }
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let (waiters, reason) = self.state.withLock { state in
            state.hasEnded = true
            defer { state.waiters = [] }
            return (state.waiters, state.reason)
        }
        if let reason, case .abandoned = outcome {
            self.observer.sinkEnded(.abandoned(reason))
        } else {
            self.observer.sinkEnded(outcome)
        }
        for waiter in waiters { waiter.completion(false) }
    }

    /// Calls back once all bytes below `offset` are written, or (false) will not be.
    func whenWritten(_ offset: UInt64, _ completion: @escaping @Sendable (Bool) -> Void) {
        let isWritten: Bool? = self.state.withLock { state in
            if state.written >= offset { return true }
            if state.hasEnded { return false }
            state.waiters.append((offset, completion))
            return nil
        }
        if let isWritten { completion(isWritten) }
    }
}
