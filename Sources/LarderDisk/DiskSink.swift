import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// One body on its way to the disk, as its producer holds it.
///
/// Released without `commit`, it abandons what it wrote.
final class DiskSink: ObjectSink {
    private let state: SinkState

    init(state: SinkState) {
        self.state = state
        // What it has written can be read as long as it is held, whatever becomes of the entry.
        state.core.beginReading(state.id)
    }

    deinit {
        self.state.abandon(.byWriter)
        self.state.core.endReading(self.state.id)
    }

    func write(_ piece: ByteBuffer) { self.state.write(piece) }
    func commit(trailers: Fields) { self.state.commit(trailers: trailers) }
    func abandon() { self.state.abandon(.byWriter) }

    func reader(from offset: UInt64) -> (any BodySource)? {
        self.state.reader(from: offset)
    }
}

/// One body on its way to the disk, as the writer knows it.
///
/// ```
/// open ─commit─▶ committing ─▶ ended(.visible)
///   └──abandon, refusal, failure─▶ leaving ─▶ ended(.abandoned)
/// ```
///
/// It cuts the stream into segments. The observer is called by the writer's thread, or by whoever
/// calls the sink when the writer is gone.
final class SinkState: Sendable {
    private enum Phase { case open, committing, leaving, ended }

    private struct State {
        var phase = Phase.open
        var observer: (any ObjectSinkObserver)?
        /// Pieces of the segment that is not full yet.
        var pieces: [ByteBuffer] = []
        var length = 0
        var nextIndex: UInt32 = 0
        /// All bytes that were handed in.
        var received: UInt64 = 0
        /// Bytes in segments that are committed.
        var written: UInt64 = 0
    }

    let id: ObjectID
    let key: CacheKey
    let head: StoredHead
    let replacing: [ObjectID]
    private let expected: UInt64?
    let core: DiskCore
    private let state: Mutex<State>

    init(
        id: ObjectID, key: CacheKey, head: StoredHead, expected: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver, core: DiskCore
    ) {
        self.id = id
        self.key = key
        self.head = head
        self.expected = expected
        self.replacing = replacing
        self.core = core
        self.state = Mutex(State(observer: observer))
    }

    // MARK: The producer's side

    func write(_ piece: ByteBuffer) {
        guard piece.readableBytes > 0 else { return }
        let limit = min(self.core.configuration.objectLimit, self.expected ?? .max)
        let full: [SegmentDraft]? = self.state.withLock { state in
            guard state.phase == .open else { return [] }
            state.received += UInt64(piece.readableBytes)
            if state.received > limit { return nil }
            return Self.cut(piece, &state)
        }
        guard let full else {
            // More than was said is a broken body, more than is allowed a large one.
            return self.abandon(self.expected == nil ? .tooLarge : .byWriter)
        }
        for draft in full { self.post(.segment(self, draft)) }
    }

    /// Takes `piece` into the open segment, and returns those that it made full.
    private static func cut(_ piece: ByteBuffer, _ state: inout State) -> [SegmentDraft] {
        var full: [SegmentDraft] = []
        var rest = piece
        while rest.readableBytes > 0 {
            let count = min(rest.readableBytes, Segment.payloadSize - state.length)
            guard let part = rest.readSlice(length: count) else { break }
            Self.append(part, to: &state.pieces)
            state.length += count
            if state.length == Segment.payloadSize {
                full.append(Self.takeSegment(&state))
            }
        }
        return full
    }

    /// Small pieces are gathered in one buffer: each would keep its whole allocation alive.
    private static func append(_ part: ByteBuffer, to pieces: inout [ByteBuffer]) {
        if part.readableBytes < 4096 {
            if let last = pieces.indices.last, pieces[last].readableBytes < 32_768 {
                pieces[last].writeImmutableBuffer(part)
            } else {
                var gathered = ByteBufferAllocator().buffer(capacity: part.readableBytes)
                gathered.writeImmutableBuffer(part)
                pieces.append(gathered)
            }
        } else {
            pieces.append(part)
        }
    }

    private static func takeSegment(_ state: inout State) -> SegmentDraft {
        let draft = SegmentDraft(
            index: state.nextIndex, pieces: state.pieces, length: state.length)
        state.nextIndex &+= 1
        state.pieces = []
        state.length = 0
        return draft
    }

    func commit(trailers: Fields) {
        let draft: ObjectDraft?? = self.state.withLock { state in
            guard state.phase == .open else { return .some(nil) }
            if let expected = self.expected, expected != state.received { return nil }
            state.phase = .committing
            let last = state.length > 0 ? Self.takeSegment(&state) : nil
            return ObjectDraft(
                trailers: trailers, bodyLength: state.received, segmentCount: state.nextIndex,
                last: last)
        }
        guard let draft else {
            // Never store a body that is shorter than it was said to be.
            return self.abandon(.byWriter)
        }
        if let draft { self.post(.commit(self, draft)) }
    }

    func abandon(_ reason: SinkAbandonment) {
        let isFirst = self.state.withLock { state in
            guard state.phase == .open else { return false }
            state.phase = .leaving
            state.pieces = []
            return true
        }
        if isFirst { self.post(.abandon(self, reason)) }
    }

    private func post(_ command: WriteCommand) {
        switch self.core.mailbox.post(command) {
        case .accepted: return
        case .closed: self.end(.abandoned(.closing))
        case .full:
            let leaves = self.state.withLock { state in
                guard state.phase == .open || state.phase == .committing else { return false }
                state.phase = .leaving
                state.pieces = []
                return true
            }
            if leaves { self.post(.abandon(self, .tooSlow)) }
        }
    }

    func reader(from offset: UInt64) -> (any BodySource)? {
        let written = self.state.withLock { $0.written }
        guard offset <= written else { return nil }
        return DiskReader(
            core: self.core, id: self.id, key: self.key, bodyLength: written,
            range: offset..<written, trailers: Fields())
    }

    // MARK: The writer's side

    /// Whether its segments are still wanted.
    var isWanted: Bool {
        self.state.withLock { $0.phase == .open || $0.phase == .committing }
    }

    /// Segments up to `offset` are committed.
    func wrote(upTo offset: UInt64) {
        let observer = self.state.withLock { state -> (any ObjectSinkObserver)? in
            guard state.phase != .ended else { return nil }
            state.written = max(state.written, offset)
            return state.observer
        }
        observer?.sink(written: offset)
    }

    /// Tells the observer the end, unless it was told before.
    func end(_ outcome: SinkOutcome) {
        let observer = self.state.withLock { state -> (any ObjectSinkObserver)? in
            guard state.phase != .ended else { return nil }
            state.phase = .ended
            state.pieces = []
            return state.observer.take()
        }
        self.core.sinkEnded(self.id)
        observer?.sinkEnded(outcome)
    }
}
