import LarderHTTP
import NIOCore
import Testing

@testable import LarderProxy

@Suite("What is done about a request")
struct RequestRouterTests {
    static let own = OwnAuthorities(
        listeners: [.init(address: IPAddress(v4: 0), port: 3128)],
        local: .init(address: IPAddress(v4: 0xC000_0209), port: 3128), names: ["proxy.example"])

    static func route(
        _ text: String, configure: (inout ProxyConfiguration) -> Void = { _ in }
    ) throws -> RequestRoute {
        var configuration = ProxyConfiguration()
        configuration.pseudonym = "pantry"
        configure(&configuration)
        var parser = RequestHeadParser(limits: configuration.headLimits)
        var buffer = ByteBuffer(string: text)
        let head = try #require(try parser.parse(&buffer))
        return RequestRouter(configuration).route(
            head, client: ClientIdentity(address: .unix(nil)), own: Self.own,
            access: ScriptedAccess { $0.host == "closed.example" })
    }

    /// A request that has passed here before.
    static func passed(_ method: String, _ forwards: Int) -> String {
        "\(method) http://a.example/ HTTP/1.1\r\nHost: a.example\r\n"
            + "Max-Forwards: \(forwards)\r\nVia: 1.1 pantry\r\n\r\n"
    }

    @Test(
        "answers by itself what is not for an origin",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: 192.0.2.9:3128\r\n\r\n", 404),
            ("GET / HTTP/1.1\r\nHost: localhost:3128\r\n\r\n", 404),
            ("GET / HTTP/1.1\r\nHost: proxy.example:3128\r\n\r\n", 404),
            ("GET / HTTP/1.0\r\n\r\n", 404),
            ("POST / HTTP/1.1\r\nHost: localhost:3128\r\n\r\n", 405),
            ("TRACE / HTTP/1.1\r\nHost: localhost:3128\r\n\r\n", 200),
            ("TRACE http://localhost:3128/ HTTP/1.1\r\nHost: localhost:3128\r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 421),
            ("TRACE / HTTP/1.1\r\nHost: a.example\r\n\r\n", 421),
            ("GET http://127.0.0.1:3128/ HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n", 404),
            (
                "GET http://[::ffff:127.0.0.1]:3128/ HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:3128\r\n\r\n",
                404
            ),
            ("OPTIONS * HTTP/1.1\r\nHost: localhost:3128\r\n\r\n", 200),
            (
                "OPTIONS http://a.example/ HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n\r\n",
                200
            ),
            ("TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n\r\n", 200),
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nVia: 1.1 Pantry\r\n\r\n", 508),
            // Who is the last to get it answers it, whatever way it came (RFC 9110 §7.6.2).
            (Self.passed("TRACE", 0), 200), (Self.passed("OPTIONS", 0), 200),
            (Self.passed("TRACE", 1), 508), (Self.passed("OPTIONS", 1), 508),
            (Self.passed("GET", 0), 508),
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nExpect: cake\r\n\r\n", 417),
            ("POST http://a.example/ HTTP/1.0\r\n\r\n", 411),
            ("GET http://closed.example/ HTTP/1.1\r\nHost: closed.example\r\n\r\n", 403),
            ("CONNECT a.example:25 HTTP/1.1\r\nHost: a.example:25\r\n\r\n", 403),
            ("CONNECT closed.example:443 HTTP/1.1\r\nHost: closed.example:443\r\n\r\n", 403),
            ("CONNECT localhost:3128 HTTP/1.1\r\nHost: localhost:3128\r\n\r\n", 508),
            (
                "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nContent-Length: 3\r\n\r\n",
                400
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 11\r\n\r\n",
                413
            ),
        ] as [(String, UInt16)])
    func ownAnswers(_ text: String, _ status: UInt16) throws {
        let route = try Self.route(text) { $0.maximumRequestBody = ByteCount(10) }
        guard case .answer(let answer) = route else {
            Issue.record("\(route)")
            return
        }
        #expect(answer.status == StatusCode(status))
    }

