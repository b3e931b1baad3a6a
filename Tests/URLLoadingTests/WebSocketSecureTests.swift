import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite(
    "WebSockets over TLS (§3.7)",
    .enabled(if: SecureOrigin.isAvailable, "nginx and openssl are needed as the server"))
struct WebSocketSecureTests {
    @Test(
        "speak with a server that the delegate trusts, and with no other",
        arguments: [true, false])
    func conversation(_ isTrusting: Bool) async throws {
        try await Scratch.with { scratch in
            let echo = try await ScriptedOrigin.start { connection in
                try await connection.accept(try await connection.requestHead())
                while true {
                    let frame = try await connection.frame()
                    try await connection.send(frame.first, frame.payload)
                    if frame.first == 0x88 { return }
                }
            }
            let server = try await SecureOrigin.nginx(
                try await MadeCertificate.make("wss", in: scratch.url), in: scratch.url,
                """
                location /chat {
                    proxy_pass http://127.0.0.1:\(echo.port); proxy_http_version 1.1;
                    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                }
                """)
            let delegate = TrustingDelegate()
            delegate.isTrusting.change { $0 = isTrusting }
            let session = URLSession.plain(delegate)
            let task = session.webSocketTask(
                with: try URL.of("wss://localhost:\(server.port)/chat"))
            task.resume()
            if isTrusting {
                let text = String(repeating: "ä", count: 50_000)
                try await task.send(.string(text))
                guard case .string(let answer) = try await task.receive() else {
                    Issue.record("no text")
                    return
                }
                #expect(answer == text)
                task.cancel(with: .normalClosure, reason: nil)
                try await delegate.completion()
                #expect(task.closeCode == .normalClosure)
            } else {
                let error = await #expect(throws: URLError.self) { try await task.receive() }
                #expect(error?.code == .serverCertificateHasUnknownRoot)
                try await delegate.completion()
            }
            let space = try #require(delegate.spaces.value.first)
            #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
            #expect(space.host == "localhost" && space.port == server.port)
            // As for HTTP.
            #expect(space.`protocol` == NSURLProtectionSpaceHTTPS)
            session.invalidateAndCancel()
            try await server.stop()
            await echo.stop()
        }
    }
}
