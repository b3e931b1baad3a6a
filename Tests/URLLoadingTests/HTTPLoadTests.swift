import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProcess
@testable import LarderTransfer
@testable import URLLoading

@Suite("A load over HTTP")
struct HTTPLoadTests {
    @Test("answers with what the origin sent, and nothing of the engine's own (§7)")
    func answer() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response("200 OK", "X-Own: 1", "Set-Cookie: a=1", body: "hello", cache: nil)
        }
        let engine = SessionEngine(.ephemeral)
        let heard = try await engine.heard(origin.url("/a"))
        #expect(heard.calls == ["answered", "measured"])
        #expect(heard.status == 200)
        #expect(heard.text == "hello")
        let names = heard.answer?.head?.fields.pairs.map(\.name)
        #expect(names == ["X-Own", "Set-Cookie", "Content-Length"])
        await origin.stop()
    }

    @Test(
        "knows the length of what comes, unless a coding is undone (§3.1)",
        arguments: [
            ("GET", "identity", nil, 5), ("GET", "x-own", nil, 5), ("GET", "gzip, x-own", nil, 5),
            ("GET", "gzip", "bytes=0-4", 5), ("HEAD", "gzip", nil, -1), ("HEAD", "x-own", nil, 5),
        ] as [(String, String, String?, Int64)])
    func expectedLength(
        method: String, coding: String, range: String?, length: Int64
    ) async throws {
        let origin = try await ScriptedOrigin.answering { request in
            let whole = response("200 OK", "Content-Encoding: \(coding)", body: "hello")
            return request.line.hasPrefix("HEAD") ? String(whole.dropLast(5)) : whole
        }
        let engine = SessionEngine(.ephemeral)
        var asked = request(origin.url("/"))
        asked.httpMethod = method
        asked.setValue(range, forHTTPHeaderField: "Range")
        // From the network, and once more, where it was stored.
        for _ in 0..<2 {
            let heard = try await engine.heard(asked)
            #expect(heard.answer?.response.expectedContentLength == length)
            // Later versions of libcurl fail where they do not know a coding.
            if CurlLibrary.version < 0x08_00_00 || !coding.contains("x-own") {
                #expect(heard.text == (method == "GET" ? "hello" : ""))
            }
        }
        await origin.stop()
    }

    @Test("sends what every request has, and no field of a proxy (§14)")
    func automaticFields() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response() }
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(origin.url("/a?b=c#d"))
        let sent = try #require(origin.requests.value.first)
        #expect(sent.line == "GET /a?b=c HTTP/1.1")
        #expect(sent["Accept"] == "*/*")
        #expect(sent["Accept-Encoding"]?.contains("gzip") == true)
        #expect(sent["Accept-Language"] != nil)
        #expect(sent["User-Agent"]?.contains("/") == true)
        for name in ["Via", "Expect", "Content-Length", "Content-Type", "Proxy-Connection"] {
            #expect(!sent.has(name), "\(name)")
        }
        await origin.stop()
    }

    @Test("lets the request's fields win over the session's, case set aside (§2, §14)")
    func additionalFields() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response() }
        let settings = URLSessionConfiguration.ephemeral
        settings.httpAdditionalHeaders = [
            "x-one": "session", "X-Two": "session", "user-agent": "mine", "Host": "elsewhere",
            "Authorization": "Basic eA==", "Content-Length": "9",
        ]
        let engine = SessionEngine(settings)
        var asked = request(origin.url("/"))
        asked.allHTTPHeaderFields = ["X-One": "request", "Accept": "text/plain", "Connection": "x"]
        _ = try await engine.heard(asked)
        let sent = try #require(origin.requests.value.first)
        #expect(sent.list("X-One") == "request")
        #expect(sent.list("X-Two") == "session")
        #expect(sent.list("User-Agent") == "mine")
        #expect(sent.list("Accept") == "text/plain")
        #expect(sent.list("Host") == origin.authority)
        for name in ["Authorization", "Content-Length", "Connection"] { #expect(!sent.has(name)) }
        await origin.stop()
    }

    @Test("sends content, says how much went out, and gives it a type (§3.3)")
    func upload() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response() }
        let engine = SessionEngine(.ephemeral)
        var asked = request(origin.url("/"))
        asked.httpMethod = "POST"
        let heard = try await engine.heard(asked, body: PiecesSource("one", "two"), length: 6)
        #expect(heard.status == 200)
        let sent = try #require(origin.requests.value.first)
        #expect(sent.text == "onetwo")
        #expect(sent["Content-Length"] == "6")
        #expect(sent["Content-Type"] == "application/x-www-form-urlencoded")
        #expect(!sent.has("Expect"))
        await origin.stop()
    }

    @Test(
        "refuses what cannot be sent, with a code, and still ends once (§13)",
        arguments: [
            ("http://", "GET", URLError.Code.badURL), ("gopher://h/", "GET", .unsupportedURL),
            ("http://h:0/", "GET", .badURL), ("http://h/", "NOT A METHOD", .badURL),
            ("ftp://h/", "POST", .unsupportedURL),
        ])
    func refusal(_ url: String, _ method: String, _ code: URLError.Code) async throws {
        var asked = request(url)
        asked.httpMethod = method
        let heard = try await SessionEngine(.ephemeral).heard(asked)
        #expect(heard.calls == ["failed", "measured"])
        #expect(heard.error?.code == code)
        #expect(heard.error?.failingURL != nil)
    }

    @Test("refuses a GET with content (§3.3)")
    func contentOfGet() async throws {
        let body = PiecesSource("x")
        let heard = try await SessionEngine(.ephemeral).heard(
            request("http://127.0.0.1:9/"), body: body, length: 1)
        #expect(heard.error?.code == .dataLengthExceedsMaximum)
        #expect(body.isCancelled.value)
        #expect(body.reads.value == 0)
    }

    @Test(
        "goes on with any number of connections to a host (§2)", arguments: [.max, .max - 4, 0, -1])
    func connections(_ number: Int) async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let settings = URLSessionConfiguration.ephemeral
        settings.httpMaximumConnectionsPerHost = number
        let session = URLSession(configuration: settings)
        let (data, _) = try await session.data(from: .of(origin.url("/")))
        #expect(data == Data("hello".utf8))
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("fails with a code where nobody listens (§13)")
    func refused() async throws {
        // No port that the system gives to those who ask for any; nobody has served it for decades.
        let url = "http://127.0.0.1:1/"
        let heard = try await SessionEngine(.ephemeral).heard(url)
        #expect(heard.error?.code == .cannotConnectToHost)
        #expect(heard.error?.failingURL?.absoluteString == url)
        let beneath = heard.error?.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(beneath?.domain == NSPOSIXErrorDomain)
        #expect(beneath?.code == Int(POSIXErrorCode.ECONNREFUSED.rawValue))
        #expect(beneath?.localizedDescription.isEmpty == false)
    }

    @Test("fails with a code where the response is none (§13)")
    func malformed() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.send("HTTP/1.1 twohundred OK\r\n\r\n")
        }
        let heard = try await SessionEngine(.ephemeral).heard(origin.url("/"))
        #expect(heard.error?.code == .badServerResponse)
        await origin.stop()
    }

    @Test("times out when nothing comes for as long as the request says (§3.1)")
    func timeout() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            _ = try await connection.request()
        }
        let settings = URLSessionConfiguration.ephemeral
        settings.timeoutIntervalForRequest = 0.2
        let heard = try await SessionEngine(settings).heard(origin.url("/"))
        #expect(heard.error?.code == .timedOut)
        await origin.stop()
    }

    @Test("fails its body where the connection breaks in the middle of it, and asks no second time")
    func brokenBody() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 9\r\n\r\nabc")
        }
        let heard = try await SessionEngine(.ephemeral).heard(origin.url("/"))
        #expect(heard.calls == ["answered", "measured"])
        guard case .failed(let failure) = heard.bodyEnd else {
            Issue.record("the body is whole")
            return
        }
        #expect(URLError(breaking: failure).code == .networkConnectionLost)
        #expect(origin.count == 1)
        await origin.stop()
    }

    @Test("fails its body where it was cancelled in the middle of it: what came is not the whole")
    func cancelledBody() async throws {
        let upstream = ScriptedUpstream { _, receiver, _ in
            _ = receiver.upstream(
                head: ResponseHead(status: .ok), bodyLength: .unknown,
                connection: UpstreamConnectionFacts())
            _ = receiver.upstream(piece: ByteBuffer(string: "abc"))
        }
        let probe = LoadProbe(readsBody: false)
        let load = upstream.engine().load(
            LoadOrder(request: request("http://origin.test/"), task: URLSessionTask()),
            observer: probe)
        try await probe.heard.wait(for: "the answer") { $0.answer != nil }
        let body = try #require(probe.heard.value.answer).body
        body.attach {}
        guard case .piece = body.next() else {
            Issue.record("no piece")
            return
        }
        load.cancel()
        // However often it is asked.
        for _ in 0..<2 {
            guard case .failed(.cancelled) = body.next() else {
                Issue.record("the body is whole")
                return
            }
        }
        let whole = try #require(body as? HTTPLoad)
        #expect(!whole.isWhole && whole.takeWhole() == nil)
        #expect(try await probe.ended().calls == ["answered", "measured"])
    }

    @Test("passes interim responses on, before the answer (§4.2)")
    func informational() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response(body: "x")
        }
        let heard = try await SessionEngine(.ephemeral).heard(origin.url("/"))
        #expect(heard.calls == ["informational 103", "answered", "measured"])
        await origin.stop()
    }

    @Test("ends once when it is cancelled, whatever the origin does (§3.1)")
    func cancelled() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            // The connection ends with the load.
            _ = try await connection.request()
        }
        let probe = LoadProbe()
        let load = SessionEngine(.ephemeral).load(
            LoadOrder(request: request(origin.url("/")), task: URLSessionTask()), observer: probe)
        try await origin.requests.wait(for: "the request") { !$0.isEmpty }
        load.cancel()
        load.cancel()
        let heard = try await probe.ended()
        #expect(heard.calls == ["measured"])
        await origin.stop()
    }
}
