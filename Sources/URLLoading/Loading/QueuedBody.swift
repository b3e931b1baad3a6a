import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// A body whose bytes are put in by somebody who does not wait for its reader.
///
///     append* ─▶ finish | fail          attach ─▶ next* ─▶ end | failed | cancel
///
/// What was put in and is not read yet lies here, shared with whoever put it in: the API of
/// `URLProtocol` has no way to slow a program down. Any thread.
final class QueuedBody: ProgramBody {
    private enum Ending {
        case whole
        case broken(any Error)
    }

    private struct State {
        /// In the order in which they came; those before `read` are read.
        var pieces: [Data] = []
        var read = 0
        var ending: Ending?
        var wake: (@Sendable () -> Void)?
        /// The reader has been told to wait.
        var isAwaited = false
        /// The reader has gone, or has heard the end.
        var isOver = false
        var error: (any Error)?
        /// What has been put in, for whoever stores it; nil: not wanted, or too much.
        var kept: [Data]?
        var room: Int
        /// How many bytes the reader has been given.
        var given: Int64 = 0
        var left: (@Sendable () -> Void)?
    }

    /// What one piece holds at most: large ones are handed on in parts, not copied as a whole.
    private static let largest = 1 << 20

    private let state: Mutex<State>

    /// - Parameter room: how many bytes are kept for `whole`; 0: none.
    init(keeping room: Int = 0) {
        self.state = Mutex(State(kept: room > 0 ? [] : nil, room: room))
    }

    /// Has `left` called once, when the reader has heard the end or gone.
    ///
    /// To be said before there is a reader.
    func whenLeft(_ left: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.left = left }
    }

    /// How many bytes the reader has been given.
    var given: Int64 { self.state.withLock { $0.given } }

    // MARK: Putting in

    func append(_ data: Data) {
        guard !data.isEmpty else { return }
        self.change { state in
            guard state.ending == nil, !state.isOver else { return }
            state.pieces.append(data)
            if data.count > state.room {
                state.kept = nil
            } else {
                state.room -= data.count
                state.kept?.append(data)
            }
        }
    }

    func finish() {
        self.change { if $0.ending == nil { $0.ending = .whole } }
    }

    func fail(_ error: any Error) {
        self.change { if $0.ending == nil { $0.ending = .broken(error) } }
    }

    private func change(_ body: (inout State) -> Void) {
        let wake = self.state.withLock { state -> (@Sendable () -> Void)? in
            body(&state)
            guard state.isAwaited else { return nil }
            state.isAwaited = false
            return state.wake
        }
        wake?()
    }

    /// Whether all that came was kept.
    var isKept: Bool { self.state.withLock { $0.kept != nil } }

    /// Everything that was put in; nil where it was too much.
    var whole: Data? {
        self.state.withLock { state in
            state.kept.map { pieces in
                pieces.count == 1 ? pieces[0] : pieces.reduce(into: Data()) { $0.append($1) }
            }
        }
    }

    // MARK: Reading

    var programError: (any Error)? { self.state.withLock { $0.error } }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    private enum Found {
        case data(Data)
        case nothing
        case end(Ending?)
    }

    private func leave() {
        // Taken out, as it keeps alive what keeps this alive.
        self.state.withLock { $0.left.take() }?()
    }

    func next() -> BodyStep {
        switch self.state.withLock({ Self.take(&$0) }) {
        case .data(let data): return .piece(ByteBuffer(bytes: data))
        case .nothing: return .pending
        case .end(nil): return .failed(.cancelled)
        case .end(.whole):
            self.leave()
            return .end(trailers: Fields())
        case .end(.broken(let error)):
            self.leave()
            let code = (error as? URLError)?.code
            return .failed(code == .cancelled ? .cancelled : .client("\(type(of: error))"))
        }
    }

    private static func take(_ state: inout State) -> Found {
        guard !state.isOver else { return .end(nil) }
        guard state.read < state.pieces.count else {
            guard let ending = state.ending else {
                state.isAwaited = true
                return .nothing
            }
            state.isOver = true
            state.wake = nil
            if case .broken(let error) = ending { state.error = error }
            return .end(ending)
        }
        let piece = state.pieces[state.read]
        if piece.count > self.largest {
            state.pieces[state.read] = piece.dropFirst(self.largest)
            state.given += Int64(self.largest)
            return .data(piece.prefix(self.largest))
        }
        state.pieces[state.read] = Data()
        state.given += Int64(piece.count)
        state.read += 1
        // What is read leaves in blocks, so that each is moved a bounded number of times.
        if state.read >= 64 {
            state.pieces.removeFirst(state.read)
            state.read = 0
        }
        return .data(piece)
    }

    func cancel() {
        let isFirst = self.state.withLock { state in
            guard !state.isOver else { return false }
            state.isOver = true
            state.pieces = []
            state.read = 0
            state.kept = nil
            state.wake = nil
            return true
        }
        if isFirst { self.leave() }
    }
}
