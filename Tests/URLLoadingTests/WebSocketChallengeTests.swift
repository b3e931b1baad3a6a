import Foundation
import LarderHTTP
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Challenges of a WebSocket's handshake (§3.7, §6)")
struct WebSocketChallengeTests {
    @Test("are those that a handshake can answer", arguments: ["ws", "WSS"])
    func methods(_ scheme: String) throws {
        for (lines, method) in [
            ("Negotiate, NTLM, Basic realm=\"r\"", NSURLAuthenticationMethodHTTPBasic),
            (
                "Negotiate, Basic realm=\"r\", Digest realm=\"r\", nonce=\"n\", qop=auth",
                NSURLAuthenticationMethodHTTPDigest
            ),
        ] {
            var script = try ScriptedChallenges("\(scheme)://example.com/a")
            let space = try #require(script.challenged(lines).challenge?.protectionSpace)
            #expect(space.authenticationMethod == method)
        }
        for line in ["Negotiate", "NTLM", "Negotiate, NTLM"] {
            var script = try ScriptedChallenges("\(scheme)://example.com/a")
            #expect(script.challenged(line).isDelivery)
        }
    }

    @Test("are not met beforehand by what authenticates a connection")
    func preemption() throws {
        for (line, isSent) in [("NTLM", false), ("Basic realm=\"r\"", true)] {
            var script = try ScriptedChallenges("http://example.com/a")
            _ = script.challenged(line)
            _ = script.use("user")
            script.accepted()
            var other = try ScriptedChallenges("ws://example.com/a", storage: script.storage)
            let sent = other.machine.preemption(for: other.request)
            #expect((sent != nil) == isSent, "\(line)")
        }
    }

    private static func origin() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            guard request["Authorization"] != nil else {
                try await connection.send(
                    response(
                        "401 Unauthorized", "WWW-Authenticate: Negotiate, Basic realm=\"r\"",
                        "Connection: close"))
                return
            }
            try await connection.accept(request)
            try await connection.send(0x81, Array((request["Authorization"] ?? "").utf8))
            _ = try await connection.frame()
        }
    }

    @Test("are answered with Basic where Negotiate is offered too", arguments: [true, false])
    func basic(_ isDelegates: Bool) async throws {
        let origin = try await Self.origin()
        let delegate = AnsweringSocketDelegate()
        let configuration = URLSessionConfiguration.ephemeral
        if !isDelegates {
            // For whichever method the server wants.
            configuration.urlCredentialStorage?.setDefaultCredential(
                URLCredential(user: "user", password: "pass", persistence: .forSession),
                for: URLProtectionSpace(
                    host: "127.0.0.1", port: origin.port, protocol: "http", realm: "r",
                    authenticationMethod: nil))
        }
        let session = URLSession(
            configuration: configuration, delegate: isDelegates ? delegate : nil,
            delegateQueue: nil)
        let task = session.webSocketTask(with: try URL.of("ws://\(origin.authority)/"))
        task.resume()
        guard case .string(let sent) = try await task.receive() else {
            Issue.record("no text")
            return
        }
        #expect(sent == "Basic dXNlcjpwYXNz")
        if isDelegates { #expect(delegate.messages.value == ["created", "challenge"]) }
        session.invalidateAndCancel()
        await origin.stop()
    }
}
