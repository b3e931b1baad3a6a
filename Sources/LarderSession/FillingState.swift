import LarderHTTP
import LarderStore
import NIOCore

/// The body side of a filling, as a value: what is held, who reads it, whether more is wanted.
///
/// ```
/// streaming ─▶ complete | failed
/// ```
///
/// Bytes `base ..< end` lie in memory. A piece is let go when every reader is past it, or can get
/// it back from the sink, and the sink has taken it. While the whole body so far is smaller than the
/// window nothing is let go, so that a late client may still join at the beginning.
struct FillingState {
    enum Phase {
        case streaming
        case complete(Fields)
        case failed(BodyFailure)
    }

    /// The store's side of it.
    enum Sink {
        case none
        /// Taking the body; bytes below `written` can be read back.
        case writing(any ObjectSink, written: UInt64)
        /// Ended, but a reader that lags still reads back what was written.
        case drained(any ObjectSink, written: UInt64)
    }

    struct Reader {
        let id: UInt64
        var offset: UInt64
        var isWaiting: Bool
        var wake: (@Sendable () -> Void)?
        /// It has asked for bytes.
        var hasBegun = false
    }

    /// What a reader gets when it asks.
    enum Step {
        case body(BodyStep)
        /// The bytes from here on are no longer in memory: ask the sink.
        case readBack(any ObjectSink, from: UInt64)
    }

    private(set) var phase = Phase.streaming
    private(set) var sink = Sink.none
    private(set) var end: UInt64 = 0
    private(set) var base: UInt64 = 0
    private(set) var readers: [Reader] = []
    private(set) var isPaused = false
    /// The sink gives back what it has written.
    private var sinkReadsBack = false
    /// The sink has got the whole body, though its end may still have to be told.
    private var sinkIsWhole = false
    /// Further readers may come, who begin at the beginning or further on.
    private var isShared = true
    private var pieces = PieceQueue()
    private var nextReader: UInt64 = 0
    /// Readers may have far to go elsewhere before they come to these bytes: who has not begun waits
    /// for nothing, and asks for them anew where they are gone by then.
    var readersBeginLate = false
    /// Readers that have not begun, and for whom nothing is held.
    private var leftBehind: Set<UInt64> = []
    /// Readers that were cut off and may still ask.
    private var gone: Set<UInt64> = []
    private var window: UInt64
    /// Where the body had got to when the sink was hurried last.
    private var hurriedAt: UInt64 = 0

    /// The window where nobody but the present readers needs it: enough to keep the origin busy.
    private static let unsharedWindow: UInt64 = 262_144

    /// - Parameter isPart: of the whole: of its beginning no more is held for those who come late.
    init(window: ByteCount, isPart: Bool = false) {
        self.window = max(isPart ? min(window.bytes, Self.unsharedWindow) : window.bytes, 1)
    }

    // MARK: The fetch's side

    mutating func begin(sink: any ObjectSink, readsBack: Bool) {
        self.sink = .writing(sink, written: 0)
        self.sinkReadsBack = readsBack
    }

    /// The response is for those who have waited for its head, and nobody else.
    mutating func becomesUnshared() {
        self.isShared = false
        self.window = min(self.window, Self.unsharedWindow)
    }

    /// The sink that wants the pieces, while it does.
    var writingSink: (any ObjectSink)? {
        if case .writing(let sink, _) = self.sink { return sink }
        return nil
    }

    mutating func append(_ piece: ByteBuffer) -> [@Sendable () -> Void] {
        guard case .streaming = self.phase else { return [] }
        self.end &+= UInt64(piece.readableBytes)
        self.pieces.append(piece)
        return self.takeWakes()
    }

    mutating func finish(_ phase: Phase) -> [@Sendable () -> Void] {
        guard case .streaming = self.phase else { return [] }
        self.phase = phase
        return self.takeWakes()
    }

    /// Whether the origin should go on, asked after each piece.
    ///
    /// Remembers a pause.
    mutating func demand() -> UpstreamDemand {
        self.letGo()
        self.isPaused = self.end &- self.base >= self.window
        return self.isPaused ? .pause : .more
    }

    /// The sink, where what it has not taken yet keeps the origin waiting, and nothing else does or its
    /// time begins: once for each pause.
    ///
    /// A store may wait for more, so that much shares a commit; here no more comes.
    mutating func sinkToHurry() -> (any ObjectSink)? {
        guard self.isPaused, self.hurriedAt != self.end,
            case .writing(let sink, let written) = self.sink, written < self.end,
            self.needed == written || self.isHeldUpBySink
        else { return nil }
        self.hurriedAt = self.end
        return sink
    }

