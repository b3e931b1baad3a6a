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
    /// What it has written can be read as long as it lives, whatever becomes of the entry.
    ///
    /// From before its first segment is written: most responses have none before their commit. What is
    /// added to is held from the beginning.
    private let hold: Mutex<BodyHold?>

    init(state: SinkState) {
        self.state = state
        self.hold = Mutex(state.isAddition ? BodyHold(core: state.core, id: state.id) : nil)
    }

    deinit {
        self.state.abandon(.byWriter)
    }

    func write(_ piece: ByteBuffer) { self.state.write(piece) { _ = self.held() } }
    func hurry() { self.state.core.mailbox.hurry() }
    func commit(trailers: Fields) { self.state.commit(trailers: trailers) }
    func keep(completeLength: UInt64?) { self.state.keep(completeLength: completeLength) }
    func abandon() { self.state.abandon(.byWriter) }

    func reader(from offset: UInt64) -> (any BodySource)? {
        self.state.reader(from: offset, self.held())
    }

    /// The hold, which begins now where there was none.
    private func held() -> BodyHold {
        if let hold = self.hold.withLock({ $0 }) { return hold }
        let new = BodyHold(core: self.state.core, id: self.state.id)
        return self.hold.withLock { hold in
            if let hold { return hold }
            hold = new
            return new
        }
    }
}

/// What the rules of admission said to a response, and by what it is remembered if they turn it away.
struct SinkAdmission: Sendable {
    var verdict: AdmissionRules.Verdict
    var fingerprint: UInt64?
}

/// One body on its way to the disk, as the writer knows it.
///
/// ```
/// open ─commit─▶ committing ─▶ ended(.visible)
///   └──abandon, refusal, failure─▶ leaving ─▶ ended(.abandoned)
/// ```
///
/// It cuts the stream into segments, which do not depend on where it begins. The observer is called
/// by the writer's thread, or by whoever calls the sink when the writer is gone.
final class SinkState: Sendable {
    /// What its bytes become.
    enum Role: Sendable {
        /// A new response, or a part of one where its head has an extent.
        case new(StoredHead, replacing: [ObjectID])
        /// More of a partial response.
        case addition(completeLength: UInt64?)
    }

    private enum Phase { case open, committing, leaving, ended }

    private struct State {
        var phase = Phase.open
        var observer: (any ObjectSinkObserver)?
        /// Pieces of the segment that is not full yet.
        var pieces: [ByteBuffer] = []
        var length = 0
        var nextIndex: UInt32
        /// Where in its cell that segment begins.
        var cellStart: Int
        /// All bytes that were handed in.
        var received: UInt64 = 0
        /// Bytes in segments that are committed.
        var written: UInt64 = 0
    }

    let id: ObjectID
    let key: CacheKey
    let role: Role
    /// Where its bytes begin in the representation.
    let start: UInt64
    private let expected: UInt64?
    private let admission: SinkAdmission
    let core: DiskCore
    private let state: Mutex<State>

    /// - Parameters:
    ///   - start: at most the bound of what an object may take.
    ///   - expected: how many bytes will come, where that is known.
    init(
        id: ObjectID, key: CacheKey, role: Role, start: UInt64 = 0, expected: UInt64?,
        admission: SinkAdmission = SinkAdmission(verdict: .admit(below: nil)),
        observer: any ObjectSinkObserver, core: DiskCore
    ) {
        self.id = id
        self.key = key
        self.role = role
        self.start = start
        self.expected = expected
        self.admission = admission
        self.core = core
        let index = Segment.index(of: start)
        self.state = Mutex(
            State(
                observer: observer, nextIndex: index,
                cellStart: Int(start - Segment.offset(of: index))))
    }

    var isAddition: Bool {
        if case .addition = self.role { true } else { false }
    }

    /// About the bytes that its head and its key take.
    var headBytes: Int {
        guard case .new(let head, _) = self.role else { return self.key.bytes.count }
        return self.key.bytes.count + head.bytes
    }

    /// Whether its bytes are not all of a representation.
    private var isPart: Bool {
        switch self.role {
        case .new(let head, _): head.extent != nil
        case .addition: true
        }
    }

    /// The segment that it writes first.
    var firstIndex: UInt32 { Segment.index(of: self.start) }

    // MARK: The producer's side

