import Foundation
import NIOCore
import Synchronization

/// Keeps a body for a sequence of bytes: so much as is read ahead, and no more.
final class BytesConsumer: BodyConsumer {
    /// How much is kept for a reader that does not come, but for the piece that reaches it.
    static let limit = 65_536

    private typealias Waiter = CheckedContinuation<[UInt8]?, any Error>

    private struct State {
        var pieces: [ByteBuffer] = []
        var count = 0
        var ready: (@Sendable (BodyConsumerError?) -> Void)?
        var waiters: [Waiter] = []
        var isOver = false
        /// What it ended with.
        var error: (any Error)?
        /// Somebody has been told of the end: nothing comes behind it, for none of those who read.
        var isTold = false
    }

    private let state = Mutex(State())

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        let (isReady, waiter) = self.state.withLock { state -> (Bool, Waiter?) in
            if state.isOver { return (true, nil) }
            if !state.waiters.isEmpty { return (true, state.waiters.removeFirst()) }
            state.pieces.append(piece)
            state.count += piece.readableBytes
            guard state.count >= Self.limit else { return (true, nil) }
            state.ready = ready
            return (false, nil)
        }
        waiter?.resume(returning: Array(piece.readableBytesView))
        if isReady { ready(nil) }
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.end(nil)
        done(nil)
    }

    /// All of it has come.
    var isWhole: Bool { self.state.withLock { $0.isOver && $0.error == nil } }

    func stop() { self.state.withLock { $0.ready = nil } }

    /// The task is over: what was read ahead is still handed out, where it is over without an error.
    ///
    /// Only the first call counts.
    func end(_ error: (any Error)?) {
        let waiters = self.state.withLock { state -> [Waiter] in
            guard !state.isOver else { return [] }
            state.isOver = true
            state.error = error
            state.ready = nil
            // None of several that wait is to take an error for the end of the body.
            if !state.waiters.isEmpty { state.isTold = true }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters {
            if let error { waiter.resume(throwing: error) } else { waiter.resume(returning: nil) }
        }
    }

    /// Whoever reads was cancelled: what has come is dropped.
    ///
    /// - Returns: false where somebody has been told of the end before; else this is it.
    func leave() -> Bool {
        let (isFirst, waiters) = self.state.withLock { state -> (Bool, [Waiter]) in
            guard !state.isTold else { return (false, []) }
            state.isTold = true
            if !state.isOver {
                state.isOver = true
                state.error = URLError(.cancelled)
            }
            state.pieces = []
            state.count = 0
            state.ready = nil
            defer { state.waiters = [] }
            return (true, state.waiters)
        }
        for waiter in waiters { waiter.resume(throwing: URLError(.cancelled)) }
        return isFirst
    }

    /// The next bytes, never none; nil at the end.
    ///
    /// - Throws: what the task ended with, when everything before was handed out; once.
    func chunk() async throws -> [UInt8]? {
        try await withCheckedThrowingContinuation { waiter in self.ask(waiter) }
    }

    /// What has come already; nil: it has to be waited for, or there is none.
    func chunkAtHand() -> [UInt8]? {
        let (chunk, ready) = self.state.withLock { Self.pop(&$0) }
        ready?(nil)
        return chunk
    }

    private func ask(_ waiter: Waiter) {
        enum Answer {
            case chunk([UInt8]?)
            case failed(any Error)
            case wait
        }
        let (answer, ready) = self.state.withLock {
            state -> (Answer, (@Sendable (BodyConsumerError?) -> Void)?) in
            let (chunk, ready) = Self.pop(&state)
            if let chunk { return (.chunk(chunk), ready) }
            if state.isOver {
                let isFirst = !state.isTold
                state.isTold = true
                if isFirst, let error = state.error { return (.failed(error), nil) }
                return (.chunk(nil), nil)
            }
            state.waiters.append(waiter)
            return (.wait, nil)
        }
        switch answer {
        case .chunk(let chunk): waiter.resume(returning: chunk)
        case .failed(let error): waiter.resume(throwing: error)
        case .wait: break
        }
        ready?(nil)
    }

    /// Everything that is there, and whom to tell that there is room again.
    private static func pop(
        _ state: inout State
    ) -> ([UInt8]?, (@Sendable (BodyConsumerError?) -> Void)?) {
        guard !state.pieces.isEmpty else { return (nil, nil) }
        var chunk: [UInt8] = []
        chunk.reserveCapacity(state.count)
        for piece in state.pieces { chunk.append(contentsOf: piece.readableBytesView) }
        state.pieces = []
        state.count = 0
        return (chunk, state.ready.take())
    }
}
