import Foundation
import Testing

@testable import LarderProcess

/// A request that is refused, over the wire.
///
/// `\n` stands for CRLF, `@` for the origin's authority,
/// U+001D for an `@`.
struct Refused: Sendable, CustomTestStringConvertible {
    var text: String
    var status: Int
    /// The rule, as the detail names it; nil where another layer than the parser refuses.
    var reason: String?
    /// Whether the text is sent as it stands.
    var isRaw = false
    var accept: String?

    var testDescription: String {
        "\(self.status) \(self.reason ?? "") \(self.text.prefix(60).debugDescription)"
    }

    init(_ text: String, _ reason: String?, _ status: Int = 400, isRaw: Bool = false) {
        self.text = text
        self.reason = reason
        self.status = status
        self.isRaw = isRaw
    }

    func bytes(_ authority: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for byte in self.text.utf8 {
            switch byte {
            case UInt8(ascii: "\n") where !self.isRaw: bytes += [13, 10]
            case UInt8(ascii: "@"): bytes += authority.utf8
            case 0x1D: bytes.append(UInt8(ascii: "@"))
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    private static func line(_ line: String, _ reason: String, _ status: Int = 400) -> Refused {
        Refused("\(line)\nHost: @\n\n", reason, status)
    }

    private static func fields(_ fields: String, _ reason: String?, _ status: Int = 400) -> Refused
    {
        Refused("POST http://@/ HTTP/1.1\nHost: @\n\(fields)\n\n", reason, status)
    }

    static let lines: [Refused] = [
        Refused("GET http://@/ HTTP/1.1\r\nHost: @\nX: y\r\n\r\n", "bare-lf", isRaw: true),
        Refused("GET http://@/ HTTP/1.1\nHost: @\nX: a\u{D}b\n\n", "bare-cr"),
        Refused("\n\n\n\n\n\n\n\n\nGET http://@/ HTTP/1.1\nHost: @\n\n", "empty-lines"),
        Refused("\u{16}\u{3}\u{1}\u{2}", "bad-method"),
        line("G(T http://@/ HTTP/1.1", "bad-method"),
        line("GET  http://@/ HTTP/1.1", "bad-request-line"),
        line("GET http://@/", "bad-request-line"), line("GET http://@/ HTTP/1", "bad-version"),
        line("GET http://@/ HTTP/2.0", "unsupported-version", 505),
        line("PRI * HTTP/2.0", "unsupported-version", 505),
        line("GET gopher://@/ HTTP/1.1", "unknown-scheme"),
        line("GET http://@/\u{1} HTTP/1.1", "bad-target"),
        line("GET http://\u{1D}@/ HTTP/1.1", "user-info"),
        line("GET http://u:\"\u{1D}@/ HTTP/1.1", "user-info"),
        line("GET http://@/%zz HTTP/1.1", "bad-percent-encoding"),
        line("GET http:///a HTTP/1.1", "bad-host"),
        line("GET http://h:99999/ HTTP/1.1", "bad-port"),
        line("GET * HTTP/1.1", "target-form"), line("CONNECT h HTTP/1.1", "bad-port"),
    ]

    static let fieldLines: [Refused] = [
        fields("X : y", "space-before-colon"), fields("X", "missing-colon"),
        fields(": y", "empty-field-name"), fields("X(: y", "bad-field-name"),
        fields("X: a\u{0}b", "bad-field-value"), fields("X: a\n b", "folded-line"),
        Refused("GET http://@/ HTTP/1.1\n\n", "missing-host"),
        fields("Host: @", "repeated-host"),
        Refused("GET http://@/ HTTP/1.1\nHost: elsewhere.example\n\n", "host-mismatch"),
        Refused("GET http://@/ HTTP/1.1\nHost: a b\n\n", "bad-host"),
        fields("Content-Length: 1\nTransfer-Encoding: chunked", "both-lengths"),
        fields("Content-Length: 1\nContent-Length: 1", "repeated-content-length"),
        fields("Content-Length: +1", "bad-content-length"),
        fields("Content-Length: -1", "bad-content-length"),
        fields("Content-Length: 99999999999999999999", "bad-content-length"),
        fields("Transfer-Encoding: gzip", "chunked-not-last"),
        fields("Transfer-Encoding: chunked, chunked", "chunked-not-last"),
        fields("Transfer-Encoding: gzip, chunked", "unknown-transfer-coding", 501),
        fields("Transfer-Encoding:", "bad-transfer-encoding"),
        Refused(
            "POST http://@/ HTTP/1.0\nTransfer-Encoding: chunked\n\n", "transfer-encoding-version"),
        Refused(
            "GET http://@/\(String(repeating: "a", count: 16_384)) HTTP/1.1\nHost: @\n\n",
            "start-line-too-long", 414),
        fields("X: \(String(repeating: "x", count: 65_536))", "head-too-large", 431),
        fields((0..<200).map { "X\($0): y" }.joined(separator: "\n"), "too-many-fields", 431),
    ]

    /// Well-formed, and yet not for us to carry out.
    static let others: [Refused] = [
        fields("Expect: 200-maybe\nContent-Length: 1", nil, 417),
        fields("Via: 1.1 x", nil, 200),
        Refused("POST http://@/ HTTP/1.0\n\n", nil, 411),
        Refused("GET /origin-form HTTP/1.1\nHost: elsewhere.example\n\n", nil, 421),
        Refused("CONNECT h:443 HTTP/1.1\nHost: h:443\nContent-Length: 3\n\nabc", nil, 400),
        Refused("CONNECT h:25 HTTP/1.1\nHost: h:25\n\n", nil, 403),
    ]
}

@Suite(
    "Requests that are refused, over a real connection (RFC 9112, RFC 9209, RFC 9457)",
    .timeLimit(.minutes(10)))
struct RejectionTests {
    private func check(_ table: [Refused]) async throws {
        try await Scene.play { _ in
            response(body: "x", cache: nil)
        } _: { scene in
            for refused in table where refused.status != 200 {
                let client = try await scene.proxy.connect()
                try await client.send(refused.bytes(scene.origin.authority))
                let answer = try await client.message(to: "POST")
                let name = Comment(rawValue: refused.testDescription)
                #expect(answer.status == refused.status, name)
                let status = answer["Proxy-Status"] ?? ""
                #expect(status.hasPrefix("larder; error=http_request_"), name)
                #expect(answer["Content-Type"] == "application/problem+json", name)
                #expect(answer["Cache-Control"] == "no-store", name)
                #expect(answer.text.contains("\"status\":\(refused.status)"), name)
                // What could be allowed says by which setting.
                let isBeyondBound = [413, 414, 431].contains(refused.status)
                #expect(answer.text.contains("setting limits.") == isBeyondBound, name)
                if let reason = refused.reason {
                    #expect(status.contains("details=\"\(reason): "), name)
                    #expect(answer.text.contains("\"detail\":\"\(reason): "), name)
                    // Nothing behind such a head can be understood: the connection ends.
                    #expect(answer["Connection"] == "close", name)
                    let rest = try await client.readAll()
                    #expect(rest.isEmpty, name)
                }
                try await client.close()
            }
            #expect(scene.origin.count == 0)
        }
    }

    @Test("lines and targets") func lines() async throws { try await self.check(Refused.lines) }
    @Test("fields and framing") func fields() async throws {
        try await self.check(Refused.fieldLines)
    }
    @Test("what is well-formed and not carried out") func others() async throws {
        try await self.check(Refused.others)
    }

    @Test("Who prefers a page gets one, and no secret is repeated in it")
    func page() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(
                "GET /secret-path?token=hush HTTP/1.1\r\nHost: elsewhere.example\r\n"
                    + "Accept: text/html\r\nCookie: hush\r\nAuthorization: hush\r\n\r\n")
            let answer = try await client.message(to: "GET")
            #expect(answer.status == 421)
            #expect(answer["Content-Type"] == "text/html; charset=utf-8")
            #expect(answer.text.contains("<title>421 "))
            #expect(!answer.text.contains("hush"))
            #expect(!answer.text.contains("secret-path"))
        }
    }

    @Test("The proxy's own host has no pages, and says what it takes")
    func ownHost() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            let own = "127.0.0.1:\(scene.proxy.port)"
            let page = try await scene.proxy.get("http://\(own)/")
            #expect(page.status == 404)
            let posted = try await scene.proxy.send("POST", "http://\(own)/", body: "x")
            #expect(posted.status == 405)
            #expect(posted["Allow"] == "GET, HEAD, OPTIONS, TRACE")
            let client = try await scene.proxy.connect()
            try await client.send("OPTIONS * HTTP/1.1\r\nHost: \(own)\r\n\r\n")
            let options = try await client.message(to: "OPTIONS")
            #expect(options.status == 200)
            #expect(options["Allow"] == "GET, HEAD, OPTIONS, TRACE")
        }
    }

    @Test("TRACE and OPTIONS count Max-Forwards down, and end here at zero (RFC 9110 §7.6.2)")
    func maxForwards() async throws {
        try await Scene.play {
            response(body: $0["Max-Forwards"] ?? "none", cache: nil)
        } _: { scene in
            let on = try await scene.send("OPTIONS", "/a", ["Max-Forwards: 3"])
            #expect(on.text == "2")
            let trace = try await scene.send(
                "TRACE", "/a", ["Max-Forwards: 0", "X-Seen: 1", "Cookie: hush"])
            #expect(trace.status == 200)
            #expect(trace["Content-Type"] == "message/http")
            #expect(trace.text.contains("X-Seen: 1"))
            #expect(!trace.text.contains("hush"))
            #expect(scene.origin.count == 1)
        }
    }

    @Test("A head that does not end in time is 408, and an idle connection is closed")
    func headTimeout() async throws {
        try await Scene.play("timeouts: {head: 1s, idle: 1s}") { _ in
            response(body: "x")
        } _: { scene in
            let slow = try await scene.proxy.connect()
            try await slow.send("GET http://a.example/ HTTP/1.1\r\nHost: a.ex")
            let idle = try await scene.proxy.connect()
            let answer = try await slow.message(to: "GET")
            #expect(answer.status == 408)
            #expect(answer["Connection"] == "close")
            let nothing = try await idle.readAll()
            #expect(nothing.isEmpty)
        }
    }

    @Test("Access rules refuse with 403, and ask no origin")
    func access() async throws {
        let rules = """
            access:
              - {action: deny, methods: [DELETE]}
              - {action: deny, destinations: [".forbidden.example"]}
              - {action: allow, clients: [127.0.0.0/8]}
            """
        try await Scene.play(rules) { _ in
            response(body: "x")
        } _: { scene in
            let deleted = try await scene.send("DELETE", "/a")
            #expect(deleted.status == 403)
            #expect(
                deleted["Proxy-Status"]?.hasPrefix("larder; error=http_request_denied;") == true)
            let host = try await scene.proxy.get("http://www.forbidden.example/")
            #expect(host.status == 403)
            #expect(scene.origin.count == 0)
            let allowed = try await scene.get("/a")
            #expect(allowed.text == "x")
            let explained = try await scene.home.larder(
                "explain", "--method", "DELETE", scene.origin.url("/a"), "--config",
                scene.home.configuration)
            #expect(
                explained.outText.hasSuffix(
                    "access[0] denies it to clients by way of loopback or a Unix socket (settings: "
                        + "access): they get 403, whatever is stored\n"), "\(explained.outText)")
            let other = try await scene.home.larder(
                "explain", scene.origin.url("/a"), "--config", scene.home.configuration)
            #expect(!other.outText.contains("403"))
        }
    }

    @Test("Access rules on addresses hold for the names that lead there, and ask no origin")
    func addresses() async throws {
        let rules = """
            access:
              - {action: deny, destinations: [127.0.0.0/8, "::1"], methods: [GET]}
              - {action: allow, clients: [127.0.0.0/8]}
            """
        try await Scene.play(rules) { _ in
            response(body: "x")
        } _: { scene in
            let port = scene.origin.port
            for host in ["localhost", "127.0.0.1", "0.0.0.0", "[::]"] {
                let denied = try await scene.proxy.get("http://\(host):\(port)/a")
                #expect(denied.status == 403, "\(host)")
                #expect(
                    denied["Proxy-Status"]?.hasPrefix("larder; error=http_request_denied;") == true)
            }
            #expect(scene.origin.count == 0)
            let allowed = try await scene.send("HEAD", "/a")
            #expect(allowed.status == 200)
        }
    }

    @Test("What is never asked of an FTP server is refused with 501")
    func ftp() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            let url = "ftp://127.0.0.1:\(scene.origin.port)/a"
            for method in ["PUT", "DELETE"] {
                let answer = try await scene.proxy.send(method, url, body: "x")
                #expect(answer.status == 501)
                #expect(answer.text.contains("GET, HEAD"), "\(answer.text)")
            }
            #expect(scene.origin.count == 0)
        }
    }

    @Test("A head that the settings allow and no origin is sent is refused with 431 (RFC 6585 §5)")
    func largestHead() async throws {
        try await Scene.play("limits: {head: 4 MiB}") { _ in
            response(body: "x")
        } _: { scene in
            let answer = try await scene.send(
                "GET", "/a", ["Cookie: " + String(repeating: "a", count: 1_100_000)])
            #expect(answer.status == 431)
            #expect(
                answer["Proxy-Status"]?
                    .hasPrefix("larder; error=http_request_error; status-code=431") == true)
            #expect(scene.origin.count == 0)
        }
    }
}
