import Foundation
import Synchronization
import URLLoading

/// A delegate that writes down what it hears, in order, and tells when a task is over.
final class Diary: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    struct Notes: Sendable {
        var lines: [String] = []
        var pieces = 0
        var bytes = 0
        var written: [Int64] = []
        var sent: Int64 = 0
        var resumedAt: Int64?
        var challenges = 0
    }

    /// What to do where a delegate is asked; nil: what is done without one.
    struct Answers: Sendable {
        var credential: (user: String, password: String)?
        var refusesRedirections = false
        /// Called in the midst of a download, on the delegate queue.
        var downloading: (@Sendable (URLSessionDownloadTask, Int64) -> Void)?
        /// Where to a downloaded file is moved.
        var destination: URL?
    }

    private let notes = Mutex(Notes())
    private let answers: Answers
    private let ends: AsyncStream<(any Error)?>
    private let end: AsyncStream<(any Error)?>.Continuation
    private let farewells: AsyncStream<Void>
    private let farewell: AsyncStream<Void>.Continuation

    init(_ answers: Answers = Answers()) {
        self.answers = answers
        (self.ends, self.end) = AsyncStream.makeStream()
        (self.farewells, self.farewell) = AsyncStream.makeStream()
    }

    /// What was heard so far.
    var heard: Notes { self.notes.withLock { $0 } }

    /// Waits until a task is over; its error.
    func ended() async -> (any Error)? {
        for await error in self.ends { return error }
        return nil
    }

    /// Waits until the session says that it has ended.
    func dismissed() async {
        for await _ in self.farewells { return }
    }

    private func note(_ line: String) {
        self.notes.withLock { $0.lines.append(line) }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.note("session ended")
        self.farewell.yield()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.note("asked about \(response.statusCode) to \(request.url?.path ?? "")")
        completionHandler(self.answers.refusesRedirections ? nil : request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note(
            "challenge for \(challenge.protectionSpace.realm ?? "no realm"), "
                + "\(challenge.previousFailureCount) failures")
        self.notes.withLock { $0.challenges += 1 }
        guard let (user, password) = self.answers.credential, challenge.previousFailureCount == 0
        else { return completionHandler(.performDefaultHandling, nil) }
        completionHandler(
            .useCredential,
            URLCredential(user: user, password: password, persistence: .forSession))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        self.notes.withLock { $0.sent = totalBytesSent }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.notes.withLock { notes in
            notes.pieces += 1
            notes.bytes += data.count
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        self.notes.withLock { $0.written.append(totalBytesWritten) }
        self.answers.downloading?(downloadTask, totalBytesWritten)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64
    ) {
        self.notes.withLock { $0.resumedAt = fileOffset }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        self.note("downloaded")
        guard let destination = self.answers.destination else { return }
        do {
            try FileManager.default.moveItem(at: location, to: destination)
        } catch {
            self.note("not moved: \(error)")
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.note(error.map { "ended: \(($0 as? URLError)?.code.rawValue ?? 0)" } ?? "ended")
        self.end.yield(error)
    }
}
