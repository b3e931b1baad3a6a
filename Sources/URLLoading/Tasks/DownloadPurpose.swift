import Foundation
import LarderHTTP
import Synchronization

/// A file for a delegate, a completion handler or an async method.
///
/// ```
/// prepare: the partial file ─▶ the rest is asked for ─▶ goes on | begins anew | asks again
///                          └ none, or altered ─▶ the whole is asked for
/// ```
final class DownloadPurpose: TaskPurpose {
    typealias Handler = @Sendable (URL?, URLResponse?, (any Error)?) -> Void

    /// Who gets the file.
    enum Receiver {
        /// Hears of each step; the file is deleted when `didFinishDownloadingTo` has returned.
        case delegate
        /// Hears of the end; the file is deleted when it has returned.
        case handler(Handler)
        /// On any thread; the file is the caller's.
        case caller(Handler)
    }

    struct State {
        var receiver: Receiver
        /// What is gone on with; nil: the body is taken from its first byte on.
        var resume: ResumeData?
        /// The file of that, open, as long as nothing has been written.
        var partial: DownloadFile?
        /// It is being locked and looked at.
        var isOpening = false
        /// The end, which waits for that: whoever goes on with the file must not find it locked.
        var parked: (@Sendable () -> Void)?
        var step = ResumeStep.restart
        var file: FileConsumer?
        var head: ResponseHead?
        /// The length of the whole, as announced; -1: not known.
        var total: Int64 = -1
        /// Who waits for resume data.
        var requests = ResumeDataRequests()
    }

    let isDirect: Bool
    private let isDelegates: Bool
    private let directory: URL
    private let whileChecking: @Sendable () -> Void
    let state: Mutex<State>

    /// - Parameters:
    ///   - directory: where the file is made.
    ///   - whileChecking: called before each piece that is read of a partial file, for tests; may
    ///     block.
    init(
        for receiver: Receiver, in directory: URL = FileManager.default.temporaryDirectory,
        whileChecking: @escaping @Sendable () -> Void = {}
    ) {
        if case .caller = receiver { self.isDirect = true } else { self.isDirect = false }
        if case .delegate = receiver { self.isDelegates = true } else { self.isDelegates = false }
        self.directory = directory
        self.whileChecking = whileChecking
        self.state = Mutex(State(receiver: receiver))
    }

    /// For the delegate.
    convenience init() { self.init(for: .delegate) }

