import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Reads a range of a body from the disk: the driver of ``BodyReading``.
///
/// What lies in the page cache is read on the reader's own thread. What does not is a job for the
/// store's reading threads. Both go by steps of a few segments. Each is a short transaction, and no
/// byte is handed out before its segment's checksum was found right. Between them nothing is held but
/// the body's segments against deletion. So a slow consumer costs at most one step's bytes, and never
/// a transaction.
final class DiskReader: BodySource {
    private struct State: ~Copyable {
        var reading: BodyReading
        var wake: (@Sendable () -> Void)?
        /// Spares the segments from deletion until the reader has gone.
        var hold: BodyHold?
    }

    private let core: DiskCore
    private let id: ObjectID
    private let key: CacheKey
    private let trailers: Fields
    private let state: Mutex<State>

    /// - Parameter range: all of it must be stored, or written by a sink.
    init(
        core: DiskCore, id: ObjectID, key: CacheKey, hold: BodyHold, range: Range<UInt64>,
        trailers: Fields
    ) {
        self.core = core
        self.id = id
        self.key = key
        self.trailers = trailers
        self.state = Mutex(State(reading: BodyReading(range: range), hold: hold))
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    func next() -> BodyStep {
        var turn = self.state.withLock { $0.reading.asked() }
        if case .readInPlace(let range) = turn {
            let read = self.read(range, waits: false)
            let (next, job) = self.state.withLock { state in
                let next = state.reading.readInPlace(read)
                return (next, state.reading.takeJob())
            }
            turn = next
            if let job { self.submit(job) }
        }
        switch turn {
        case .piece(let piece): return .piece(piece)
        case .pending: return .pending
        case .end:
            self.finish()
            return .end(trailers: self.trailers)
        case .failed(let failure):
            self.finish()
            return .failed(failure)
        case .readInPlace: preconditionFailure("it has just been read")
        }
    }

    func cancel() {
        self.finish()
    }

    /// Lets the body go; harmless when repeated.
    private func finish() {
        let hold = self.state.withLock { state in
            state.wake = nil
            state.reading.finish()
            return state.hold.take()
        }
        // Its end takes locks: not here, with one held.
        withExtendedLifetime(hold) {}
    }

    private func read(_ range: Range<UInt64>, waits: Bool) -> SegmentsRead {
        let read = self.core.readSegments(of: self.id, key: self.key, range: range, waits: waits)
        if case .failed(.damaged(let reason)) = read.end {
            self.core.dropDamaged(self.id, key: self.key, reason: reason)
        }
        if !waits {
            self.core.counts.piecesInPlace.add(UInt64(read.pieces.count), ordering: .relaxed)
        }
        return read
    }

    // MARK: On the pool

    private func submit(_ job: BodyReading.Job) {
        if self.core.reads.submit(for: .body, { self.run(job) }) { return }
        let wake = self.state.withLock { state in
            state.reading.stepRefused(.store("the store is closed")) ? state.wake : nil
        }
        wake?()
    }

    private func run(_ job: BodyReading.Job) {
        if self.state.withLock({ $0.reading.isOver }) { return }
        if let hint = job.hint { self.core.willRead(hint, of: self.id) }
        guard let step = job.step else {
            _ = self.core.counts.hints.add(1, ordering: .relaxed)
            return
        }
        self.core.counts.stepsOnPool.add(1, ordering: .relaxed)
        let read = self.read(step, waits: true)
        let wake = self.state.withLock { state in
            state.reading.stepFinished(read) ? state.wake : nil
        }
        wake?()
    }
}
