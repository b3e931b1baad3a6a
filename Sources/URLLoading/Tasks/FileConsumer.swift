import Foundation
import NIOCore
import Synchronization

/// Writes a body to a temporary file.
///
///     take* ─▶ finish ─▶ location ─▶ discard | release
///          └▶ stop ─▶ leave | discard
///
/// The file is written on a queue for that, behind the pieces: up to `limit` bytes are taken ahead,
/// then whoever brings them waits for the disk. A consumer that goes without having been told to
/// release or leave its file deletes it.
final class FileConsumer: BodyConsumer {
    /// How far the bytes that came may be ahead of those that were written.
    static let limit = 1 << 20

    /// Told of what was written: how much since the last time, and how much is in the file.
    ///
    /// Called again only when `taken` was called: what is written meanwhile is told in one.
    typealias Progress =
        @Sendable (
            _ written: Int64, _ total: Int64, _ taken: @escaping @Sendable () -> Void
        ) -> Void

    private enum Ending {
        case finish(@Sendable (BodyConsumerError?) -> Void)
        case leave(@Sendable (DownloadPart?) -> Void)
    }

    /// Who deletes the file.
    private enum Keeping {
        case ours, somebodyElses, deleted
    }

    private struct State {
        var file: DownloadFile?
        var pending: [ByteBuffer] = []
        /// Taken and not yet written.
        var ahead = 0
        /// In the file.
        var total: Int64
        var unreported: Int64 = 0
        var isReporting = false
        /// A job is on the queue or at work.
        var isWriting = false
        var ready: (@Sendable (BodyConsumerError?) -> Void)?
        var fault: URLError?
        var ending: Ending?
        var keeping = Keeping.ours
    }

    private let directory: URL
    private let mayBeLeft: Bool
    private let progress: Progress?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - directory: where the temporary file is made, when the first bytes come.
    ///   - file: what an earlier download left, to be gone on with behind its first `offset` bytes.
    ///   - mayBeLeft: for later: so it is summed up as it is written, and `leave` need not read it.
    init(
        in directory: URL = FileManager.default.temporaryDirectory,
        resuming file: DownloadFile? = nil, at offset: Int64 = 0, mayBeLeft: Bool = false,
        progress: Progress? = nil
    ) {
        self.directory = directory
        self.mayBeLeft = mayBeLeft
        self.progress = progress
        self.state = Mutex(State(file: file, total: file == nil ? 0 : offset))
    }

    deinit {
        let file = self.state.withLock { $0.keeping == .ours ? $0.file : nil }
        if let file { FileWork.queue.async { file.remove() } }
    }

    /// Where the body is, once `finish` has been answered without an error.
    var location: URL? { self.state.withLock { $0.file?.url } }

    /// How much is in the file, what was resumed included.
    var total: Int64 { self.state.withLock { $0.total } }