    /// Whether the sink keeps the origin waiting, and a reader with it.
    ///
    /// Where others take no more than it does, too, it has its time all the same: theirs begins when
    /// it has caught up or is given up (`laggards`), and with neither nothing would ever move.
    var isHeldUpBySink: Bool {
        guard self.isPaused, case .writing(_, let written) = self.sink, written < self.end else {
            return false
        }
        let ahead = self.readers.count { $0.offset > written }
        return ahead > 0 && (ahead == self.readers.count || self.holdsUp(written))
    }

    // MARK: The sink's side

    /// - Returns: whether the origin, paused before, should go on.
    mutating func sinkWritten(_ offset: UInt64) -> Bool {
        guard case .writing(let sink, let written) = self.sink else { return false }
        self.sink = .writing(sink, written: max(written, min(offset, self.end)))
        return self.resumes()
    }

    /// The sink has ended, or is to be given up.
    ///
    /// What it holds stays readable for those who lag.
    ///
    /// - Parameter isWhole: it has got the whole body.
    mutating func stopSink(isWhole: Bool = false) -> Bool {
        guard case .writing(let sink, let written) = self.sink else { return false }
        self.sink = .drained(sink, written: written)
        self.sinkIsWhole = isWhole
        self.leaveBehind()
        return self.resumes()
    }

    /// The sink gives back all that it has been given.
    var sinkGivesBack: Bool { self.sinkReadsBack && self.writingSink != nil }

    var sinkWritten: UInt64? {
        switch self.sink {
        case .none: nil
        case .writing(_, let written), .drained(_, let written): written
        }
    }

    // MARK: The readers' side

    /// Whether a new reader would still get the whole body.
    var isJoinable: Bool { self.isReadable(from: 0) }

    /// Whether a new reader would still get all bytes from here on.
    func isReadable(from offset: UInt64) -> Bool {
        if case .failed = self.phase { return false }
        if offset >= self.base { return true }
        if case .writing(_, let written) = self.sink {
            return self.sinkReadsBack && written >= self.base
        }
        return false
    }

    /// - Parameter offset: of the first byte that it wants, which may be still to come.
    mutating func addReader(at offset: UInt64 = 0) -> UInt64 {
        let id = self.nextReader
        self.nextReader &+= 1
        self.readers.append(Reader(id: id, offset: offset, isWaiting: false, wake: nil))
        return id
    }

    mutating func attach(_ id: UInt64, wake: @escaping @Sendable () -> Void) {
        guard let i = self.readers.firstIndex(where: { $0.id == id }) else { return }
        self.readers[i].wake = wake
    }

    /// - Returns: whether the origin, paused before, should go on.
    mutating func removeReader(_ id: UInt64) -> Bool {
        self.readers.removeAll { $0.id == id }
        self.leftBehind.remove(id)
        return self.resumes()
    }

    /// A reader is about to ask for its first bytes.
    ///
    /// - Returns: whether they are there for it, and whether the origin, paused before, should go on.
    mutating func begin(_ id: UInt64) -> (mayRead: Bool, resumes: Bool) {
        if self.leftBehind.remove(id) != nil { return (false, false) }
        guard let i = self.readers.firstIndex(where: { $0.id == id }) else { return (true, false) }
        self.readers[i].hasBegun = true
        self.leaveBehind()
        return (true, self.resumes())
    }

    /// A reader took `count` bytes from the sink, or does not want them.
    mutating func advance(_ id: UInt64, by count: Int) -> Bool {
        guard let i = self.readers.firstIndex(where: { $0.id == id }) else { return false }
        self.readers[i].offset &+= UInt64(count)
        return self.resumes()
    }

