import Foundation
import LarderHTTP
import Synchronization

/// A file for a delegate, a completion handler or an async method.
final class DownloadPurpose: TaskPurpose {
    typealias Handler = @Sendable (URL?, URLResponse?, (any Error)?) -> Void

    /// The handler may be called on any thread, and the file is its own.
    let isDirect: Bool
    private let handler: Mutex<Handler?>
    private let file = Mutex<FileConsumer?>(nil)

    /// For the delegate.
    init() {
        self.isDirect = false
        self.handler = Mutex(nil)
    }

    init(isDirect: Bool = false, _ handler: @escaping Handler) {
        self.isDirect = isDirect
        self.handler = Mutex(handler)
    }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }
    private var hasHandler: Bool { self.handler.withLock { $0 != nil } }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        let expected = answer.response.expectedContentLength
        let consumer = FileConsumer { [weak task, hasHandler] written, total, taken in
            guard !hasHandler, let task = task as? URLSessionDownloadTask else { return taken() }
            // Taken in any case: the end waits for it.
            task.send {
                if !task.isSettled, let session = task.session {
                    session.delegates(of: task).download?.urlSession(
                        session, downloadTask: task, didWriteData: written,
                        totalBytesWritten: total, totalBytesExpectedToWrite: expected)
                }
                taken()
            }
        }
        self.file.withLock { $0 = consumer }
        return consumer
    }

    func conclude(_ task: URLSessionTask, of session: URLSession) {
        guard !self.hasHandler, let task = task as? URLSessionDownloadTask,
            let file = self.file.withLock({ $0.take() })
        else { return }
        if let location = file.location {
            session.delegates(of: task).download?.urlSession(
                session, downloadTask: task, didFinishDownloadingTo: location)
        }
        file.discard()
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        let file = self.file.withLock { $0.take() }
        guard let handler = self.handler.withLock({ $0.take() }) else {
            file?.discard()
            guard let session else { return }
            session.delegates(of: task).task?.urlSession(
                session, task: task, didCompleteWithError: error)
            return
        }
        guard error == nil, let location = file?.location else {
            file?.discard()
            return handler(nil, nil, error ?? URLError(.cannotOpenFile))
        }
        if self.isDirect { file?.release() }
        handler(location, task.response, nil)
        file?.discard()
    }
}
