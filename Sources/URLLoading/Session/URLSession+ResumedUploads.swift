public import Foundation
import Synchronization

extension URLSession {
    /// Makes a task that goes on where an earlier upload was broken off.
    ///
    /// It asks the server how much that has, and sends the rest: `countOfBytesSent` counts what was
    /// there before, too. The response is that to the whole upload. A server that does not know the
    /// upload any more answers with a status that says so, mostly 404, which is the response then.
    ///
    /// - Parameter resumeData: as that upload gave it, by `cancel(byProducingResumeData:)` or in its
    ///   error's `userInfo` under ``NSURLSessionUploadTaskResumeData``; anything else makes a task
    ///   that completes with `URLError.unsupportedURL`. A file that has changed since makes one that
    ///   completes with `URLError.requestBodyStreamExhausted`.
    public func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        self.makeUpload(resuming: resumeData, for: DelegatePurpose())
    }

    /// Makes a task that goes on where an earlier upload was broken off, and gives its result to a
    /// handler; see above.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue.
    @preconcurrency
    public func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(resuming: resumeData, for: HandlerPurpose(completionHandler))
    }

    private func makeUpload(
        resuming data: Data, for base: any TaskPurpose
    ) -> URLSessionUploadTask {
        guard let resume = UploadResumeData(decoding: data) else {
            var order = TaskOrder(nil, for: base)
            order.fault = URLError(.unsupportedURL)
            return self.makeUpload(order)
        }
        let order = TaskOrder(resume.request, for: UploadPurpose(base, resuming: resume))
        let task = URLSessionUploadTask(order, of: self)
        var question = resume.request
        question.url = resume.resource
        question.httpMethod = "HEAD"
        // Before anybody else has got the task.
        task.guarded.withLock { [question] state in
            state.currentRequest = question
            state.expectedToSend = resume.length
        }
        return self.introduce(task)
    }
}