    /// The next bytes for a reader, and whether the origin, paused before, should go on.
    mutating func next(_ id: UInt64) -> (step: Step, resumes: Bool) {
        guard let i = self.readers.firstIndex(where: { $0.id == id }) else {
            let failure = self.gone.contains(id) ? Self.tookNothing : .cancelled
            return (.body(.failed(failure)), false)
        }
        let offset = self.readers[i].offset
        if offset < self.base {
            switch self.sink {
            case .writing(let sink, _), .drained(let sink, _):
                return (.readBack(sink, from: offset), false)
            case .none:
                return (.body(.failed(.store("the bytes a slow reader needed are gone"))), false)
            }
        }
        if offset < self.end {
            let piece = self.pieces.piece(at: offset &- self.base)
            self.readers[i].offset = offset &+ UInt64(piece.readableBytes)
            return (.body(.piece(piece)), self.resumes())
        }
        switch self.phase {
        case .streaming:
            self.readers[i].isWaiting = true
            return (.body(.pending), false)
        case .complete(let trailers): return (.body(.end(trailers: trailers)), false)
        case .failed(let failure): return (.body(.failed(failure)), false)
        }
    }

    // MARK: Readers that lag

    /// For whom alone the origin waits, while another reader has all that came: how far each is.
    ///
    /// Not those whose bytes the sink gives back, and nobody while the sink has to catch up itself.
    var laggards: [UInt64: UInt64] {
        guard self.isPaused, case .streaming = self.phase, self.readers.count > 1,
            self.readers.contains(where: { $0.isWaiting })
        else { return [:] }
        if case .writing(_, let written) = self.sink, self.holdsUp(written) { return [:] }
        let readBack = self.sinkReadsBack ? self.sinkWritten ?? 0 : 0
        var laggards: [UInt64: UInt64] = [:]
        for reader in self.readers where self.holdsUp(max(reader.offset, readBack)) {
            laggards[reader.id] = reader.offset
        }
        return laggards
    }

    /// Takes their part in the body away from readers that lag: what they ask for next has failed.
    ///
    /// - Returns: whether the origin, paused before, should go on.
    mutating func cutOff(_ ids: Set<UInt64>) -> Bool {
        self.readers.removeAll { ids.contains($0.id) }
        self.gone.formUnion(ids)
        return self.resumes()
    }

    private static let tookNothing = BodyFailure.client(
        "it took nothing for too long, and others waited for the rest")

    // MARK: Inside

    /// Holds nothing more for those who have not begun, where the sink will not give it back either and
    /// others, who have begun, would wait for them.
    private mutating func leaveBehind() {
        guard self.readersBeginLate, !self.sinkGivesBack, !self.sinkIsWhole,
            case .streaming = self.phase, self.readers.contains(where: { $0.hasBegun })
        else { return }
        for reader in self.readers where !reader.hasBegun { self.leftBehind.insert(reader.id) }
        self.readers.removeAll { !$0.hasBegun }
    }

    /// Whether a pause lasts as long as bytes from here on are needed.
    ///
    /// Not measured from the beginning of the piece that holds the first needed byte: with large
    /// ones, what a sink keeps until it has a whole segment would keep the origin waiting for ever.
    private func holdsUp(_ offset: UInt64) -> Bool {
        self.end &- max(self.base, min(offset, self.end)) > self.window / 2
    }

    private mutating func takeWakes() -> [@Sendable () -> Void] {
        var wakes: [@Sendable () -> Void] = []
        for i in self.readers.indices where self.readers[i].isWaiting {
            self.readers[i].isWaiting = false
            if let wake = self.readers[i].wake { wakes.append(wake) }
        }
        return wakes
    }

    private mutating func resumes() -> Bool {
        self.letGo()
        self.releaseSink()
        guard self.isPaused, !self.holdsUp(self.needed) else { return false }
        self.isPaused = false
        return true
    }

    /// The first byte that somebody still needs in memory.
    private var needed: UInt64 {
        var needed = self.end
        if case .writing(_, let written) = self.sink { needed = min(needed, written) }
        let readBack = self.sinkReadsBack ? self.sinkWritten ?? 0 : 0
        for reader in self.readers { needed = min(needed, max(reader.offset, readBack)) }
        return needed
    }

    /// Lets go of a sink that has ended, when no reader needs what it has.
    private mutating func releaseSink() {
        guard case .drained = self.sink, self.readers.allSatisfy({ $0.offset >= self.base }) else {
            return
        }
        self.sink = .none
    }

    private mutating func letGo() {
        // From exactly a window on the origin pauses: unless something goes, it never resumes.
        guard self.end >= self.window || !self.isShared else { return }
        let needed = self.needed
        while let first = self.pieces.first,
            self.base &+ UInt64(first.readableBytes) <= needed
        {
            self.base &+= UInt64(first.readableBytes)
            _ = self.pieces.popFirst()
        }
    }
}
