import LarderHTTP
import NIOCore

/// The bytes of some consecutive segments, as far as they could be had.
struct SegmentsRead: Sendable {
    enum End: Sendable {
        /// All that was asked for.
        case complete
        /// The next segment is not in memory, and the call must not wait for it.
        case notResident
        case failed(SegmentReadFailure)
    }

    var pieces: [ByteBuffer] = []
    var end = End.complete
}

/// What one reader of a body does next: a value.
///
/// ```
///          ┌───────────── resident ──────────────┐
///          ▼                                     │
///   ─▶ (nothing ready) ──asked──▶ reading in place
///          ▲                                     │ not resident
///          │                                     ▼
///      (pieces ready) ◀──stepFinished── waiting for a step on the pool
/// ```
///
/// At most one step is under way, begun only when nothing is ready and a reader asks: what a slow
/// reader costs is one step. A step is one segment at first, for the reader has nothing yet; and more
/// where all of the last one was in memory, so that one transaction serves for several. What keeps the
/// disk busy meanwhile is ``ReadAhead``, which costs the process nothing.
struct BodyReading: ~Copyable {
    /// What the one who asked gets, or must do for it.
    enum Turn {
        case piece(ByteBuffer)
        case end
        case failed(BodyFailure)
        case pending
        /// Read this on the calling thread without waiting, and say what came of it.
        case readInPlace(Range<UInt64>)
    }

    /// Work for the pool.
    struct Job: Sendable, Equatable {
        /// The kernel is to be told of this.
        var hint: Range<UInt64>?
        /// This is to be read, however long it takes.
        var step: Range<UInt64>?
    }

    private enum Phase {
        case idle
        case inPlace
        case onPool
        /// Its last word, given again whenever it is asked.
        case over(BodyFailure)
    }

    /// Segments that one step reads, but for the first.
    private static let segmentsPerStep: UInt32 = 4

    private let end: UInt64
    private var offset: UInt64
    private var phase = Phase.idle
    /// Read and not taken, the next one last.
    private var ready: [ByteBuffer] = []
    /// What the reader hears once it has taken all that is ready.
    private var failure: BodyFailure?
    private var readerWaits = false
    private var steps = 0
    /// Segments that the next step in place reads.
    private var segmentsInPlace: UInt32 = 1
    private var ahead = ReadAhead()
    private var job: Job?

    init(range: Range<UInt64>) {
        self.offset = range.lowerBound
        self.end = range.upperBound
    }

    var isOver: Bool {
        if case .over = self.phase { true } else { false }
    }

    /// The reader asks for the next bytes.
    mutating func asked() -> Turn {
        if case .over(let failure) = self.phase { return .failed(failure) }
        if let piece = self.ready.popLast() { return .piece(piece) }
        if let failure = self.failure { return .failed(failure) }
        switch self.phase {
        case .onPool:
            self.readerWaits = true
            return .pending
        case .idle where self.offset < self.end:
            self.phase = .inPlace
            return .readInPlace(self.offset..<self.stepEnd(segments: self.segmentsInPlace))
        case .idle: return .end
        case .over(let failure): return .failed(failure)
        case .inPlace: preconditionFailure("a body is asked by one thread at a time")
        }
    }

    /// What the reading came to that the last turn asked for; never another `.readInPlace`.
    mutating func readInPlace(_ read: SegmentsRead) -> Turn {
        if case .over(let failure) = self.phase { return .failed(failure) }
        self.phase = .idle
        self.take(read)
        if case .complete = read.end {
            self.segmentsInPlace = Self.segmentsPerStep
        } else {
            self.segmentsInPlace = 1
        }
        if let piece = self.ready.popLast() {
            if let hint = self.ahead.advanced(to: self.offset, end: self.end) {
                self.job = Job(hint: hint)
            }
            return .piece(piece)
        }
        if let failure = self.failure { return .failed(failure) }
        self.phase = .onPool
        self.readerWaits = true
        let step =
            self
            .offset..<self.stepEnd(
                segments: self.steps == 0 ? 1 : Self.segmentsPerStep)
        self.steps += 1
        self.job = Job(hint: self.ahead.missed(at: self.offset, end: self.end), step: step)
        return .pending
    }

    /// The step on the pool has ended; whether the reader waits and must be woken.
    mutating func stepFinished(_ read: SegmentsRead) -> Bool {
        guard case .onPool = self.phase else { return false }
        self.phase = .idle
        self.take(read)
        defer { self.readerWaits = false }
        return self.readerWaits
    }

    /// No step can be made any more.
    mutating func stepRefused(_ failure: BodyFailure) -> Bool {
        guard case .onPool = self.phase else { return false }
        self.phase = .idle
        self.failure = failure
        defer { self.readerWaits = false }
        return self.readerWaits
    }

    /// What the last call left to be done on the pool.
    mutating func takeJob() -> Job? {
        self.job.take()
    }

    /// The reader has gone, or has had the last of it.
    mutating func finish() {
        if self.isOver { return }
        self.phase = .over(self.failure ?? .cancelled)
        self.ready = []
        self.job = nil
    }

    private mutating func take(_ read: SegmentsRead) {
        for piece in read.pieces { self.offset += UInt64(piece.readableBytes) }
        // A step begins when nothing is ready: these are all.
        self.ready = read.pieces.reversed()
        if case .failed(let failure) = read.end { self.failure = .store(failure.description) }
    }

    /// Where a step that begins here ends: always beyond it, as the body does.
    private func stepEnd(segments: UInt32) -> UInt64 {
        let (next, overflow) = Segment.index(of: self.offset).addingReportingOverflow(segments)
        return overflow ? self.end : min(self.end, Segment.offset(of: next))
    }
}
