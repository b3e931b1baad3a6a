import Foundation
import LarderCredentials
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Sessions of an origin that asks who is there.
private final class AskingOrigin: Sendable {
    let origin: ScriptedOrigin
    let answers = Event<[Asked]>([])
    let storage: URLCredentialStorage?

    /// What a delegate was asked.
    struct Asked: Sendable, Equatable {
        var method: String
        var failures: Int
        var proposed: String?
        var isOfTask = true
    }

    /// - Parameter answer: of the origin, to the value of `Authorization`.
    init(
        storage: URLCredentialStorage? = .ephemeral(),
        _ answer: @escaping @Sendable (Message) -> String
    ) async throws {
        self.storage = storage
        self.origin = try await ScriptedOrigin.answering { answer($0) }
    }

    /// Basic, of one user.
    static func basic(_ request: Message) -> String {
        guard request["Authorization"] == LarderBasic.field("user", "secret") else {
            return response(
                "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", body: "who?", cache: nil)
        }
        return response(body: "welcome")
    }

    func url(_ path: String = "/") throws -> URL {
        try #require(URL(string: self.origin.url(path)))
    }

    /// The values of `Authorization` that came.
    var sent: [String?] { self.origin.requests.value.map { $0["Authorization"] } }

    func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCredentialStorage = self.storage
        configuration.urlCache = nil
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }
}

private enum LarderBasic {
    static func field(_ user: String, _ password: String) -> String {
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }
}

/// Answers with the same each time, and remembers what it was asked.
private class Answering: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    let asked = Mutex<[AskingOrigin.Asked]>([])
    private let answer:
        @Sendable (URLAuthenticationChallenge) -> (
            URLSession.AuthChallengeDisposition, URLCredential?
        )

    init(
        _ answer:
            @escaping @Sendable (URLAuthenticationChallenge) -> (
                URLSession.AuthChallengeDisposition, URLCredential?
            )
    ) {
        self.answer = answer
    }

    convenience init(_ user: String, _ password: String = "secret") {
        self.init { _ in
            (
                .useCredential,
                URLCredential(user: user, password: password, persistence: .forSession)
            )
        }
    }

    fileprivate func note(_ challenge: URLAuthenticationChallenge, isOfTask: Bool) {
        self.asked.withLock {
            $0.append(
                AskingOrigin.Asked(
                    method: challenge.protectionSpace.authenticationMethod,
                    failures: challenge.previousFailureCount,
                    proposed: challenge.proposedCredential?.user, isOfTask: isOfTask))
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note(challenge, isOfTask: true)
        let (disposition, credential) = self.answer(challenge)
        completionHandler(disposition, credential)
    }
}

@Suite("Challenges of a server, met by tasks (§1.6, §6)")
struct CredentialsLoadingTests {
    private func status(_ response: URLResponse) -> Int? {
        (response as? HTTPURLResponse)?.statusCode
    }

