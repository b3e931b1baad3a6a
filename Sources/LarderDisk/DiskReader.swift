import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Reads a range of a body from the disk, a few segments at a time.
///
/// Each step is a job for the store's reader threads: one short transaction, in which every
/// segment's checksum is verified before its bytes are copied. Between steps nothing is held but
/// the entry's place among those that are being read, which spares its segments from deletion.
/// So a slow consumer costs at most one step's bytes, and never a transaction.
final class DiskReader: BodySource {
    /// Segments that one step reads.
    private static let segmentsPerStep: UInt32 = 4

    private struct State {
        var wake: (@Sendable () -> Void)?
        /// Pieces that are read and not taken, the next one last.
        var ready: [ByteBuffer] = []
        var offset: UInt64
        var isReading = false
        var readerWaits = false
        var failure: BodyFailure?
        var isDone = false
    }

    private let core: DiskCore
    private let id: ObjectID
    private let key: CacheKey
    private let end: UInt64
    private let trailers: Fields
    private let state: Mutex<State>

    /// - Parameter range: all of it must be stored, or written by a sink.
    init(
        core: DiskCore, id: ObjectID, key: CacheKey, range: Range<UInt64>, trailers: Fields
    ) {
        self.core = core
        self.id = id
        self.key = key
        self.end = range.upperBound
        self.trailers = trailers
        self.state = Mutex(State(offset: range.lowerBound))
        core.beginReading(id)
    }

    deinit {
        self.finish()
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    func next() -> BodyStep {
        let (step, reads, isEnd) = self.state.withLock { state -> (BodyStep, Bool, Bool) in
            if let piece = state.ready.popLast() {
                let reads = state.ready.isEmpty && self.mayRead(state)
                if reads { state.isReading = true }
                return (.piece(piece), reads, false)
            }
            if let failure = state.failure { return (.failed(failure), false, true) }
            if state.isDone { return (.failed(.cancelled), false, true) }
            if state.offset >= self.end {
                return (.end(trailers: self.trailers), false, true)
            }
            state.readerWaits = true
            let reads = self.mayRead(state)
            if reads { state.isReading = true }
            return (.pending, reads, false)
        }
        if reads { self.startReading() }
        if isEnd { self.finish() }
        return step
    }

    private func mayRead(_ state: State) -> Bool {
        !state.isReading && !state.isDone && state.failure == nil && state.offset < self.end
    }

    func cancel() {
        self.finish()
    }

    /// Gives up its place among the readers; harmless when repeated.
    private func finish() {
        let isFirst = self.state.withLock { state in
            let isFirst = !state.isDone
            state.isDone = true
            state.ready = []
            state.wake = nil
            return isFirst
        }
        if isFirst { self.core.endReading(self.id) }
    }

    private func startReading() {
        if !self.core.reads.submit({ self.readStep() }) {
            self.finishStep([], failure: .store("the store is closed"))
        }
    }

    /// Runs on a reader thread.
    private func readStep() {
        let offset = self.state.withLock { $0.isDone ? nil : $0.offset }
        guard let offset else { return }
        let result = self.core.readSegments(
            of: self.id, key: self.key, range: offset..<min(self.end, Self.stepEnd(from: offset)))
        switch result {
        case .success(let pieces):
            self.finishStep(pieces, failure: nil)
        case .failure(.gone):
            self.finishStep([], failure: .store("the stored body was removed while it was read"))
        case .failure(.damaged(let reason)):
            self.core.dropDamaged(self.id, key: self.key, reason: reason)
            self.finishStep([], failure: .store("the stored body is damaged: \(reason)"))
        case .failure(.failed(let error)):
            self.finishStep([], failure: .store(error.description))
        }
    }

    /// Where a step that begins at `offset` ends, always beyond it.
    static func stepEnd(from offset: UInt64) -> UInt64 {
        let (next, overflow) = Segment.index(of: offset).addingReportingOverflow(
            Self.segmentsPerStep)
        return overflow ? .max : Segment.offset(of: next)
    }

    private func finishStep(_ pieces: [ByteBuffer], failure: BodyFailure?) {
        let wake = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.isReading = false
            guard !state.isDone else { return nil }
            state.failure = failure
            let bytes = pieces.reduce(0 as UInt64) { $0 + UInt64($1.readableBytes) }
            state.offset += bytes
            // A step begins when nothing is ready: these are all.
            state.ready = pieces.reversed()
            guard state.readerWaits else { return nil }
            state.readerWaits = false
            return state.wake
        }
        wake?()
    }
}
