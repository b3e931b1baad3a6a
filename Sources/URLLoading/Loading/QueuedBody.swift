import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// A body whose bytes are put in by somebody who does not wait for its reader.
///
///     append* ─▶ finish | fail          attach ─▶ next* ─▶ end | failed | cancel
///
/// What was put in and is not read yet lies here, shared with whoever put it in: the API of
/// `URLProtocol` has no way to slow a program down, and to let its thread wait could let it wait for
/// ever, as the reader may need it. Beyond a bound it lies in a file, where the session may have
/// one; the program is slowed down to the disk's speed then. Any thread.
final class QueuedBody: ProgramBody {
    fileprivate enum Ending {
        case whole
        case broken(any Error)
    }

    fileprivate struct State {
        var pieces = QueuedPieces()
        /// What has been read from the file, and how.
        var landed: ByteBuffer?
        var isReading = false
        var file: SpillFile?
        /// How much may lie in memory; nil: everything.
        var limit: Int?
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

    /// What lies in memory of a body that a file may take the rest of.
    static let spillLimit = 8 << 20

    private let state: Mutex<State>

    /// - Parameters:
    ///   - room: how many bytes are kept for `whole`; 0: none.
    ///   - limit: how many bytes may lie in memory before a file is made; nil: as many as come.
    init(keeping room: Int = 0, spillingAbove limit: Int? = nil) {
        self.state = Mutex(State(limit: limit, kept: room > 0 ? [] : nil, room: room))
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

    /// How many bytes lie in memory.
    var held: Int { self.state.withLock { $0.pieces.held } }

    func append(_ data: Data) {
        guard !data.isEmpty else { return }
        self.makeFile(for: data)
        var place: (SpillFile, Int64)?
        self.change { state in
            guard state.ending == nil, !state.isOver else { return }
            if data.count > state.room {
                state.kept = nil
            } else {
                state.room -= data.count
                state.kept?.append(data)
            }
            if let file = state.file, !state.hasRoom(for: data),
                let offset = state.pieces.reserve(data.count)
            {
                place = (file, offset)
            } else {
                state.pieces.append(data)
            }
        }
        guard let (file, offset) = place else { return }
        // On the thread of whoever puts it in: nobody else waits for the disk.
        let isWritten = file.write(data, at: offset)
        self.change { $0.pieces.filled(offset, orKeep: isWritten ? nil : data) }
    }

    private func makeFile(for data: Data) {
        let isWanted = self.state.withLock { state in
            state.file == nil && !state.hasRoom(for: data) && state.ending == nil && !state.isOver
        }
        guard isWanted else { return }
        let file = SpillFile()
        self.state.withLock { state in
            // Where there is none, everything goes on in memory.
            guard let file else { return state.limit = nil }
            if state.file == nil, !state.isOver { state.file = file }
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

    /// Keeps nothing for `whole`: nobody stores it.
    func forgetWhole() {
        self.state.withLock { state in
            state.kept = nil
            state.room = 0
        }
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

    fileprivate enum Found {
        case data(Data)
        case piece(ByteBuffer)
        case stored(SpillFile, Int64, Int)
        case nothing
        case end(Ending?)
    }

    private func leave() {
        let (left, file) = self.state.withLock { ($0.left.take(), $0.file.take()) }
        // Its end may take the disk a while.
        if let file { FileWork.queue.async { _ = file } }
        // Taken out, as it keeps alive what keeps this alive.
        left?()
    }

    func next() -> BodyStep {
        switch self.state.withLock({ $0.take() }) {
        case .data(let data): return .piece(ByteBuffer(bytes: data))
        case .piece(let piece): return .piece(piece)
        case .stored(let file, let offset, let count):
            self.fetch(count, at: offset, from: file)
            return .pending
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

    private func fetch(_ count: Int, at offset: Int64, from file: SpillFile) {
        FileWork.queue.async {
            let piece = file.read(count, at: offset)
            self.change { state in
                state.isReading = false
                guard !state.isOver else { return }
                state.pieces.reuseFile()
                state.landed = piece
                guard piece == nil else { return }
                state.pieces = QueuedPieces()
                state.ending = .broken(URLError(.cannotOpenFile))
            }
        }
    }

    func cancel() {
        let isFirst = self.state.withLock { state in
            guard !state.isOver else { return false }
            state.isOver = true
            state.pieces = QueuedPieces()
            state.landed = nil
            state.kept = nil
            state.wake = nil
            return true
        }
        if isFirst { self.leave() }
    }
}

extension QueuedBody.State {
    func hasRoom(for data: Data) -> Bool {
        guard let limit = self.limit else { return true }
        return self.pieces.held + data.count <= limit
    }

    mutating func take() -> QueuedBody.Found {
        guard !self.isOver else { return .end(nil) }
        if let piece = self.landed.take() {
            self.given += Int64(piece.readableBytes)
            return .piece(piece)
        }
        guard !self.isReading else { return self.wait() }
        switch self.pieces.next() {
        case .data(let data):
            self.given += Int64(data.count)
            return .data(data)
        case .stored(let offset, let count):
            guard let file = self.file else { return self.wait() }
            self.isReading = true
            self.isAwaited = true
            return .stored(file, offset, count)
        case .notYet: return self.wait()
        case .nothing:
            guard let ending = self.ending else { return self.wait() }
            self.isOver = true
            self.wake = nil
            if case .broken(let error) = ending { self.error = error }
            return .end(ending)
        }
    }

    private mutating func wait() -> QueuedBody.Found {
        self.isAwaited = true
        return .nothing
    }
}