    @Test("makes the request that travels on (RFC 9110 §7.6)")
    func travelling() throws {
        let route = try Self.route(
            """
            POST http://a.example/p?q HTTP/1.1\r
            Host: a.example\r
            Connection: close, X-Hop\r
            X-Hop: 1\r
            X-End: 2\r
            Proxy-Authorization: Basic c2VjcmV0\r
            Proxy-Connection: keep-alive\r
            Keep-Alive: 3\r
            TE: trailers\r
            Trailer: X-T\r
            Expect: 100-continue\r
            Upgrade: h2c\r
            Max-Forwards: 7\r
            Via: 1.0 fred\r
            Content-Length: 3\r
            \r

            """)
        guard case .exchange(let request) = route else {
            Issue.record("\(route)")
            return
        }
        #expect(request.uri.description == "http://a.example/p?q")
        #expect(
            request.fields == [
                "X-End": "2", "Max-Forwards": "7", "Via": "1.0 fred", "Via": "1.1 pantry",
            ])
        #expect(request.expectsContinue)
        #expect(request.bodyLength == .known(3))
    }

    @Test(
        "counts Max-Forwards down for OPTIONS and TRACE only",
        arguments: [
            ("OPTIONS", "3", "2"), ("TRACE", "1", "0"), ("GET", "3", "3"), ("OPTIONS", "x", "x"),
        ])
    func maxForwards(_ method: String, _ before: String, _ after: String) throws {
        let route = try Self.route(
            "\(method) http://a.example/ HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: \(before)\r\n\r\n"
        )
        guard case .exchange(let request) = route else {
            Issue.record("\(route)")
            return
        }
        #expect(request.fields.string(FieldName(.maxForwards)) == after)
    }

    @Test(
        "echoes a TRACE without its secrets (RFC 9110 §9.3.8)",
        arguments: [("http://a.example/x", "a.example"), ("/x?y", "localhost:3128")])
    func trace(_ target: String, _ host: String) throws {
        let route = try Self.route(
            "TRACE \(target) HTTP/1.1\r\nHost: \(host)\r\nMax-Forwards: 0\r\n"
                + "Authorization: Basic c2VjcmV0\r\nCookie: secret\r\n"
                + "Proxy-Authorization: Basic c2VjcmV0\r\nX-Seen: yes\r\n\r\n")
        guard case .answer(let answer) = route, case .message(let message) = answer.content else {
            Issue.record("\(route)")
            return
        }
        #expect(
            String(buffer: message) == "TRACE \(target) HTTP/1.1\r\nHost: \(host)\r\n"
                + "Max-Forwards: 0\r\nX-Seen: yes\r\n\r\n")
    }

    @Test("says who asked only when told to (RFC 7239)")
    func forwarded() throws {
        let route = try Self.route(get()) { $0.addsForwarded = true }
        guard case .exchange(let request) = route else { return }
        #expect(request.fields.string(FieldName(.forwarded)) == "by=_pantry;for=unknown;proto=http")
    }

    @Test(
        "asks for an upgrade where one can be had (RFC 9110 §7.8)",
        arguments: [
            ("GET", "1.1", "http", "websocket", "upgrade", "", "websocket"),
            ("GET", "1.1", "http", "h2c, websocket", "Upgrade", "", "websocket"),
            ("GET", "1.1", "http", "h2c", "upgrade", "", nil),
            ("GET", "1.1", "http", "h2c/1", "upgrade", "", nil),
            ("GET", "1.1", "http", "H2C/1, websocket/13, h2c-14", "upgrade", "", "websocket/13"),
            ("GET", "1.1", "http", "h2cold, a", "upgrade", "", "h2cold, a"),
            // Offered by programs with every request (RFC 2817): no reason to go past the cache.
            ("GET", "1.1", "http", "TLS/1.2", "upgrade", "", nil),
            ("GET", "1.1", "http", "tls, TLS/1.3, h2c", "upgrade", "", nil),
            ("GET", "1.1", "http", "TLS/1.2, websocket", "upgrade", "", "websocket"),
            ("GET", "1.1", "http", "tlsx/1", "upgrade", "", "tlsx/1"),
            ("GET", "1.1", "http", "websocket", "close", "", nil),
            ("GET", "1.0", "http", "websocket", "upgrade", "", nil),
            ("GET", "1.1", "https", "websocket", "upgrade", "", nil),
            ("GET", "1.1", "http", "websocket", "upgrade", "Content-Length: 1\r\n", nil),
            // What has something to say to the cache must not go past it (RFC 9111 §4.4).
            ("POST", "1.1", "http", "websocket", "upgrade", "", nil),
            ("DELETE", "1.1", "http", "websocket", "upgrade", "", nil),
            ("OPTIONS", "1.1", "http", "websocket", "upgrade", "", nil),
            (
                "GET", "1.1", "http", "websocket", "upgrade",
                "Cache-Control: max-stale, only-if-cached\r\n", nil
            ),
        ] as [(String, String, String, String, String, String, String?)])
    func upgrade(
        _ method: String, _ version: String, _ scheme: String, _ protocols: String,
        _ connection: String, _ fields: String, _ expected: String?
    ) throws {
        let route = try Self.route(
            "\(method) \(scheme)://a.example/ HTTP/\(version)\r\nHost: a.example\r\n\(fields)"
                + "Upgrade: \(protocols)\r\nConnection: \(connection)\r\n\r\n")
        switch route {
        case .upgrade(let request, let protocols):
            #expect(protocols.joined(separator: ", ") == expected)
            #expect(!request.fields.contains(FieldName(.upgrade)))
        case .exchange(let request):
            #expect(expected == nil)
            #expect(!request.fields.contains(FieldName(.upgrade)))
        case .tunnel, .answer:
            Issue.record("\(route)")
        }
    }
}
