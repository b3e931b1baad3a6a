public import Foundation

// What a delegate does not implement falls through: from the session to the task, and from a task's
// own delegate to the session's. These defaults are where that is known. They do so when the library
// calls them; called by a program, they are what a delegate does that has no opinion. Which it is must
// be found out at once, as it is not known any more when an async method has been asked.

extension URLSessionDelegate {
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let isOurs = DelegateCall.isMade(to: self, .sessionChallenge)
        AsyncForm.sessionChallenge.ask(self, of: session, about: challenge.asker) {
            await self.urlSession(session, didReceive: challenge)
        } then: {
            completionHandler($0.0, $0.1)
        } orElse: { mayAsk in
            guard mayAsk, isOurs, let passOn = challenge.passOn else {
                return completionHandler(.performDefaultHandling, nil)
            }
            passOn(challenge, completionHandler)
        }
    }
}

extension URLSessionTaskDelegate {
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        self.next(session, task, .created)?.urlSession(session, didCreateTask: task)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler:
            @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        let next = self.next(session, task, .delayedRequest)
        AsyncForm.delayedRequest.ask(self, of: session, about: task) {
            await self.urlSession(session, task: task, willBeginDelayedRequest: request)
        } then: {
            completionHandler($0.0, $0.1)
        } orElse: { mayAsk in
            guard mayAsk, let next else {
                return completionHandler(.continueLoading, nil)
            }
            next.urlSession(
                session, task: task, willBeginDelayedRequest: request,
                completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask
    ) {
        self.next(session, task, .connectivity)?.urlSession(
            session, taskIsWaitingForConnectivity: task)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let next = self.next(session, task, .redirection)
        AsyncForm.redirection.ask(self, of: session, about: task) {
            await self.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        } then: {
            completionHandler($0)
        } orElse: { mayAsk in
            guard mayAsk, let next else { return completionHandler(request) }
            next.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let next = self.next(session, task, .challenge)
        AsyncForm.taskChallenge.ask(self, of: session, about: task) {
            await self.urlSession(session, task: task, didReceive: challenge)
        } then: {
            completionHandler($0.0, $0.1)
        } orElse: { mayAsk in
            guard mayAsk, let next else {
                return completionHandler(.performDefaultHandling, nil)
            }
            next.urlSession(
                session, task: task, didReceive: challenge, completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        let next = self.next(session, task, .bodyStream)
        AsyncForm.bodyStream.ask(self, of: session, about: task) {
            await self.urlSession(session, needNewBodyStreamForTask: task)
        } then: {
            completionHandler($0)
        } orElse: { mayAsk in
            guard mayAsk, let next else { return completionHandler(nil) }
            next.urlSession(session, task: task, needNewBodyStream: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        let next = self.next(session, task, .bodyStreamFrom)
        AsyncForm.bodyStreamFrom.ask(self, of: session, about: task) {
            await self.urlSession(session, task: task, needNewBodyStreamFrom: offset)
        } then: {
            completionHandler($0)
        } orElse: { mayAsk in
            guard mayAsk, let next else { return completionHandler(nil) }
            next.urlSession(
                session, task: task, needNewBodyStreamFrom: offset,
                completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        self.next(session, task, .sent)?.urlSession(
            session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
            totalBytesExpectedToSend: totalBytesExpectedToSend)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        self.next(session, task, .informational)?.urlSession(
            session, task: task, didReceiveInformationalResponse: response)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.next(session, task, .metrics)?.urlSession(
            session, task: task, didFinishCollecting: metrics)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.next(session, task, .completion)?.urlSession(
            session, task: task, didCompleteWithError: error)
    }

    private func next(
        _ session: URLSession, _ task: URLSessionTask, _ method: DelegateCall.Method
    ) -> (any URLSessionTaskDelegate)? {
        session.commonDelegate(behind: self, of: task, method) as? any URLSessionTaskDelegate
    }
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let next = self.next(session, dataTask, .response)
        AsyncForm.response.ask(self, of: session, about: dataTask) {
            await self.urlSession(session, dataTask: dataTask, didReceive: response)
        } then: {
            completionHandler($0)
        } orElse: { mayAsk in
            guard mayAsk, let next else { return completionHandler(.allow) }
            next.urlSession(
                session, dataTask: dataTask, didReceive: response,
                completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome downloadTask: URLSessionDownloadTask
    ) {
        self.next(session, dataTask, .becameDownload)?.urlSession(
            session, dataTask: dataTask, didBecome: downloadTask)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome streamTask: URLSessionStreamTask
    ) {
        self.next(session, dataTask, .becameStream)?.urlSession(
            session, dataTask: dataTask, didBecome: streamTask)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        self.next(session, dataTask, .data)?.urlSession(
            session, dataTask: dataTask, didReceive: data)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let next = self.next(session, dataTask, .caching)
        AsyncForm.caching.ask(self, of: session, about: dataTask) {
            await self.urlSession(
                session, dataTask: dataTask, willCacheResponse: proposedResponse)
        } then: {
            completionHandler($0)
        } orElse: { mayAsk in
            guard mayAsk, let next else {
                // Nobody has seen it but who was asked, unless that has handed it on.
                if session.delegates(of: dataTask).isOnlyData(self) {
                    proposedResponse.body.show(false)
                }
                return completionHandler(proposedResponse)
            }
            next.urlSession(
                session, dataTask: dataTask, willCacheResponse: proposedResponse,
                completionHandler: completionHandler)
        }
    }

    private func next(
        _ session: URLSession, _ task: URLSessionTask, _ method: DelegateCall.Method
    ) -> (any URLSessionDataDelegate)? {
        session.commonDelegate(behind: self, of: task, method) as? any URLSessionDataDelegate
    }
}

extension URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        self.next(session, downloadTask, .written)?.urlSession(
            session, downloadTask: downloadTask, didWriteData: bytesWritten,
            totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64
    ) {
        self.next(session, downloadTask, .resumed)?.urlSession(
            session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
            expectedTotalBytes: expectedTotalBytes)
    }

    private func next(
        _ session: URLSession, _ task: URLSessionTask, _ method: DelegateCall.Method
    ) -> (any URLSessionDownloadDelegate)? {
        session.commonDelegate(behind: self, of: task, method) as? any URLSessionDownloadDelegate
    }
}

extension URLSessionStreamDelegate {
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        self.next(session, streamTask, .readClosed)?.urlSession(session, readClosedFor: streamTask)
    }

    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        self.next(session, streamTask, .writeClosed)?.urlSession(
            session, writeClosedFor: streamTask)
    }

    public func urlSession(
        _ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask
    ) {
        self.next(session, streamTask, .betterRoute)?.urlSession(
            session, betterRouteDiscoveredFor: streamTask)
    }

    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        self.next(session, streamTask, .captured)?.urlSession(
            session, streamTask: streamTask, didBecome: inputStream, outputStream: outputStream)
    }

    private func next(
        _ session: URLSession, _ task: URLSessionTask, _ method: DelegateCall.Method
    ) -> (any URLSessionStreamDelegate)? {
        session.commonDelegate(behind: self, of: task, method) as? any URLSessionStreamDelegate
    }
}

extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol protocol: String?
    ) {
        self.next(session, webSocketTask, .opened)?.urlSession(
            session, webSocketTask: webSocketTask, didOpenWithProtocol: `protocol`)
    }

    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        self.next(session, webSocketTask, .closed)?.urlSession(
            session, webSocketTask: webSocketTask, didCloseWith: closeCode, reason: reason)
    }

    private func next(
        _ session: URLSession, _ task: URLSessionTask, _ method: DelegateCall.Method
    ) -> (any URLSessionWebSocketDelegate)? {
        session.commonDelegate(behind: self, of: task, method) as? any URLSessionWebSocketDelegate
    }
}

extension URLSession {
    /// The session's delegate, where the one that is asked is a task's own, and the library asks.
    fileprivate func commonDelegate(
        behind delegate: AnyObject, of task: URLSessionTask, _ method: DelegateCall.Method
    ) -> (any URLSessionDelegate)? {
        guard let common = self.delegate, common !== delegate, task.delegate === delegate,
            DelegateCall.isMade(to: delegate, method)
        else { return nil }
        return common
    }
}
