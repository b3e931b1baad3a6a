import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Challenges that a load brings to its task (§6.1)")
struct CoreChallengeTests {
    @Test("keep no task and no session alive, nor themselves, behind the end")
    func released() async throws {
        weak var task: URLSessionTask?
        weak var session: URLSession?
        weak var challenge: URLAuthenticationChallenge?
        let messages: Event<[String]>
        do {
            let s = ScriptedSession()
            let made = s.session.dataTask(with: try ScriptedSession.url())
            let asked = TLSChallenge.clientCertificate(
                from: [], host: "origin.test", port: 443, storage: nil)
            messages = try #require(s.delegate).messages
            (task, session, challenge) = (made, s.session, asked)
            made.resume()
            let isAnswered = Event(false)
            let load = try await s.loaders.load()
            load.hears?.load(challenged: asked) { _, _ in isAnswered.change { $0 = true } }
            try await isAnswered.wait(for: "the answer") { $0 }
            load.answer()
            s.session.finishTasksAndInvalidate()
            s.loaders.loads.change { $0 = [] }
        }
        try await messages.wait(for: "the end") { $0.last == "invalid" }
        #expect(messages.value.contains("challenge 0"))
        try await Released.wait { task == nil && session == nil && challenge == nil }
    }

    @Test(
        "go to the delegate that their method says, also a program's own",
        arguments: [
            (NSURLAuthenticationMethodHTTPBasic, "task"),
            (NSURLAuthenticationMethodHTTPDigest, "task"),
            (NSURLAuthenticationMethodDefault, "task"),
            (NSURLAuthenticationMethodNTLM, "session"),
            (NSURLAuthenticationMethodClientCertificate, "session"),
        ])
    func asked(_ method: String, _ who: String) async throws {
        let delegate = BothDelegate()
        let loaders = ScriptedLoaders()
        let session = URLSession(.default, delegate: delegate, queue: nil, loaders: loaders)
        session.dataTask(with: try ScriptedSession.url()).resume()
        let challenge = URLAuthenticationChallenge(
            URLProtectionSpace(
                host: "origin.test", port: 80, protocol: "http", realm: "r",
                authenticationMethod: method))
        let load = try await loaders.load()
        load.hears?.load(challenged: challenge) { _, _ in }
        try await delegate.asked.wait(for: "the question") { !$0.isEmpty }
        #expect(delegate.asked.value == [who])
        session.invalidateAndCancel()
    }
}

/// Is asked about both kinds of challenges.
private final class BothDelegate: NSObject, URLSessionTaskDelegate, Sendable {
    let asked = Event<[String]>([])

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.asked.change { $0.append("session") }
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.asked.change { $0.append("task") }
        completionHandler(.performDefaultHandling, nil)
    }
}
