import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Trusts servers when a test says so.
private final class HesitantDelegate: RecordingDelegate, @unchecked Sendable {
    let answers = Event<[@Sendable () -> Void]>([])
    /// Whether the first that was heard was the question, or the end.
    let wasAsked = Event<Bool?>(nil)

    override func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge", session)
        let credential = challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
        self.answers.change { answers in
            answers.append { completionHandler(.useCredential, credential) }
        }
        self.wasAsked.change { $0 = $0 ?? true }
    }

    override func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        super.urlSession(session, task: task, didCompleteWithError: error)
        self.wasAsked.change { $0 = $0 ?? false }
    }
}

@Suite(
    "The time for TLS to begin (§3.6, §6.1)", .timeLimit(.minutes(15)),
    .enabled(if: SecureServer.isAvailable, "openssl is needed as the server"))
struct StreamsHandshakeTests {
    /// Hands a client's first record to a server, and all answers back; what the client says to
    /// those stays here.
    private static func stalling(before server: SecureServer) async throws -> ScriptedOrigin {
        let port = server.origin.port
        return try await ScriptedOrigin.start { connection in
            let behind = try await Wire.connect(port: port)
            try await behind.send("STARTTLS\n")
            _ = try await behind.read(through: "\n")
            let head = try await connection.wire.read(5)
            let rest = try await connection.wire.read(Int(head[3]) << 8 | Int(head[4]))
            try await behind.send(head + rest)
            let back = Task {
                while true {
                    try await behind.seen.wait(for: "bytes") { !$0.bytes.isEmpty || $0.isOver }
                    let bytes = behind.seen.change { seen in
                        defer { seen.bytes = [] }
                        return seen.bytes
                    }
                    if bytes.isEmpty { break }
                    try await connection.wire.send(bytes)
                }
            }
            try await connection.wire.seen.wait(for: "the client to go") { $0.isOver }
            try await behind.close()
            back.cancel()
        }
    }

    /// A stream that waits five seconds for its peer, and begins TLS.
    private static func begun(_ origin: ScriptedOrigin) -> (HesitantDelegate, URLSession) {
        let delegate = HesitantDelegate()
        let session = URLSession.alone(delegate) {
            $0.timeoutIntervalForRequest = 5
            // There the server speaks once more, behind what the client says to its certificate.
            $0.tlsMaximumSupportedProtocolVersion = .TLSv12
        }
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.startSecureConnection()
        task.resume()
        return (delegate, session)
    }

    @Test("is the peer's alone: whoever is asked has his own, and it begins anew behind the answer")
    func stalled() async throws {
        let server = try await SecureServer()
        let origin = try await Self.stalling(before: server)
        var (delegate, session) = Self.begun(origin)
        // A busy machine may take longer than that to show the certificate: asked again, then.
        for _ in 0..<20 {
            try await delegate.wasAsked.wait(for: "the question, or the end") { $0 != nil }
            if delegate.wasAsked.value == true { break }
            session.invalidateAndCancel()
            (delegate, session) = Self.begun(origin)
        }
        try #require(delegate.wasAsked.value == true)
        // Another that waits for longer than a peer is waited for is the clock.
        let silent = try await ScriptedOrigin.start { connection in
            while try await connection.request() != nil {}
        }
        let clock = URLSession.alone { $0.timeoutIntervalForRequest = 6 }
        #expect(try await clock.loaded(silent.url("/")).code == .timedOut)
        #expect(delegate.errors.value.isEmpty)
        delegate.answers.value.first?()
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .timedOut)
        #expect(delegate.answers.value.count == 1)
        clock.invalidateAndCancel()
        session.invalidateAndCancel()
        for stopped in [silent, origin, server.origin] { await stopped.stop() }
    }
}