    // MARK: Taking

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        let (answer, begins) = self.state.withLock { state -> (Answer, Bool) in
            if let fault = state.fault { return (.failed(fault), false) }
            guard state.ending == nil, state.keeping == .ours else { return (.more, false) }
            state.pending.append(piece)
            state.ahead += piece.readableBytes
            let isFull = state.ahead >= Self.limit
            if isFull { state.ready = ready }
            return (isFull ? .later : .more, Self.begin(&state))
        }
        switch answer {
        case .more: ready(nil)
        case .failed(let fault): ready(BodyConsumerError(error: fault))
        case .later: break
        }
        if begins { FileWork.queue.async { self.work() } }
    }

    private enum Answer {
        case more, later
        case failed(URLError)
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.end(.finish(done))
    }

    func stop() { self.state.withLock { $0.ready = nil } }

    /// Gives the file away with what is in it, for a later task to go on with.
    ///
    /// After `stop`; a `finish` that has not been answered is, with `cancelled`, and so is one that
    /// comes later: whoever brings the body may learn last that nobody wants it.
    ///
    /// - Parameter then: called on a thread of the file queue; nil: there is nothing in it.
    func leave(then: @escaping @Sendable (DownloadPart?) -> Void) {
        self.end(.leave(then))
    }

    /// Deletes the file, unless somebody has moved it or it was given away.
    ///
    /// Blocks shortly.
    func discard() {
        let file = self.state.withLock { state -> DownloadFile? in
            guard state.keeping == .ours else { return nil }
            state.keeping = .deleted
            state.pending = []
            return state.file
        }
        file?.remove()
    }

    /// The file is the caller's from now on.
    func release() { self.state.withLock { $0.keeping = .somebodyElses } }

    private func end(_ ending: Ending) {
        let (superseded, begins) = self.state.withLock { state -> (Ending?, Bool) in
            if case .leave = state.ending { return (ending, false) }
            defer { state.ending = ending }
            return (state.ending, Self.begin(&state))
        }
        // Each is answered once, also one of which nothing comes.
        switch superseded {
        case .finish(let done): done(BodyConsumerError(error: URLError(.cancelled)))
        case .leave(let then): then(nil)
        case nil: break
        }
        if begins { FileWork.queue.async { self.work() } }
    }

    private static func begin(_ state: inout State) -> Bool {
        defer { state.isWriting = true }
        return !state.isWriting
    }

    // MARK: Writing, on the queue

    private func work() {
        while let pieces = self.nextPieces() {
            do throws(URLError) {
                let file = try self.opened()
                try file.write(pieces)
                let count = pieces.reduce(0) { $0 + $1.readableBytes }
                if self.mayBeLeft { file.sumUp(to: self.total + Int64(count)) }
                self.wrote(count)
            } catch {
                self.failed(error)
            }
        }
        self.settle()
    }

    /// What waits to be written; nil when there is nothing and no job any more.
    private func nextPieces() -> [ByteBuffer]? {
        self.state.withLock { state in
            guard state.fault == nil, state.keeping == .ours, !state.pending.isEmpty else {
                state.isWriting = false
                return nil
            }
            defer { state.pending = [] }
            return state.pending
        }
    }

    private func opened() throws(URLError) -> DownloadFile {
        if let file = self.state.withLock({ $0.file }) { return file }
        let file = try DownloadFile.create(in: self.directory)
        let isDeleted = self.state.withLock { state in
            state.file = file
            return state.keeping == .deleted
        }
        if isDeleted { file.remove() }
        return file
    }

    private func wrote(_ count: Int) {
        let ready = self.state.withLock { state in
            state.total += Int64(count)
            state.unreported += Int64(count)
            state.ahead -= count
            return state.ahead < Self.limit ? state.ready.take() : nil
        }
        ready?(nil)
        self.report()
    }

    private func failed(_ error: URLError) {
        let ready = self.state.withLock { state in
            state.fault = error
            state.pending = []
            state.ahead = 0
            return state.ready.take()
        }
        ready?(BodyConsumerError(error: error))
    }

    // MARK: Progress

    private func report() {
        guard let progress = self.progress else { return }
        let counts = self.state.withLock { state -> (Int64, Int64)? in
            guard !state.isReporting, state.unreported > 0 else { return nil }
            state.isReporting = true
            defer { state.unreported = 0 }
            return (state.unreported, state.total)
        }
        guard let (written, total) = counts else { return }
        progress(written, total) { [weak self] in
            guard let self else { return }
            self.state.withLock { $0.isReporting = false }
            self.report()
            FileWork.queue.async { self.settle() }
        }
    }

    // MARK: The end

    /// Ends as asked, once everything is written, and told where it is to finish.
    private func settle() {
        let ending = self.state.withLock { state -> Ending? in
            guard !state.isWriting, let ending = state.ending else { return nil }
            if case .finish = ending, state.fault == nil, self.progress != nil,
                state.isReporting || state.unreported > 0
            {
                return nil
            }
            // Nothing else begins meanwhile.
            state.isWriting = true
            state.ending = nil
            return ending
        }
        switch ending {
        case .finish(let done): done(self.closed().map { BodyConsumerError(error: $0) })
        case .leave(let then): then(self.left())
        case nil: return
        }
        self.state.withLock { $0.isWriting = false }
        // A body that could not be finished may be left.
        self.settle()
    }

    private func closed() -> URLError? {
        if let fault = self.state.withLock({ $0.fault }) { return fault }
        do throws(URLError) {
            // An empty body is an empty file.
            try self.opened().close()
            return nil
        } catch {
            self.state.withLock { $0.fault = error }
            return error
        }
    }

    private func left() -> DownloadPart? {
        let (file, total) = self.state.withLock { ($0.keeping == .ours ? $0.file : nil, $0.total) }
        // Also behind a fault: what counts as written is there.
        guard let file, total > 0, let checksum = file.checksum(of: total) else { return nil }
        do throws(URLError) {
            try file.close()
        } catch {
            return nil
        }
        self.release()
        return DownloadPart(path: file.path, length: total, checksum: checksum)
    }
}
