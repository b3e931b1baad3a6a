public import Foundation

/// Hears what concerns a session as a whole.
///
/// All methods are called on the session's delegate queue, one after the other where that is serial.
/// On Linux an optional method is one with a default implementation; a subclass that adds a method
/// which its conforming superclass does not implement is not called (there is no dispatch by name).
@preconcurrency
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session has ended: its last message, after which it lets the delegate go.
    ///
    /// - Parameter error: nil where it was invalidated by the program.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A challenge that concerns the connection: server trust, client certificate, NTLM, Negotiate.
    ///
    /// - Parameter completionHandler: to be called exactly once, on any thread, at any time.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// All events that waited for a background session have been delivered.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

/// Hears what concerns a task of any kind.
@preconcurrency
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// A task was made: on the thread that makes it, before the method that makes it returns.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// A task with `earliestBeginDate` is about to begin; background sessions only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler:
            @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// There is no way to the network; the task begins when there is one. At most once a task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// The server wants another request instead.
    ///
    /// - Parameter completionHandler: takes the request to go on with; nil makes the redirection
    ///   itself the response.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest?

    /// A challenge that concerns a request; those of a connection come here where the session-wide
    /// method is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The body of a streamed upload is wanted: at its begin, and again where it must be sent again.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> InputStream?

    /// The body of a streamed upload is wanted from an offset on, in bytes: a resumable upload.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64
    ) async -> InputStream?

    /// Bytes of the request's body have been sent.
    ///
    /// - Parameter totalBytesExpectedToSend: -1 where the length is not known.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64)

    /// A 1xx response other than 101.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceiveInformationalResponse response: HTTPURLResponse)

    /// What the task's requests took, shortly before it completes.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The task is over: its last message, exactly once.
    ///
    /// - Parameter error: nil also where the server answered with an error status.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// Hears the response and the body of data and upload tasks.
@preconcurrency
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The head of the response has come; nothing more is delivered until the handler is called.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The task goes on as a download: the last message about the data task.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome downloadTask: URLSessionDownloadTask)

    /// The task goes on as a stream: the last message about the data task.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome streamTask: URLSessionStreamTask)

    /// The next bytes of the body; those that follow wait until this returns.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// The response is about to be stored.
    ///
    /// - Parameter completionHandler: takes what is to be stored; nil for nothing.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// The async form of the method above, called when that one is not implemented.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

/// Hears how a download gets on.
@preconcurrency
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The body is whole.
    ///
    /// - Parameter location: a temporary file, removed when this returns: move or open it before.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL)

    /// Bytes have been written to the file.
    ///
    /// - Parameter totalBytesExpectedToWrite: -1 where the length is not known.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64)

    /// A download goes on behind what an earlier one got.
    ///
    /// What `didWriteData` tells as written in all counts from the file's first byte.
    ///
    /// - Parameters:
    ///   - fileOffset: how many bytes of the file are there already.
    ///   - expectedTotalBytes: the length of the whole file in bytes; -1 where it is not known.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64)
}

/// Hears what concerns a stream task.
@preconcurrency
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The read side of the connection is closed.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)
    /// The write side of the connection is closed.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)
    /// There is a better way to the host; never called on Linux.
    func urlSession(
        _ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)
    /// The streams that `captureStreams` asked for; the task is over.
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: InputStream, outputStream: OutputStream)
}

/// Hears what concerns a WebSocket task.
@preconcurrency
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The handshake has succeeded.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol protocol: String?)
    /// The peer has sent a close frame.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}