    @Test("the delegate is asked once, and later requests need no question at all")
    func basic() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let delegate = Answering("user")
        let session = asking.session(delegate)
        for path in ["/a", "/b", "/c/d"] {
            let (data, response) = try await session.data(from: asking.url(path))
            #expect(String(decoding: data, as: UTF8.self) == "welcome")
            #expect(self.status(response) == 200)
        }
        #expect(delegate.asked.withLock { $0.count } == 1)
        let field = LarderBasic.field("user", "secret")
        #expect(asking.sent == [nil, field, field, field])
        // Another session of the same storage knows it, too.
        _ = try await asking.session().data(from: asking.url())
        #expect(asking.sent.count == 5)
        await asking.origin.stop()
    }

    @Test("without a delegate the 401 is the response, with its body and without an error")
    func delivered() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let (data, response) = try await asking.session().data(from: asking.url())
        #expect(String(decoding: data, as: UTF8.self) == "who?")
        #expect(self.status(response) == 401)
        #expect(asking.sent == [nil])
        await asking.origin.stop()
    }

    @Test("the credential in a URL answers without a delegate")
    func inURL() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let url = try #require(
            URL(string: asking.origin.url("/").replacing("http://", with: "http://user:secret@")))
        let (_, response) = try await asking.session().data(from: url)
        #expect(self.status(response) == 200)
        #expect(asking.sent == [nil, LarderBasic.field("user", "secret")])
        await asking.origin.stop()
    }

    @Test("a stored default credential answers without a delegate, at any port and realm it is for")
    func stored() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: asking.origin.port, protocol: NSURLProtectionSpaceHTTP,
            realm: "r", authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        asking.storage?.set(
            URLCredential(user: "user", password: "secret", persistence: .forSession), for: space)
        let (_, response) = try await asking.session().data(from: asking.url())
        #expect(self.status(response) == 200)
        await asking.origin.stop()
    }

    @Test("each wrong answer is asked about again, and the last refusal is the response")
    func refused() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let delegate = Answering { challenge in
            if challenge.previousFailureCount == 2 { return (.performDefaultHandling, nil) }
            let user = "wrong\(challenge.previousFailureCount)"
            return (
                .useCredential, URLCredential(user: user, password: "p", persistence: .forSession)
            )
        }
        let (data, response) = try await asking.session(delegate).data(from: asking.url())
        #expect(self.status(response) == 401)
        #expect(String(decoding: data, as: UTF8.self) == "who?")
        let asked = delegate.asked.withLock { $0 }
        #expect(asked.map(\.failures) == [0, 1, 2])
        #expect(asked.map(\.proposed) == [nil, "wrong0", "wrong1"])
        #expect(asking.storage?.allCredentials.isEmpty == true)
        await asking.origin.stop()
    }

    @Test("cancelling a challenge cancels the task")
    func cancelled() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let session = asking.session(Answering { _ in (.cancelAuthenticationChallenge, nil) })
        do {
            _ = try await session.data(from: asking.url())
            Issue.record("it was not cancelled")
        } catch {
            #expect((error as? URLError)?.code == .cancelled)
        }
        await asking.origin.stop()
    }

    @Test("Digest is answered as the server computes it, with content, and then at once")
    func digest() async throws {
        let asking = try await AskingOrigin { request in
            let server = DigestServer(method: request.method, content: request.body)
            if server.accepts(request["Authorization"]) { return response(body: "welcome") }
            return response(
                "401 Unauthorized",
                "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\", "
                    + "algorithm=SHA-256", body: "who?", cache: nil)
        }
        let delegate = Answering("user")
        let session = asking.session(delegate)
        for _ in 0..<3 {
            var request = URLRequest(url: try asking.url("/a?b"))
            request.httpMethod = "POST"
            request.httpBody = Data("content".utf8)
            let (_, response) = try await session.data(for: request)
            #expect(self.status(response) == 200)
        }
        #expect(
            delegate.asked.withLock { $0.map(\.method) } == [NSURLAuthenticationMethodHTTPDigest])
        #expect(asking.origin.count == 4)
        let counts = asking.sent.compactMap { DigestServer.parameters($0)?["nc"] }
        #expect(counts == ["00000001", "00000002", "00000003"])
        await asking.origin.stop()
    }

    @Test("a redirection to another origin takes no credential along")
    func redirected() async throws {
        let other = try await AskingOrigin { _ in response(body: "elsewhere") }
        let target = try other.url("/elsewhere")
        let asking = try await AskingOrigin { request in
            let answer = AskingOrigin.basic(request)
            guard answer.hasPrefix("HTTP/1.1 200") else { return answer }
            return response("302 Found", "Location: \(target)", cache: nil)
        }
        let session = asking.session(Answering("user"))
        let (data, _) = try await session.data(from: asking.url())
        #expect(String(decoding: data, as: UTF8.self) == "elsewhere")
        #expect(other.sent == [nil])
        #expect(asking.sent == [nil, LarderBasic.field("user", "secret")])
        await asking.origin.stop()
        await other.origin.stop()
    }

    @Test(
        "the credential in a URL goes along with redirections, and to no other origin (RFC 9110 §15.4)"
    )
    func inURLOfRedirection() async throws {
        let other = try await AskingOrigin(storage: nil, AskingOrigin.basic)
        let elsewhere = try other.url("/b")
        let asking = try await AskingOrigin(storage: nil) { request in
            switch request.target {
            case "/relative": response("302 Found", "Location: /b", cache: nil)
            case "/elsewhere": response("302 Found", "Location: \(elsewhere)", cache: nil)
            default: AskingOrigin.basic(request)
            }
        }
        for (path, expected) in [("/relative", 200), ("/elsewhere", 401)] {
            let text = asking.origin.url(path).replacing("http://", with: "http://user:secret@")
            let (_, response) = try await asking.session().data(from: URL.of(text))
            #expect(self.status(response) == expected)
        }
        #expect(asking.sent == [nil, nil, LarderBasic.field("user", "secret"), nil])
        #expect(other.sent == [nil])
        await asking.origin.stop()
        await other.origin.stop()
    }

    @Test("Basic goes to the task's delegate and never to the session's method (§6.1)")
    func routing() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let session = SessionWide()
        let (_, response) = try await asking.session(session).data(from: asking.url())
        #expect(self.status(response) == 401)
        #expect(session.count.withLock { $0 } == 0)
        let delegate = Answering("user")
        let (_, answered) = try await asking.session(session).data(
            from: asking.url(), delegate: delegate)
        #expect(self.status(answered) == 200)
        #expect(delegate.asked.withLock { $0.count } == 1)
        await asking.origin.stop()
    }

    @Test("a proxy is answered with a login of its own, which later requests bring along")
    func proxy() async throws {
        let asking = try await AskingOrigin { request in
            guard request["Proxy-Authorization"] == LarderBasic.field("user", "secret") else {
                return response(
                    "407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"p\"",
                    cache: nil)
            }
            return AskingOrigin.basic(request)
        }
        let delegate = Answering("user")
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCredentialStorage = asking.storage
        configuration.urlCache = nil
        configuration.connectionProxyDictionary = [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": asking.origin.port,
        ]
        let session = URLSession(
            configuration: configuration, delegate: delegate, delegateQueue: nil)
        for _ in 0..<2 {
            let url = try #require(URL(string: "http://origin.example/a"))
            let (_, response) = try await session.data(from: url)
            #expect(self.status(response) == 200)
        }
        #expect(delegate.asked.withLock { $0.count } == 2)
        #expect(asking.origin.requests.value.last?["Proxy-Authorization"] != nil)
        #expect(asking.storage?.allCredentials.keys.contains { $0.isProxy() } == true)
        await asking.origin.stop()
    }

    @Test("many tasks at once are each answered, and nothing is asked twice of one")
    func parallel() async throws {
        let asking = try await AskingOrigin(AskingOrigin.basic)
        let delegate = Answering("user")
        let session = asking.session(delegate)
        let statuses = try await withThrowingTaskGroup(of: Int?.self) { group in
            for number in 0..<20 {
                group.addTask {
                    let (_, response) = try await session.data(from: asking.url("/\(number)"))
                    return (response as? HTTPURLResponse)?.statusCode
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 20))
        #expect(delegate.asked.withLock { $0.allSatisfy { $0.failures == 0 } })
        await asking.origin.stop()
    }
}

/// Has the session-wide method alone.
private final class SessionWide: NSObject, URLSessionDelegate {
    let count = Mutex(0)

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.count.withLock { $0 += 1 }
        completionHandler(
            .useCredential, URLCredential(user: "user", password: "secret", persistence: .none))
    }
}
