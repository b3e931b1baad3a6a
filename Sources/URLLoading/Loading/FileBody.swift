import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// A file's bytes, a piece ahead of its reader.
final class FileBody: BodySource {
    private static let pieceSize = 128 << 10

    private struct State {
        var file: ReadableFile?
        var offset: Int64 = 0
        var piece: ByteBuffer?
        var hasFailed = false
        var isReading = false
        var isAwaited = false
        var wake: (@Sendable () -> Void)?
        var left: (@Sendable (Int64) -> Void)?
    }

    private let state: Mutex<State>
    private let length: Int64
    private let queue: DispatchQueue

    /// - Parameters:
    ///   - length: how much of it is given; the file may grow behind it, but must not become shorter.
    ///   - left: hears once, when the reader has heard the end or gone, how many bytes it got.
    init(
        _ file: ReadableFile, length: Int64, on queue: DispatchQueue,
        left: @escaping @Sendable (Int64) -> Void
    ) {
        self.length = length
        self.queue = queue
        self.state = Mutex(State(file: file, left: left))
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    func next() -> BodyStep {
        let (step, reads) = self.state.withLock { state -> (BodyStep, Bool) in
            guard state.file != nil else { return (.failed(.cancelled), false) }
            if let piece = state.piece.take() {
                state.offset += Int64(piece.readableBytes)
                return (.piece(piece), Self.begins(&state, self.length))
            }
            if state.offset >= self.length { return (.end(trailers: Fields()), false) }
            if state.hasFailed { return (.failed(.store("the file cannot be read")), false) }
            state.isAwaited = true
            return (.pending, Self.begins(&state, self.length))
        }
        if reads { self.queue.async { self.read() } }
        switch step {
        case .end, .failed: self.leave()
        case .piece, .pending: break
        }
        return step
    }

    /// Whether the next piece is to be read now.
    private static func begins(_ state: inout State, _ length: Int64) -> Bool {
        guard !state.isReading, !state.hasFailed, state.offset < length else { return false }
        state.isReading = true
        return true
    }

    private func read() {
        let (file, offset) = self.state.withLock { ($0.file, $0.offset) }
        guard let file else { return }
        let count = Int(clamping: min(self.length - offset, Int64(Self.pieceSize)))
        let piece = file.read(at: offset, atMost: max(1, count))
        let wake = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.isReading = false
            if var piece, piece.readableBytes > 0 {
                state.piece = piece.readSlice(length: min(count, piece.readableBytes))
            } else {
                // Also where it ends too early: what was announced will not come.
                state.hasFailed = true
            }
            guard state.isAwaited else { return nil }
            state.isAwaited = false
            return state.wake
        }
        wake?()
    }

    func cancel() { self.leave() }

    private func leave() {
        let (left, given) = self.state.withLock { state in
            state.file = nil
            state.piece = nil
            state.wake = nil
            return (state.left.take(), state.offset)
        }
        left?(given)
    }
}
