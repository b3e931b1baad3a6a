import Dispatch
import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// Reads content where that may block: one call at a time, on a queue made for it.
protocol UploadReader: AnyObject, Sendable {
    /// The next bytes, never none; nil at the end.
    func read() throws(URLError) -> ByteBuffer?
}

/// Content that is read on a queue, one piece at a time: whoever sends it never waits in a call.
///
/// At most two pieces exist of it: one on its way out, one read. What is wanted from a reader that
/// blocks comes when it comes; until then one thread of the queue's pool waits, and nobody else.
final class ReadingUploadSource: BodySource, UploadFailing {
    private struct State {
        /// nil behind the end: the reader closes what it reads when it goes.
        var reader: (any UploadReader)?
        var piece: ByteBuffer?
        /// How it ended: given out behind the last piece, and kept.
        var end: BodyStep?
        var failure: URLError?
        var isReading = false
        /// Whoever reads was told to wait.
        var isAwaited = false
        var wake: (@Sendable () -> Void)?
    }

    private let queue: DispatchQueue
    private let isReadAhead: Bool
    private let state: Mutex<State>

    /// - Parameter isReadAhead: a piece is read before it is wanted; not for what may block for long.
    init(_ reader: any UploadReader, on queue: DispatchQueue, isReadAhead: Bool) {
        self.queue = queue
        self.isReadAhead = isReadAhead
        self.state = Mutex(State(reader: reader))
    }

    var failure: URLError? { self.state.withLock { $0.failure } }

    func attach(wake: @escaping @Sendable () -> Void) {
        let reader = self.state.withLock { state in
            state.wake = wake
            return self.isReadAhead ? Self.begin(&state) : nil
        }
        if let reader { self.read(reader) }
    }

    func next() -> BodyStep {
        let (step, reader) = self.state.withLock { state -> (BodyStep, (any UploadReader)?) in
            if let piece = state.piece {
                state.piece = nil
                return (.piece(piece), self.isReadAhead ? Self.begin(&state) : nil)
            }
            if let end = state.end { return (end, nil) }
            state.isAwaited = true
            return (.pending, Self.begin(&state))
        }
        if let reader { self.read(reader) }
        return step
    }

    func cancel() {
        let reader = self.state.withLock { state in
            if state.end == nil { state.end = .failed(.cancelled) }
            state.piece = nil
            state.wake = nil
            // One at work goes when it has returned.
            return state.reader.take()
        }
        // Closing may block, too.
        if let reader { self.queue.async { _ = reader } }
    }

    /// The reader, where it is to read now.
    private static func begin(_ state: inout State) -> (any UploadReader)? {
        guard !state.isReading, state.piece == nil, state.end == nil, let reader = state.reader
        else { return nil }
        state.isReading = true
        return reader
    }

    private func read(_ reader: any UploadReader) {
        self.queue.async {
            let result: Result<ByteBuffer?, URLError>
            do throws(URLError) {
                result = .success(try reader.read())
            } catch {
                result = .failure(error)
            }
            self.note(result)
        }
    }

    private func note(_ result: Result<ByteBuffer?, URLError>) {
        let (wake, gone) = self.state.withLock { state in
            state.isReading = false
            guard state.end == nil else {
                return (nil as (@Sendable () -> Void)?, nil as (any UploadReader)?)
            }
            switch result {
            case .success(let piece?): state.piece = piece
            case .success(nil): state.end = .end(trailers: Fields())
            case .failure(let error):
                state.failure = error
                state.end = .failed(.client("the content could not be read"))
            }
            let wake = state.isAwaited ? state.wake : nil
            state.isAwaited = false
            return (wake, state.end == nil ? nil : state.reader.take())
        }
        // Closed here, on the queue, outside the lock.
        withExtendedLifetime(gone) {}
        wake?()
    }
}
