import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Clients that have to say who they are (RFC 9110 §11.7)")
struct AuthenticationTests {
    static func run(
        _ authenticator: ScriptedAuthenticator = ScriptedAuthenticator(),
        _ session: ScriptedSession = ScriptedSession(), access: any AccessPolicy = LocalClients(),
        configure: (inout ProxyConfiguration) -> Void = { _ in },
        _ body: (Fixture, Peer) async throws -> Void
    ) async throws {
        try await Fixture.run(
            session, access: access, options: ListenerOptions(authentication: authenticator),
            configure: configure
        ) { proxy in
            try await body(proxy, try await proxy.connect())
        }
    }

    static func field(_ credentials: String) -> String {
        "Proxy-Authorization: Basic \(credentials)\r\n"
    }

    @Test("who says nothing is told how to (RFC 9110 §15.5.8), and may try again")
    func missing() async throws {
        try await Self.run { proxy, client in
            try await client.send(get())
            let refusal = try await client.received("\r\n\r\n{")
            #expect(refusal.hasPrefix("HTTP/1.1 407 Proxy Authentication Required\r\n"))
            #expect(
                refusal.contains(
                    "Proxy-Authenticate: Basic realm=\"pantry\", charset=\"UTF-8\"\r\n"
                        + "Proxy-Authenticate: Bearer realm=\"pantry\"\r\n"))
            #expect(refusal.contains("Proxy-Status: larder; error=http_request_denied"))
            #expect(refusal.contains("Content-Type: application/problem+json"))
            #expect(!refusal.contains("Connection: close"))
            try await client.send(get("/", Self.field("alice")))
            try await client.received("hello")
            #expect(proxy.session.exchanges.value.count == 1)
            let entries = try await [proxy.log.entry(0), proxy.log.entry(1)]
            #expect(entries.map(\.user) == [nil, "alice"])
            #expect(entries.map(\.session) == ["", "default"])
            #expect(entries.map { $0.status?.rawValue } == [407, 200])
            #expect(entries.map(\.isDenied) == [true, false])
        }
    }

    @Test(
        "what is not accepted is answered by its status, and the connection stays",
        arguments: [
            (.refused, "407 Proxy Authentication Required", "Proxy-Authenticate: Basic"),
            (
                .throttled(retryAfter: .milliseconds(12_001)), "429 Too Many Requests",
                "Retry-After: 13\r\n"
            ),
            (.throttled(retryAfter: .zero), "429 Too Many Requests", "Retry-After: 1\r\n"),
            (.busy, "503 Service Unavailable", "Retry-After: 1\r\n"),
        ] as [(AuthenticationVerdict, String, String)])
    func refused(_ verdict: AuthenticationVerdict, _ status: String, _ field: String) async throws {
        let authenticator = ScriptedAuthenticator { value, _ in
            value == "Basic wrong" ? verdict : ScriptedAuthenticator.byName(value)
        }
        try await Self.run(authenticator) { proxy, client in
            try await client.send(post(Self.field("wrong") + "Content-Length: 5\r\n", "GET /"))
            let refusal = try await client.received("\r\n\r\n{")
            #expect(refusal.hasPrefix("HTTP/1.1 \(status)\r\n"))
            #expect(refusal.contains(field))
            #expect(!refusal.contains("wrong"))
            try await client.send(get("/", Self.field("alice")))
            try await client.received("hello")
            #expect(proxy.session.exchanges.value.count == 1)
        }
    }

    @Test("two lines of credentials are no request, whichever of them is right")
    func repeated() async throws {
        try await Self.run { proxy, client in
            try await client.send(get("/", Self.field("alice") + Self.field("bob")))
            try await client.received("HTTP/1.1 400 Bad Request")
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test("credentials are verified once a connection, and again when they differ or grow old")
    func remembered() async throws {
        let authenticator = ScriptedAuthenticator()
        let asked = ["alice", "alice", "alicf", "alic", "alice"]
        try await Self.run(authenticator) { proxy, client in
            for (number, user) in asked.enumerated() {
                try await client.send(get("/\(number)", Self.field(user)))
                let entry = try await proxy.log.entry(number)
                #expect(entry.user == user)
            }
            let values = authenticator.checks.value.map { $0?.dropFirst(6) }
            #expect(values == ["alice", "alicf", "alic", "alice"])
            authenticator.forget()
            try await client.send(get("/old", Self.field("alice")))
            try await proxy.log.entry(asked.count)
            #expect(authenticator.checks.value.count == 5)
            // One without them is nobody's, whoever asked before it on the same connection.
            try await client.send(get("/without"))
            let last = try await proxy.log.entry(asked.count + 1)
            #expect(last.user == nil)
            #expect(proxy.session.exchanges.value.count == asked.count + 1)
        }
    }

    @Test("credentials travel no further, and leave no bytes behind")
    func notForwarded() async throws {
        try await Self.run { proxy, client in
            try await client.send(get("/", Self.field("c2VjcmV0") + "X-End: 1\r\n"))
            let request = try await proxy.session.exchange().request
            #expect(request.fields == ["X-End": "1", "Via": "1.1 pantry"])
            let bytes = String(decoding: request.fields.bytes, as: UTF8.self)
            #expect(!bytes.contains("c2VjcmV0"))
            let logged = try await proxy.log.entry().request?.fields.bytes ?? []
            #expect(!String(decoding: logged, as: UTF8.self).contains("c2VjcmV0"))
            try await client.send(
                "TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n"
                    + Self.field("c2VjcmV0") + "X-End: 2\r\n\r\n")
            let all = try await client.received("X-End: 2")
            #expect(!all.contains("c2VjcmV0"))
        }
    }

    @Test("nothing behind a request is acted on before its credentials are judged")
    func pausing() async throws {
        let authenticator = ScriptedAuthenticator.later()
        try await Self.run(authenticator) { proxy, client in
            let inner = get("/inner", Self.field("alice"))
            try await client.send(
                post(Self.field("alice") + "Content-Length: \(inner.utf8.count)\r\n", inner)
                    + get("/behind", Self.field("alice")))
            let check = try await authenticator.wait()
            #expect(proxy.session.exchanges.value.isEmpty)
            #expect(authenticator.checks.value.count == 1)
            check.complete(.refused)
            let behind = try await authenticator.wait(1)
            behind.complete(.known(user: "alice"))
            let exchange = try await proxy.session.exchange()
            #expect(exchange.request.uri.pathAndQuery == "/behind")
            let all = try await client.received("hello")
            #expect(all.hasPrefix("HTTP/1.1 407 "))
            #expect(authenticator.checks.value.count == 2)
        }
    }

    @Test("content that came meanwhile reaches the session whole", arguments: [true, false])
    func content(ends: Bool) async throws {
        let authenticator = ScriptedAuthenticator.later()
        try await Self.run(authenticator, ScriptedSession { _ in }) { proxy, client in
            try await client.send(post(Self.field("alice") + "Content-Length: 5\r\n", "hello"))
            let check = try await authenticator.wait()
            if ends { try await client.endOutput() }
            check.complete(.known(user: "alice"))
            let exchange = try await proxy.session.exchange()
            #expect(try await exchange.content().text == "hello")
            exchange.answer(200, [:], "done")
            try await client.received("done")
        }
    }

    @Test("content that ended early meanwhile is told to be incomplete")
    func contentEndedEarly() async throws {
        let authenticator = ScriptedAuthenticator.later()
        try await Self.run(authenticator, ScriptedSession { _ in }) { proxy, client in
            try await client.send(post(Self.field("alice") + "Content-Length: 9\r\n", "hello"))
            let check = try await authenticator.wait()
            try await client.endOutput()
            check.complete(.known(user: "alice"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 400 Bad Request"))
        }
    }

    @Test("a client that waits for leave to send gets it after its verdict only")
    func expectation() async throws {
        let authenticator = ScriptedAuthenticator.later()
        try await Self.run(authenticator, ScriptedSession { _ in }) { proxy, client in
            try await client.send(
                post(Self.field("alice") + "Content-Length: 5\r\nExpect: 100-continue\r\n"))
            let check = try await authenticator.wait()
            #expect(client.seen.value.bytes.isEmpty)
            check.complete(.known(user: "alice"))
            let exchange = try await proxy.session.exchange()
            async let content = exchange.content()
            try await client.received("HTTP/1.1 100 Continue\r\n\r\n")
            try await client.send("hello")
            #expect(try await content.text == "hello")
            exchange.answer()
            try await client.received("hello")
        }
    }

    @Test("a client that waits for leave to send and is refused sends nothing")
    func expectationRefused() async throws {
        try await Self.run { proxy, client in
            try await client.send(post("Content-Length: 5\r\nExpect: 100-continue\r\n"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 407 "))
            #expect(all.contains("Connection: close\r\n"))
        }
    }

    @Test("a client may leave while its credentials are judged")
    func leaves() async throws {
        let authenticator = ScriptedAuthenticator.later()
        try await Self.run(authenticator) { proxy, client in
            try await client.send(get("/", Self.field("alice")))
            let check = try await authenticator.wait()
            try await client.reset()
            let entry = try await proxy.log.entry()
            #expect(entry.wasCut)
            #expect(entry.request?.fields.contains(FieldName(.proxyAuthorization)) == false)
            #expect(entry.user == nil)
            check.complete(.known(user: "alice"))
            await proxy.server.drain(within: .seconds(5))
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test("what is sent ahead of a verdict is bounded")
    func bounded() async throws {
        let authenticator = ScriptedAuthenticator.later()
        let size = 32 << 20
        try await Self.run(authenticator, configure: { $0.pipelineBuffer = .kibibytes(16) }) {
            proxy, client in
            try await client.send(post(Self.field("alice") + "Content-Length: \(size)\r\n"))
            let check = try await authenticator.wait()
            try client.push(ByteBuffer(repeating: 120, count: size))
            // A second connection shows that the loops have gone on.
            let other = try await proxy.connect()
            try await other.send(get("/", Self.field("bob")))
            _ = try await authenticator.wait(1)
            // Both kernels' socket buffers, and our own.
            #expect(proxy.server.statistics().bytesIn < 16 << 20)
            check.complete(.refused)
            try await client.received("HTTP/1.1 407 ")
        }
    }

    @Test("a tunnel has to be asked for by somebody who is known")
    func tunnel() async throws {
        let authenticator = ScriptedAuthenticator.later()
        let origin = try await RawOrigin.start()
        try await Self.run(authenticator, configure: { $0.connectPorts = [UInt16(origin.port)] }) {
            proxy, client in
            let connect = TunnelTests.connect(origin).dropLast()
            let unknown = try await proxy.connect()
            // What comes ahead is no request, though it says who asks (RFC 9931).
            try await unknown.send("\(connect)\r\n" + get("/ahead", Self.field("alice")))
            let refusal = try await unknown.receivedAll()
            #expect(refusal.hasPrefix("HTTP/1.1 407 "))
            #expect(refusal.contains("\r\nConnection: close\r\n"))
            try await client.send("\(connect)\(Self.field("alice"))\r\nahead")
            let check = try await authenticator.wait()
            #expect(origin.connections == 0)
            check.complete(.known(user: "alice"))
            let far = try await origin.accepted()
            try await far.received("ahead")
            try await client.received("200 Connection established")
            try await client.close()
            try await far.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            try await far.close()
            let entry = try await proxy.log.entry(1)
            #expect(entry.isTunnel)
            #expect(entry.user == "alice")
            #expect(entry.session == "default")
            #expect(proxy.session.exchanges.value.isEmpty)
        }
        try await origin.stop()
    }

    @Test("an upgrade, too, and its origin does not see the credentials")
    func upgrade() async throws {
        let authenticator = ScriptedAuthenticator.later()
        let origin = try await RawOrigin.start()
        try await Self.run(authenticator) { proxy, client in
            let upgrade = TunnelTests.upgrade(origin).dropLast()
            try await client.send("\(upgrade)\(Self.field("c2VjcmV0"))\r\n")
            let check = try await authenticator.wait()
            #expect(origin.connections == 0)
            check.complete(.known(user: "alice"))
            let far = try await origin.accepted()
            let request = try await far.received("\r\n\r\n")
            #expect(request.contains("Upgrade: websocket"))
            #expect(!request.contains("c2VjcmV0"))
            #expect(!request.lowercased().contains("proxy-auth"))
            try await client.close()
            try await far.close()
        }
        try await origin.stop()
    }

    @Test("access rules see the user, and so does the way of a redirection")
    func access() async throws {
        let access = ScriptedAccess {
            $0.user != "alice" || $0.host == "closed.example" || $0.method == .delete
        }
        try await Self.run(access: access) { proxy, client in
            try await client.send(get("/", Self.field("bob")))
            try await client.received("HTTP/1.1 403 ")
            try await client.received("}")
            try await client.send(get("/", Self.field("alice")))
            try await client.received("hello")
            let permits = try #require(try await proxy.session.exchange().options.permits)
            let cases = [
                ("http://open.example/", true), ("http://closed.example/", false),
                ("http://localhost:\(proxy.port)/", false),
                ("http://127.0.0.1:\(proxy.port)/", false), ("https://open.example:1/", true),
            ]
            for (uri, expected) in cases {
                let target = try #require(TargetURI(text: uri))
                #expect(permits(.get, target) == expected, "\(uri)")
                #expect(!permits(.delete, target), "\(uri)")
            }
        }
    }
}
