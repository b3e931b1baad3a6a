import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Implements nothing.
private final class EmptyDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {}
}

/// Hands on what it hears to the delegate of the task, as programs' proxies do.
private final class Proxy: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    let messages = Event<[String]>([])

    private func note(_ message: String) { self.messages.change { $0.append(message) } }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        self.note("created")
        task.delegate?.urlSession(session, didCreateTask: task)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.note("redirect")
        guard let delegate = task.delegate else { return completionHandler(request) }
        delegate.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request,
            completionHandler: completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge")
        // The session-wide method is the default.
        self.urlSession(session, didReceive: challenge) { disposition, credential in
            guard disposition == .performDefaultHandling, let delegate = task.delegate else {
                return completionHandler(disposition, credential)
            }
            delegate.urlSession(
                session, task: task, didReceive: challenge, completionHandler: completionHandler)
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response")
        guard let delegate = dataTask.delegate as? any URLSessionDataDelegate else {
            return completionHandler(.allow)
        }
        delegate.urlSession(
            session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data")
        (dataTask.delegate as? any URLSessionDataDelegate)?.urlSession(
            session, dataTask: dataTask, didReceive: data)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.note("storing")
        guard let delegate = dataTask.delegate as? any URLSessionDataDelegate else {
            return completionHandler(proposedResponse)
        }
        delegate.urlSession(
            session, dataTask: dataTask, willCacheResponse: proposedResponse,
            completionHandler: completionHandler)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {}

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        self.note("written")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.note("metrics")
        task.delegate?.urlSession(session, task: task, didFinishCollecting: metrics)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        task.delegate?.urlSession(session, task: task, didCompleteWithError: error)
        self.note("complete")
    }
}

/// Asks its own method for redirections, which it lacks, when it hears of the response.
private final class SelfishDelegate: NSObject, URLSessionDataDelegate {
    let answers = Event<[URLRequest?]>([])

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let response = response as? HTTPURLResponse, let url = response.url else { return }
        self.urlSession(
            session, task: dataTask, willPerformHTTPRedirection: response,
            newRequest: URLRequest(url: url)
        ) { [answers] chosen in answers.change { $0.append(chosen) } }
        completionHandler(.allow)
    }
}

@Suite("A delegate that hands on what it hears (§1.5, §4)", .timeLimit(.minutes(5)))
struct DelegateForwardingTests {
    private func session(
        _ proxy: Proxy, _ script: ScriptedLoaders.Script? = nil
    ) -> (URLSession, ScriptedLoaders) {
        let loaders = ScriptedLoaders(script)
        return (URLSession(.default, delegate: proxy, queue: nil, loaders: loaders), loaders)
    }

    @Test("hears each message once, though the task's delegate lacks the method")
    func once() async throws {
        let proxy = Proxy()
        let (session, _) = self.session(proxy) { load in
            if load.request.url?.path == "/" {
                load.answer(302, ["Location": "/next", "Content-Length": "0"])
            } else {
                load.answer(200, [:], "one", storing: RecordingStoring())
            }
        }
        // The first time that a class is asked it is asked in both forms.
        for number in 1...2 {
            let task = session.dataTask(with: try ScriptedSession.url())
            task.delegate = EmptyDelegate()
            task.resume()
            try await proxy.messages.wait(for: "the end") { $0.last == "complete" }
            #expect(
                proxy.messages.value == [
                    "created", "redirect", "response", "data", "storing", "metrics", "complete",
                ], "task \(number)")
            proxy.messages.change { $0 = [] }
        }
        session.invalidateAndCancel()
    }

    @Test("hears a challenge of the connection once, though it asks the session-wide method")
    func challenge() async throws {
        let proxy = Proxy()
        let (session, loaders) = self.session(proxy)
        let task = session.dataTask(with: try ScriptedSession.url())
        task.delegate = EmptyDelegate()
        task.resume()
        let challenge = URLAuthenticationChallenge(
            URLProtectionSpace(
                host: "origin.test", port: 80, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodNTLM))
        let isAnswered = Event<[URLSession.AuthChallengeDisposition]>([])
        try await loaders.load().hears?.load(challenged: challenge) { disposition, _ in
            isAnswered.change { $0.append(disposition) }
        }
        try await isAnswered.wait(for: "the answer") { !$0.isEmpty }
        #expect(isAnswered.value == [.performDefaultHandling])
        #expect(proxy.messages.value == ["created", "challenge"])
        session.invalidateAndCancel()
    }

    @Test("asks nobody else by a method of its own that it lacks")
    func own() async throws {
        let proxy = Proxy()
        let (session, _) = self.session(proxy) { $0.answer(200, [:], "one") }
        let task = session.dataTask(with: try ScriptedSession.url())
        let own = SelfishDelegate()
        task.delegate = own
        task.resume()
        try await proxy.messages.wait(for: "the end") { $0.last == "complete" }
        try await own.answers.wait(for: "the answer") { $0.count == 1 }
        #expect(own.answers.value[0]?.url == (try ScriptedSession.url()))
        #expect(proxy.messages.value == ["created", "data", "metrics", "complete"])
        session.invalidateAndCancel()
    }

    @Test("does not hear of the body of an async method, which is its caller's")
    func asyncBodies() async throws {
        let proxy = Proxy()
        let (session, _) = self.session(proxy) { $0.answer(200, [:], "one") }
        let url = try ScriptedSession.url()
        let (data, _) = try await session.data(from: url, delegate: EmptyDelegate())
        #expect(data == Data("one".utf8))
        let (file, _) = try await session.download(from: url, delegate: EmptyDelegate())
        try FileManager.default.removeItem(at: file)
        #expect(proxy.messages.value == ["created", "metrics", "created", "metrics"])
        session.invalidateAndCancel()
    }
}
