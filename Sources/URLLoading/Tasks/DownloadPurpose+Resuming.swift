import Foundation
import LarderEngine
import LarderHTTP
import LarderSession
import Synchronization

// What a download leaves when it ends before its end.

extension TaskOrder {
    /// The order of a download that goes on where another was broken off; with data that says
    /// nothing of the kind, the task fails.
    init(resuming data: Data, for purpose: DownloadPurpose) {
        guard let resume = ResumeData(decoding: data) else {
            self.init(nil, for: purpose)
            self.fault = URLError(.unsupportedURL)
            return
        }
        purpose.state.withLock { $0.resume = resume }
        self.init(resume.request, for: purpose)
    }
}

extension DownloadPurpose {
    /// Has somebody hear of the resume data when the task is over.
    ///
    /// - Returns: false where it is over already; then nothing is called.
    func produceResumeData(for handler: @escaping ResumeDataRequests.Handler) -> Bool {
        self.state.withLock { $0.requests.add(handler) }
    }

    func settle(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        then: @escaping @Sendable (TaskOutcome) -> Void
    ) {
        let handlers = self.state.withLock { state -> [ResumeDataRequests.Handler]? in
            let handlers = state.requests.conclude()
            guard state.isOpening else { return handlers }
            state.parked = { self.end(task, outcome, telling: handlers, then: then) }
            return nil
        }
        guard let handlers else { return }
        self.end(task, outcome, telling: handlers, then: then)
    }

    private func end(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        telling handlers: [ResumeDataRequests.Handler],
        then: @escaping @Sendable (TaskOutcome) -> Void
    ) {
        let tell: @Sendable (Data?) -> Void = { data in
            if !handlers.isEmpty {
                FileWork.queue.async { for handler in handlers { handler(data) } }
            }
            then(outcome.adding(data, under: NSURLSessionDownloadTaskResumeData))
        }
        switch outcome {
        case .finished: tell(nil)
        // Nobody asked for it.
        case .cancelled where handlers.isEmpty:
            self.state.withLock { $0.file }?.discard()
            tell(nil)
        case .cancelled, .failed: self.leave(task, then: tell)
        }
    }

    /// Whether a download with this response can be gone on with later.
    func mayBeLeft(_ task: URLSessionTask, behind head: ResponseHead?) -> Bool {
        guard let head, let request = task.originalRequest else { return false }
        return request.canBeResumed(behind: head, now: SystemClock().now())
    }

    private func leave(_ task: URLSessionTask, then: @escaping @Sendable (Data?) -> Void) {
        let (file, resume, head, total) = self.state.withLock { state in
            // Closed: somebody else may go on with it.
            defer { state.partial = nil }
            return (state.file, state.resume, state.head, state.total)
        }
        // What it was to go on with is there as it was.
        guard let file else { return then(resume?.encoded()) }
        let now = SystemClock().now()
        guard let request = task.originalRequest, let head,
            resume != nil || request.canBeResumed(behind: head, now: now)
        else {
            file.discard()
            return then(nil)
        }
        file.leave { part in
            guard let part else {
                file.discard()
                return then(nil)
            }
            var next = resume ?? ResumeData(request, head: head, part: part, total: total, now: now)
            next?.part = part
            next?.total = total
            guard let next, total < 0 || total >= part.length else {
                FileWork.remove(part)
                return then(nil)
            }
            then(next.encoded())
        }
    }
}

extension URLRequest {
    fileprivate func canBeResumed(behind head: ResponseHead, now: Timestamp) -> Bool {
        if case .success = Resumability.judge(self, head, now: now) { true } else { false }
    }
}

extension FileWork {
    /// Deletes what was left.
    fileprivate static func remove(_ part: DownloadPart) {
        DownloadFile.open(part)?.remove()
    }
}

extension TaskOutcome {
    /// This outcome with resume data in its error.
    ///
    /// - Parameter key: of the error's `userInfo`.
    func adding(_ data: Data?, under key: String) -> TaskOutcome {
        guard let data else { return self }
        switch self {
        case .finished: return self
        case .cancelled:
            return .failed(URLError(.cancelled, userInfo: [key: data]))
        case .failed(let error):
            guard let error = error as? URLError else { return self }
            var info = error.userInfo
            info[key] = data
            return .failed(URLError(error.code, userInfo: info))
        }
    }
}
