import Foundation
import LarderHTTP
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite(
    "TLS from end to end (§6)", .timeLimit(.minutes(5)),
    .enabled(if: SecureOrigin.isAvailable, "nginx and openssl are needed as the origin"))
struct SecurityTrustTests {
    @Test("nobody who is not vouched for is let in without a delegate")
    func nobody() async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            let origin = try await SecureOrigin.nginx(made, in: scratch.url)
            let session = URLSession.alone()
            let loaded = try await session.loaded(origin.url())
            #expect(loaded.code == .serverCertificateHasUnknownRoot)
            let handled = await withCheckedContinuation { continuation in
                session.dataTask(with: URL(string: origin.url()) ?? URL(fileURLWithPath: "/")) {
                    continuation.resume(returning: ($0, $1, $2 as? URLError))
                }.resume()
            }
            #expect(handled.0 == nil && handled.1 == nil)
            #expect(handled.2?.code == .serverCertificateHasUnknownRoot)
            session.invalidateAndCancel()
        }
    }

    @Test("trust in a server lets it in, in this session, at this host and port, and no other")
    func trusted() async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            let origin = try await SecureOrigin.nginx(made, in: scratch.url)
            let der = try made.der
            let delegate = SessionChallengeDelegate { challenge in
                guard let trust = challenge.protectionSpace.serverTrust else {
                    return (.cancelAuthenticationChallenge, nil)
                }
                // Pinned by the hash of the public key.
                let pin = ServerCertificate(der: der)?.publicKeyHash
                return trust.certificates.first?.publicKeyHash == pin
                    ? (.useCredential, URLCredential(trust: trust))
                    : (.cancelAuthenticationChallenge, nil)
            }
            let session = URLSession.alone(delegate)
            for _ in 0..<3 {
                #expect(try await session.loaded(origin.url()).text.hasSuffix(" HTTP/2.0 "))
            }
            let challenge = try #require(delegate.challenges.value.first)
            #expect(delegate.challenges.value.count == 1)
            let space = challenge.protectionSpace
            #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
            #expect(space.host == "localhost" && space.port == origin.port)
            #expect(space.protocol == "https" && space.receivesCredentialSecurely)
            #expect(space.serverTrust?.certificateData == [der])
            #expect(space.serverTrust?.fault == .unknownRoot)
            #expect(
                (challenge.error as? URLError)?.code == .serverCertificateHasUnknownRoot)
            // The same server by another name is another one.
            #expect(try await session.loaded(origin.url("127.0.0.1")).status == 200)
            #expect(
                delegate.challenges.value.map(\.protectionSpace.host) == ["localhost", "127.0.0.1"])
            // Verdicts are a session's own.
            let strict = SessionChallengeDelegate { _ in (.performDefaultHandling, nil) }
            let other = URLSession.alone(strict)
            #expect(
                try await other.loaded(origin.url()).code == .serverCertificateHasUnknownRoot)
            #expect(strict.challenges.value.count == 1)
            let blind = URLSession.alone()
            #expect(
                try await blind.loaded(origin.url()).code == .serverCertificateHasUnknownRoot)
            // And gone with the session's connections.
            await withCheckedContinuation { done in session.reset { done.resume() } }
            #expect(try await session.loaded(origin.url()).status == 200)
            #expect(delegate.challenges.value.count == 3)
            for session in [session, other, blind] { session.invalidateAndCancel() }
        }
    }

    @Test(
        "other answers refuse it, each with its error (§6.3, §13)",
        arguments: [
            (
                URLSession.AuthChallengeDisposition.performDefaultHandling,
                URLError.Code.serverCertificateHasUnknownRoot
            ),
            (.rejectProtectionSpace, .serverCertificateHasUnknownRoot),
            (.cancelAuthenticationChallenge, .cancelled),
            (.useCredential, .serverCertificateHasUnknownRoot),
        ])
    func refused(
        _ disposition: URLSession.AuthChallengeDisposition, _ code: URLError.Code
    ) async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            let other = try await MadeCertificate.make("other", in: scratch.url)
            let origin = try await SecureOrigin.nginx(made, in: scratch.url)
            let credentials = [
                nil, URLCredential(user: "u", password: "p", persistence: .forSession),
                URLCredential(
                    trust: ServerTrust(
                        TLSPeer(
                            host: "localhost", port: UInt16(clamping: origin.port),
                            certificates: [Array(try other.der)], fault: nil))),
            ]
            for credential in credentials {
                let delegate = SessionChallengeDelegate { _ in (disposition, credential) }
                let session = URLSession.alone(delegate)
                for _ in 0..<2 {
                    let loaded = try await session.loaded(origin.url())
                    #expect(loaded.code == code, "\(loaded)")
                }
                #expect(delegate.challenges.value.count == 2)
                session.invalidateAndCancel()
            }
        }
    }

    @Test("a session's delegate without the method leaves the question to the task's (§6.1)")
    func fallingThrough() async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            let origin = try await SecureOrigin.nginx(made, in: scratch.url)
            let trusting = TaskTrustDelegate()
            let session = URLSession.alone(trusting)
            #expect(try await session.loaded(origin.url()).status == 200)
            #expect(trusting.asked.value == 1)
            session.invalidateAndCancel()
            let task = TaskTrustDelegate()
            let bare = URLSession.alone(NothingDelegate())
            #expect(try await bare.loaded(origin.url(), delegate: task).status == 200)
            #expect(task.asked.value == 1)
            bare.invalidateAndCancel()
        }
    }

    @Test("another certificate on the next connection is asked about again")
    func changed() async throws {
        try await Scratch.with { scratch in
            let first = try await MadeCertificate.make("localhost", in: scratch.url)
            let second = try await MadeCertificate.make("next", in: scratch.url)
            let origin = try await SecureOrigin.nginx(first, in: scratch.url)
            let delegate = SessionChallengeDelegate { challenge in
                challenge.protectionSpace.serverTrust?.certificateData == [
                    (try? first.der) ?? Data()
                ]
                    ? (
                        .useCredential,
                        challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
                    ) : (.performDefaultHandling, nil)
            }
            let session = URLSession.alone(delegate)
            #expect(try await session.loaded(origin.url()).status == 200)
            try await origin.stop()
            let next = try await SecureOrigin.nginx(second, in: scratch.url, port: origin.port)
            #expect(
                try await session.loaded(next.url()).code == .serverCertificateHasUnknownRoot)
            #expect(delegate.challenges.value.count == 2)
            session.invalidateAndCancel()
        }
    }

    @Test("versions of TLS outside of the session's bounds are refused, and metrics tell the one")
    func versions() async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            for (version, low, high) in [
                ("TLSv1.2", tls_protocol_version_t.TLSv13, tls_protocol_version_t.TLSv13),
                ("TLSv1.3", .TLSv12, .TLSv12),
            ] {
                let origin = try await SecureOrigin.nginx(
                    made, in: scratch.url, "ssl_protocols \(version);")
                let session = URLSession.alone(TaskTrustDelegate()) {
                    $0.tlsMinimumSupportedProtocolVersion = low
                    $0.tlsMaximumSupportedProtocolVersion = high
                }
                #expect(try await session.loaded(origin.url()).code == .secureConnectionFailed)
                let open = TaskTrustDelegate()
                let other = URLSession.alone(open)
                let loaded = try await other.loaded(origin.url())
                #expect(loaded.text.hasPrefix(version))
                try await open.metrics.wait(for: "the metrics") { $0 != nil }
                let metrics = try #require(open.metrics.value?.transactionMetrics.last)
                #expect(
                    metrics.negotiatedTLSProtocolVersion
                        == (version == "TLSv1.2" ? .TLSv12 : .TLSv13))
                #expect(metrics.negotiatedTLSCipherSuite != nil)
                #expect(metrics.networkProtocolName == "h2")
                #expect(metrics.secureConnectionEndDate != nil)
                session.invalidateAndCancel()
                other.invalidateAndCancel()
            }
        }
    }

    @Test("a redirection from https to http takes no credential along (§5)")
    func downgraded() async throws {
        try await Scratch.with { scratch in
            let made = try await MadeCertificate.make("localhost", in: scratch.url)
            let plain = try await ScriptedOrigin.answering { _ in response(body: "plain") }
            let origin = try await SecureOrigin.nginx(
                made, in: scratch.url,
                "location /go { return 302 http://localhost:\(plain.port)/; }")
            let session = URLSession.alone(TaskTrustDelegate())
            var request = URLRequest(
                url: try #require(URL(string: "https://u:s3cr3t@localhost:\(origin.port)/go")))
            request.allHTTPHeaderFields = ["Authorization": "s3cr3t", "Cookie": "s3cr3t"]
            #expect(await session.loaded(request).text == "plain")
            let head = try #require(plain.requests.value.first)
            #expect(!head.fields.joined().contains("s3cr3t"))
            session.invalidateAndCancel()
            await plain.stop()
        }
    }
}

/// Trusts whoever the task is asked about.
private final class TaskTrustDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let asked = Event(0)
    let metrics = Event<URLSessionTaskMetrics?>(nil)

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.asked.change { $0 += 1 }
        guard let trust = challenge.protectionSpace.serverTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.metrics.change { $0 = metrics }
    }
}

private final class NothingDelegate: NSObject, URLSessionDelegate, Sendable {}