    /// - Parameter willWrite: called before the writer gets a segment.
    func write(_ piece: ByteBuffer, willWrite: () -> Void) {
        guard piece.readableBytes > 0 else { return }
        let room = self.core.configuration.objectLimit
        let limit = min(room - min(room, self.start), self.expected ?? .max)
        let (full, isTurnedAway) = self.state.withLock { state -> ([SegmentDraft]?, Bool) in
            guard state.phase == .open else { return ([], false) }
            state.received += UInt64(piece.readableBytes)
            if state.received > limit { return (nil, false) }
            if case .admit(let bound?) = self.admission.verdict, state.received >= bound.bytes {
                return (nil, true)
            }
            return (Self.cut(piece, &state), false)
        }
        if isTurnedAway {
            self.rememberTurnedAway()
            return self.abandon(.largeSeenOnce)
        }
        guard let full else {
            // More than was said is a broken body, more than is allowed a large one.
            return self.abandon(self.expected == nil ? .tooLarge : .byWriter)
        }
        if !full.isEmpty { willWrite() }
        for draft in full { self.post(.segment(self, draft)) }
    }

    /// Ends it before a byte has come: the rules of admission want a second request.
    func turnAway(_ reason: SinkAbandonment) {
        self.rememberTurnedAway()
        self.end(.abandoned(reason))
    }

    private func rememberTurnedAway() {
        guard let fingerprint = self.admission.fingerprint else { return }
        self.core.ghosts.withLock { $0.insert(fingerprint, size: 0) }
    }

    /// Takes `piece` into the open segment, and returns those that it made full.
    private static func cut(_ piece: ByteBuffer, _ state: inout State) -> [SegmentDraft] {
        var full: [SegmentDraft] = []
        var rest = piece
        while rest.readableBytes > 0 {
            let room = Segment.payloadSize - state.cellStart - state.length
            let count = min(rest.readableBytes, room)
            guard let part = rest.readSlice(length: count) else { break }
            Self.append(part, to: &state.pieces)
            state.length += count
            if count == room {
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
            index: state.nextIndex, start: state.cellStart, pieces: state.pieces,
            length: state.length)
        state.nextIndex &+= 1
        state.cellStart = 0
        state.pieces = []
        state.length = 0
        return draft
    }

    func commit(trailers: Fields) {
        // A part may be shorter than it was said to be: what came of it stays.
        if self.isPart { return self.keep(completeLength: nil) }
        let isShort = self.state.withLock { state in
            self.expected.map { $0 != state.received } ?? false
        }
        // Never store a body as whole that is shorter than it was said to be.
        if isShort { return self.abandon(.byWriter) }
        self.finish(trailers: trailers, isWhole: true, completeLength: nil)
    }

    func keep(completeLength: UInt64?) {
        let isEmpty = self.state.withLock { $0.received == 0 }
        switch self.role {
        case .addition(let known):
            self.finish(isWhole: false, completeLength: completeLength ?? known)
        case .new where isEmpty:
            self.abandon(.byWriter)
        case .new(let head, _):
            let known = head.extent == nil ? self.expected : head.extent?.completeLength
            self.finish(isWhole: false, completeLength: completeLength ?? known)
        }
    }

    private func finish(trailers: Fields = Fields(), isWhole: Bool, completeLength: UInt64?) {
        let draft: ObjectDraft? = self.state.withLock { state in
            guard state.phase == .open else { return nil }
            state.phase = .committing
            return ObjectDraft(
                trailers: trailers, received: state.received, isWhole: isWhole,
                completeLength: completeLength,
                last: state.length > 0 ? Self.takeSegment(&state) : nil)
        }
        if let draft {
            self.core.landingBegan(self)
            self.post(.commit(self, draft))
            self.core.landingPosted(self)
            self.core.releaseClaim(of: self)
        }
    }

    func abandon(_ reason: SinkAbandonment) {
        let isFirst = self.state.withLock { state in
            guard state.phase == .open else { return false }
            state.phase = .leaving
            state.pieces = []
            return true
        }
        if isFirst {
            self.post(.abandon(self, reason))
            self.core.releaseClaim(of: self)
        }
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

    func reader(from offset: UInt64, _ hold: BodyHold) -> (any BodySource)? {
        let written = self.state.withLock { $0.written }
        guard offset <= written else { return nil }
        return DiskReader(
            core: self.core, id: self.id, key: self.key, hold: hold,
            range: self.start + offset..<self.start + written, trailers: Fields())
    }

    // MARK: The writer's side

    /// Whether its segments are still wanted.
    var isWanted: Bool {
        self.state.withLock { $0.phase == .open || $0.phase == .committing }
    }

    /// Segments up to `offset`, counted from where it began, are committed.
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
        let lookups = self.core.sinkEnded(self)
        observer?.sinkEnded(outcome)
        for lookup in lookups { lookup() }
    }
}
