import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Answers to clients (RFC 9112)")
struct ExchangeTests {
    static let hello =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        + "Via: 1.1 pantry\r\nContent-Length: 5\r\n\r\nhello"

    @Test("a hit, and the connection stays for the next")
    func keepAlive() async throws {
        try await Fixture.run { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            #expect(try await client.received("hello") == Self.hello)
            try await client.send(get("/2", "Connection: close\r\n"))
            let all = try await client.receivedAll()
            #expect(
                all == Self.hello
                    + Self.hello.replacing("\r\n\r\n", with: "\r\nConnection: close\r\n\r\n"))
            let entry = try await proxy.log.entry()
            #expect(entry.uri == "http://a.example/")
            #expect(entry.status == .ok)
            #expect(entry.responseBodyBytes == 5)
            #expect(entry.responseHeadBytes == UInt64(Self.hello.utf8.count - 5))
            #expect(entry.client.text == "127.0.0.1")
            #expect(entry.cacheStatus == CacheStatus(hit: true))
            #expect(entry.failure == nil)
            #expect(!entry.wasCut)
            #expect(entry.contentType == "text/plain")
            #expect(try await proxy.log.entry(1).exchange != entry.exchange)
        }
    }

    @Test(
        "requests sent ahead are answered in order, also byte by byte",
        arguments: [
            false, true,
        ])
    func pipelining(byteByByte: Bool) async throws {
        let session = ScriptedSession { exchange in
            exchange.answer(200, [:], "<\(exchange.request.uri.pathAndQuery)>")
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            let requests =
                get("/1") + "POST http://a.example/2 HTTP/1.1\r\nHost: a.example\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
                + "PUT http://a.example/3 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc"
                + "\r\n" + get("/4", "Connection: close\r\n")
            if byteByByte {
                for byte in requests.utf8 { try client.push(ByteBuffer(bytes: [byte])) }
            } else {
                try await client.send(requests)
            }
            let all = try await client.receivedAll()
            let bodies = all.matches(of: /<(.*?)>/).map { String($0.output.1) }
            #expect(bodies == ["/1", "/2", "/3", "/4"])
        }
    }

    @Test("a hundred requests sent ahead, answered from another thread")
    func pipelinedElsewhere() async throws {
        let session = ScriptedSession { exchange in
            Task { exchange.answer(200, [:], "<\(exchange.request.uri.pathAndQuery)>") }
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            let requests = (0..<100).map { get("/\($0)") }.joined()
            try await client.send(requests)
            try await client.endOutput()
            let all = try await client.receivedAll()
            let bodies = all.matches(of: /<\/(.*?)>/).map { String($0.output.1) }
            #expect(bodies == (0..<100).map(String.init))
        }
    }

    @Test("content of unknown length is chunked, with its trailers")
    func chunked() async throws {
        let body = ScriptedBody()
        let session = ScriptedSession { $0.answer(from: body) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get() + get("/2"))
            body.add("hello")
            try await client.received("5\r\nhello")
            body.add("wonderful world!")
            body.add(.end(trailers: ["X-T": "1", "Content-Length": "7", "Connection": "x"]))
            let all = try await client.received("\r\n\r\nHTTP/1.1")
            #expect(all.contains("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10\r\nwonder"))
            #expect(all.contains("world!\r\n0\r\nX-T: 1\r\n\r\nHTTP/1.1 200"))
            #expect(!all.contains("Content-Length"))
        }
    }

    @Test("HTTP/1.0 clients get no chunks and no second answer (RFC 9112 §9.3)")
    func http10() async throws {
        let session = ScriptedSession { exchange in
            exchange.answer(
                from: ScriptedBody([
                    .piece(ByteBuffer(string: "hello")), .end(trailers: Fields()),
                ]))
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/", "Connection: keep-alive\r\n", version: "1.0"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(all.hasSuffix("Connection: close\r\n\r\nhello"))
            #expect(!all.contains("chunked"))
        }
    }

    @Test(
        "HEAD and 304 have no content",
        arguments: [
            ("HEAD", UInt16(200), BodyLength.known(5), "Content-Length: 5\r\n\r\n"),
            ("HEAD", 200, .unknown, "Via: 1.1 pantry\r\n\r\n"),
            ("GET", 304, .known(5), "Content-Length: 5\r\n\r\n"),
            ("GET", 204, .known(5), "Via: 1.1 pantry\r\n\r\n"),
        ])
    func noContent(
        _ method: String, _ status: UInt16, _ length: BodyLength, _ end: String
    ) async throws {
        let body = ScriptedBody([.piece(ByteBuffer(string: "never"))])
        let session = ScriptedSession { $0.answer(from: body, length: length, status) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            let request = "\(method) http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"
            try await client.send(request)
            let first = try await client.received("\r\n\r\n")
            #expect(first.hasSuffix(end))
            try await client.send(request)
            let both = try await client.seen.wait(for: "two") {
                $0.bytes.count == 2 * first.utf8.count
            }
            #expect(String(decoding: both.bytes, as: UTF8.self) == first + first)
            #expect(body.isCancelled.value)
        }
    }

    @Test(
        "content that fails, or is not as long as announced, is cut off",
        arguments: [
            (BodyLength.unknown, "1.1", BodyStep.failed(.store("damaged"))),
            (.known(10), "1.1", .failed(.cancelled)),
            (.known(10), "1.1", .end(trailers: Fields())),
            (.known(6), "1.1", .piece(ByteBuffer(string: "too long"))),
            (.unknown, "1.0", .failed(.cancelled)),
        ])
    func cut(_ length: BodyLength, _ version: String, _ step: BodyStep) async throws {
        let body = ScriptedBody()
        let session = ScriptedSession { $0.answer(from: body, length: length) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/", version: version))
            body.add("hello")
            try await client.received("hello")
            body.add(step)
            let seen = try await client.seen.wait(for: "the cut") { $0.inputEnded || $0.closed }
            let text = String(decoding: seen.bytes, as: UTF8.self)
            #expect(text.hasSuffix("hello"))
            // Where the end of the connection would mean the end of the content: a reset.
            if version == "1.0" { #expect(seen.error != nil) }
            let entry = try await proxy.log.entry()
            #expect(entry.failure != nil)
            #expect(entry.wasCut)
            #expect(proxy.server.statistics().cut == 1)
        }
    }

    @Test(
        "of content that breaks off the log has the error's type by itself, and the text for people",
        arguments: [
            (
                BodyFailure.upstream(
                    UpstreamFailure(.httpResponseIncomplete, detail: "transfer closed")),
                ProxyErrorType.httpResponseIncomplete as ProxyErrorType?, "transfer closed"
            ),
            (.store("damaged"), .proxyInternalError, "store: damaged"),
            (.client("gone"), nil, "client: gone"),
        ])
    func cutErrorType(
        _ failure: BodyFailure, _ type: ProxyErrorType?, _ detail: String
    ) async throws {
        let body = ScriptedBody()
        let session = ScriptedSession { $0.answer(from: body, length: .known(10)) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            body.add("hello")
            try await client.received("hello")
            body.add(.failed(failure))
            let entry = try await proxy.log.entry()
            #expect(entry.errorType == type)
            #expect(entry.failure == detail)
        }
    }

    @Test("an answer in memory of another length than announced is not begun")
    func lyingAnswer() async throws {
        let session = ScriptedSession { $0.answer(200, [:], "hello", length: .known(7)) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            #expect(try await client.receivedAll() == "")
            #expect(try await proxy.log.entry().failure != nil)
        }
    }

    @Test("an answer that announces content and has none is cut off")
    func missingContent() async throws {
        let session = ScriptedSession { exchange in
            exchange.client.exchange(
                answered: Answer(
                    head: ResponseHead(status: .ok), bodyLength: .known(5), body: .none,
                    cacheStatus: CacheStatus()))
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get() + get("/2"))
            let all = try await client.receivedAll()
            #expect(all.hasSuffix("Content-Length: 5\r\n\r\n"))
            #expect(session.exchanges.value.count == 1)
        }
    }

    @Test("1xx answers are relayed, but not to HTTP/1.0", arguments: ["1.1", "1.0"])
    func informational(_ version: String) async throws {
        let session = ScriptedSession { exchange in
            exchange.client.exchange(
                informational: ResponseHead(status: StatusCode(103), fields: ["Link": "</a>"]))
            exchange.answer()
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/", version: version))
            let all = try await client.received("hello")
            let hint =
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 pantry\r\n\r\nHTTP/1.1 200"
            #expect(all.hasPrefix(hint) == (version == "1.1"))
            #expect(all.contains("103") == (version == "1.1"))
        }
    }

    @Test("failures and refusals name their reason, and the connection stays")
    func failures() async throws {
        let session = ScriptedSession { exchange in
            exchange.client.exchange(
                failed: ExchangeFailure(
                    status: .badGateway, error: .dnsError, detail: "no such \"host\"",
                    party: .origin, cacheStatus: CacheStatus(forward: .uriMiss)))
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/s3cret", "Accept: text/html\r\n"))
            let page = try await client.received("</html>\n")
            #expect(page.hasPrefix("HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html"))
            #expect(
                page.contains(
                    "Proxy-Status: larder; error=dns_error; details=\"no such \\\"host\\\"\""))
            #expect(page.contains("Cache-Status: larder; fwd=uri-miss\r\n"))
            #expect(!page.contains("s3cret"))
            try await client.send("GET / HTTP/1.1\r\nHost: 127.0.0.1:\(proxy.port)\r\n\r\n")
            let json = try await client.received("\"status\":404")
            #expect(json.contains("application/problem+json"))
            #expect(!json.contains("Connection: close"))
            // Told in full, so not cut.
            let entry = try await proxy.log.entry()
            #expect(entry.failure != nil)
            #expect(!entry.wasCut)
            #expect(
                proxy.server.statistics().ownAnswers == [StatusCode(502): 1, StatusCode(404): 1])
        }
    }

    @Test("a refusal by the access rules is noted as one, and an origin's is not")
    func denials() async throws {
        let session = ScriptedSession { exchange in
            guard exchange.request.uri.pathAndQuery == "/rebound" else {
                return exchange.answer(403, [:], "no")
            }
            exchange.client.exchange(
                failed: ExchangeFailure(
                    status: StatusCode(403), error: .httpRequestDenied, detail: "by its address",
                    party: .client, cacheStatus: CacheStatus(forward: .uriMiss)))
        }
        let access = ScriptedAccess { $0.host == "closed.example" }
        try await Fixture.run(session, access: access) { proxy in
            let client = try await proxy.connect()
            try await client.send(
                get("/") + "GET http://closed.example/ HTTP/1.1\r\nHost: closed.example\r\n\r\n"
                    + get("/rebound") + get("/")
                    + "CONNECT a.example:25 HTTP/1.1\r\nHost: a.example:25\r\n\r\n")
            try await proxy.log.entry(4)
            let entries = proxy.log.entries.value
            #expect(entries.map { $0.status?.rawValue } == [403, 403, 403, 403, 403])
            #expect(entries.map(\.isDenied) == [false, true, true, false, true])
        }
    }

    @Test(
        "what is no request is refused, and its connection ends",
        arguments: [
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX : 1\r\n\r\n", "400"),
            ("GET http://a.example/ HTTP/1.1\r\n\r\n", "400"),
            ("GET http://a.example/ HTTP/2.0\r\nHost: a.example\r\n\r\n", "505"),
            ("GET http://a.example/\(String(repeating: "x", count: 20_000)) HTTP/1.1\r\n", "414"),
            (get("/", "X: \(String(repeating: "x", count: 70_000))\r\n"), "431"),
            (
                "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                "501"
            ),
        ])
    func malformed(_ text: String, _ status: String) async throws {
        try await Fixture.run { proxy in
            let client = try await proxy.connect()
            try client.push(ByteBuffer(string: text + get("/smuggled")))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 \(status) "))
            #expect(all.contains("Connection: close\r\n"))
            #expect(all.matches(of: #/HTTP/1\.1 \d/#).count == 1)
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test(
        "hop-by-hop fields of an answer stay behind; unknown statuses pass",
        arguments: [
            UInt16(299), 599, 999,
        ])
    func relayed(_ status: UInt16) async throws {
        let session = ScriptedSession { exchange in
            exchange.answer(
                status,
                [
                    "Connection": "X", "Transfer-Encoding": "gzip", "Keep-Alive": "1",
                    "Content-Length": "99", "date": "then", "X-Own": "é",
                ])
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            let all = try await client.received("hello")
            #expect(all.hasPrefix("HTTP/1.1 \(status) "))
            #expect(
                all.hasSuffix(
                    "\r\ndate: then\r\nX-Own: é\r\nVia: 1.1 pantry\r\nContent-Length: 5\r\n\r\nhello"
                ))
        }
    }
}