    convenience init(_ handler: @escaping Handler) { self.init(for: .handler(handler)) }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }

    // MARK: Going on with an earlier one

    func prepare(for task: URLSessionTask, then: @escaping @Sendable () -> Void) {
        let part = self.state.withLock { state -> DownloadPart? in
            // Behind the end somebody else may be about to go on with it.
            guard !state.requests.isConcluded, let part = state.resume?.part else { return nil }
            state.isOpening = true
            return part
        }
        guard let part else { return then() }
        FileWork.queue.async { [self] in
            // Reads all of it: what was altered meanwhile must not become a part of the whole.
            let partial = DownloadFile.open(part) { self.isStillWanted() }
            let (isOver, parked) = self.state.withLock { state in
                state.isOpening = false
                // What it was to go on with is handed on as it was.
                if state.requests.isConcluded { return (true, state.parked.take()) }
                if partial == nil { state.resume = nil }
                state.partial = partial
                return (false, nil)
            }
            if isOver { partial?.letGo() }
            parked?()
            then()
        }
    }

    private func isStillWanted() -> Bool {
        self.whileChecking()
        return !self.state.withLock { $0.requests.isConcluded }
    }

    func asking(_ request: URLRequest) -> URLRequest {
        self.state.withLock { $0.partial == nil ? nil : $0.resume }?.asking(request) ?? request
    }

    func reconsider(_ answer: LoadAnswer, for task: URLSessionTask) -> URLRequest? {
        let isRefused = self.state.withLock { state in
            state.step = .restart
            guard let resume = state.resume, let head = answer.head else { return false }
            state.step = ResumeStep.decide(resume, head)
            guard state.step == .askAgain else { return false }
            state.resume = nil
            return true
        }
        // The same without what `asking` has added.
        return isRefused ? task.currentRequest : nil
    }

    // MARK: The body

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        let isHeard = self.isHeard(by: task)
        let progress = isHeard ? self.progress(of: task) : nil
        let mayBeLeft = self.mayBeLeft(task, behind: answer.head)
        let (file, outdated, offset) = self.state.withLock { state in
            state.head = answer.head
            state.total = answer.response.expectedContentLength
            guard case .goOn(let total) = state.step, let partial = state.partial.take(),
                let length = state.resume?.part.length
            else {
                let file = FileConsumer(
                    in: self.directory, mayBeLeft: mayBeLeft, progress: progress)
                state.resume = nil
                state.file = file
                // Another representation takes its place; an error does not.
                let isReplaced = answer.head?.status == .ok
                defer { state.partial = nil }
                return (file, isReplaced ? state.partial : nil, nil as Int64?)
            }
            state.total = total
            let file = FileConsumer(
                in: self.directory, resuming: partial, at: length, mayBeLeft: true,
                progress: progress)
            state.file = file
            return (file, nil, length)
        }
        if let outdated { FileWork.queue.async { outdated.remove() } }
        if let offset, isHeard { self.tellOfOffset(offset, task) }
        return file
    }

    /// Somebody follows what is written: the delegate whose download it is, or the one that an async
    /// method was given for it, and that alone.
    private func isHeard(by task: URLSessionTask) -> Bool {
        self.isDelegates || (self.isDirect && task.delegate is any URLSessionDownloadDelegate)
    }

    private func tellOfOffset(_ offset: Int64, _ task: URLSessionTask) {
        let total = self.state.withLock { $0.total }
        task.tell(nil) { [isDirect] task, session, _ in
            guard let download = task as? URLSessionDownloadTask else { return }
            session.delegates(of: task, ownAlone: isDirect).call(.resumed) {
                $0.download?.urlSession(
                    session, downloadTask: download, didResumeAtOffset: offset,
                    expectedTotalBytes: total)
            }
        }
    }

    private func progress(of task: URLSessionTask) -> FileConsumer.Progress {
        { [weak self, weak task] written, total, taken in
            guard let self, let task else { return taken() }
            let expected = self.state.withLock { $0.total }
            task.send {
                if !task.isSettled, let session = task.session,
                    let download = task as? URLSessionDownloadTask
                {
                    session.delegates(of: task, ownAlone: self.isDirect).call(.written) {
                        $0.download?.urlSession(
                            session, downloadTask: download, didWriteData: written,
                            totalBytesWritten: total, totalBytesExpectedToWrite: expected)
                    }
                }
                // In any case: the end of the file waits for it.
                taken()
            }
        }
    }

    // MARK: The end

    func conclude(_ task: URLSessionTask, of session: URLSession) {
        guard self.isDelegates, let download = task as? URLSessionDownloadTask,
            let file = self.state.withLock({ $0.file.take() })
        else { return }
        if let location = file.location {
            session.delegates(of: task).download?.urlSession(
                session, downloadTask: download, didFinishDownloadingTo: location)
        }
        file.discard()
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        let (receiver, file, partial) = self.state.withLock { state in
            // Taken: what it holds lives no longer than it is needed.
            defer {
                state.receiver = .delegate
                state.file = nil
            }
            return (state.receiver, state.file, state.partial.take())
        }
        // Closed before anybody hears of the end, who may want to go on with it.
        partial?.letGo()
        switch receiver {
        case .delegate:
            session?.tellCompletion(of: task, with: error)
        case .handler(let handler), .caller(let handler):
            guard error == nil, let file, let location = file.location else {
                return handler(nil, task.response, error ?? URLError(.cannotOpenFile))
            }
            if self.isDirect { file.release() }
            handler(location, task.response, nil)
        }
        file?.discard()
    }
}
