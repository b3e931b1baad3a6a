import CCurl
import Glibc
import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("A fetch that fails says how (RFC 9209 §2.3)", .timeLimit(.minutes(10)))
struct FailureTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var answer: String
        var ending = Ending.close
        var kind: UpstreamFailure.Kind
        var bodyBefore: String? = nil

        enum Ending { case close, reset, stall }
        var testDescription: String { self.name }
    }

    @Test(
        "breaks off an HTTP/2 response as a cut, and is a protocol error before",
        arguments: [CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3])
    func framing(_ code: CURLcode) {
        let end = CurlEnd(code: code)
        let before = end.failure(isHeadComplete: false, hasBegun: false)
        #expect(before.kind == .httpProtocolError)
        let cut = end.failure(isHeadComplete: true, hasBegun: true)
        #expect(cut.kind == .httpResponseIncomplete)
        #expect(before.cause == .connectionLost && cut.cause == .connectionLost)
    }

    @Test("says what libcurl has no words for")
    func words() {
        let retired = CurlEnd(code: CURLE_HTTP2).failure(isHeadComplete: false, hasBegun: false)
        #expect(retired.detail.contains("retired") && retired.kind == .httpProtocolError)
        let sent = CurlEnd(code: CURLE_SEND_FAIL_REWIND, detail: "seek callback returned error 1")
            .failure(isHeadComplete: false, hasBegun: false)
        #expect(sent.detail.hasPrefix("it was to be sent again, and content"))
        #expect(sent.kind == .connectionTerminated && sent.cause == .connectionLost)
    }

    @Test(
        "whatever the origin does wrong",
        arguments: [
            Case(name: "closes without an answer", answer: "", kind: .connectionTerminated),
            Case(
                name: "resets without an answer", answer: "", ending: .reset,
                kind: .connectionTerminated),
            Case(
                name: "closes inside the head", answer: "HTTP/1.1 200 OK\r\nX-A: b\r\n",
                kind: .httpResponseIncomplete),
            Case(
                name: "resets inside the head", answer: "HTTP/1.1 200 OK\r\nX-A: b\r\n",
                ending: .reset, kind: .httpResponseIncomplete),
            Case(
                name: "closes after a 1xx", answer: "HTTP/1.1 103 Hints\r\n\r\n",
                kind: .httpResponseIncomplete),
            Case(
                name: "closes inside content of known length",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
                kind: .httpResponseIncomplete, bodyBefore: "hello"),
            Case(
                name: "closes before the first byte of content",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
                kind: .httpResponseIncomplete, bodyBefore: ""),
            Case(
                name: "closes inside a chunk",
                answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
                kind: .httpResponseIncomplete, bodyBefore: "hello"),
            Case(
                name: "closes before the last chunk",
                answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                kind: .httpResponseIncomplete, bodyBefore: "hello"),
            Case(
                name: "resets inside content that the close would end",
                answer: "HTTP/1.1 200 OK\r\n\r\n", ending: .reset, kind: .httpResponseIncomplete,
                bodyBefore: ""),
            Case(
                name: "stalls before the head", answer: "", ending: .stall,
                kind: .httpResponseTimeout),
            Case(
                name: "stalls inside the head", answer: "HTTP/1.1 200 OK\r\nX-A", ending: .stall,
                kind: .httpResponseTimeout),
            Case(
                name: "stalls inside the content",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", ending: .stall,
                kind: .connectionReadTimeout, bodyBefore: "hello"),
            Case(
                name: "answers with HTTP/0.9", answer: "<html>hello</html>",
                kind: .httpProtocolError),
            Case(
                name: "answers with another version",
                answer: "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", kind: .httpProtocolError),
            Case(
                name: "gives a status of four digits",
                answer: "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", kind: .httpProtocolError),
            Case(
                name: "switches protocols unasked",
                answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
                kind: .httpProtocolError),
            Case(
                name: "announces two lengths",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
                kind: .httpProtocolError),
            Case(
                name: "announces a length and chunks",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "0\r\n\r\n",
                kind: .httpProtocolError),
            Case(
                name: "announces a length that is no number",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
                kind: .httpProtocolError),
            Case(
                name: "announces a length beyond counting",
                answer: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
                kind: .httpProtocolError),
            Case(
                name: "uses a transfer coding nobody asked for",
                answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                kind: .httpProtocolError),
            Case(
                name: "sends a chunk size that is none",
                answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                kind: .httpResponseIncomplete, bodyBefore: ""),
            Case(
                name: "folds a line before any field",
                answer: "HTTP/1.1 200 OK\r\n c\r\nContent-Length: 0\r\n\r\n",
                kind: .httpProtocolError),
            Case(
                name: "folds the line that announces chunks",
                answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n"
                    + "5\r\nhello\r\n0\r\n\r\n",
                kind: .httpProtocolError),
            Case(
                name: "begins a line with CR",
                answer: "HTTP/1.1 200 OK\r\nA: b\r\n\rContent-Length: 5\r\n\r\nhello",
                kind: .httpProtocolError),
            Case(
                name: "leaves a space before a colon",
                answer: "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", kind: .httpProtocolError),
            Case(
                name: "sends a NUL in a field",
                answer: "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\nContent-Length: 0\r\n\r\n",
                kind: .httpProtocolError),
            Case(
                name: "sends a head of many lines",
                answer: "HTTP/1.1 200 OK\r\n"
                    + String(
                        repeating: "X-A: " + String(repeating: "b", count: 900) + "\r\n", count: 80),
                ending: .stall, kind: .httpResponseHeaderSectionSize),
            Case(
                name: "sends a head of one line that never ends",
                answer: "HTTP/1.1 200 OK\r\nX-A: " + String(repeating: "b", count: 1 << 20),
                ending: .stall, kind: .httpResponseHeaderSectionSize),
            Case(
                name: "sends too many fields",
                answer: "HTTP/1.1 200 OK\r\n" + String(repeating: "A:b\r\n", count: 300) + "\r\n",
                ending: .stall, kind: .httpResponseHeaderSectionSize),
        ])
    func badOrigins(_ c: Case) async throws {
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write(c.answer)
            switch c.ending {
            case .close: connection.close()
            case .reset: connection.reset()
            case .stall: _ = connection.waitForEnd()
            }
        }
        let record = try await withUpstream({
            $0.responseTimeout = .milliseconds(200)
            $0.stallTimeout = .milliseconds(200)
        }) { await $0.answer(to: origin.request()) }
        #expect(record.failure?.kind == c.kind, "\(record.failure?.detail ?? "no failure")")
        #expect(record.failure?.party == .origin)
        #expect(record.trailers == nil)
        #expect((record.head != nil) == (c.bodyBefore != nil))
        // A reset may overtake what was sent before it.
        if c.ending != .reset { #expect(record.text == c.bodyBefore ?? "") }
        #expect(record.violations.isEmpty)
        let detail = record.failure?.detail ?? ""
        #expect(!detail.isEmpty && detail.utf8.allSatisfy { $0 >= 0x20 })
    }

    @Test("a refused connection")
    func refused() async throws {
        let closed = try ReservedPort()
        let request = Request(
            uri: TargetURI(scheme: .http, host: "127.0.0.1", port: closed.port, pathAndQuery: "/"))
        let record = try await withUpstream { await $0.answer(to: request) }
        withExtendedLifetime(closed) {}
        #expect(record.failure?.kind == .connectionRefused)
        #expect(record.facts == nil)
    }

    @Test("a name that does not exist (RFC 6761 §6.4)")
    func unknownName() async throws {
        let request = Request(
            uri: TargetURI(scheme: .http, host: "larder.invalid", pathAndQuery: "/"))
        let record = try await withUpstream({ $0.resolveTimeout = .seconds(30) }) {
            await $0.answer(to: request)
        }
        #expect([.dnsError, .dnsTimeout].contains(record.failure?.kind))
    }

    @Test("a name that does not exist leaves nothing behind for the next request")
    func afterUnknownName() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.respond("200 OK", "", "x") }
        }
        let request = Request(
            uri: TargetURI(scheme: .http, host: "larder.invalid", pathAndQuery: "/"))
        try await withUpstream({ $0.resolveTimeout = .seconds(5) }) { upstream in
            for _ in 0..<3 {
                #expect(await upstream.answer(to: request).failure != nil)
                let record = await upstream.answer(to: origin.request())
                #expect(record.failure == nil)
                #expect(record.text == "x")
            }
        }
    }

    @Test("no free connection in time")
    func noConnection() async throws {
        let origin = try ScriptedOrigin { _ = $0.waitForEnd() }
        try await withUpstream({
            $0.connectionsPerHost = 1
            $0.queueTimeout = .milliseconds(100)
        }) { upstream in
            let first = upstream.fetch(origin.request(), body: nil, receiver: Recorder())
            let record = await upstream.answer(to: origin.request())
            #expect(record.failure?.kind == .connectionLimitReached)
            #expect(record.failure?.party == .larder)
            first.cancel()
        }
    }

    @Test("an origin that takes no more of the content")
    func stalledUpload() async throws {
        let gone = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            _ = gone.block()
        }
        let piece = ByteBuffer(repeating: 0x61, count: 1 << 20)
        let content = ScriptedContent(Array(repeating: .piece(piece), count: 64))
        let record = try await withUpstream({ $0.stallTimeout = .milliseconds(200) }) { upstream in
            await upstream.answer(to: origin.request(.put, length: .known(64 << 20)), body: content)
        }
        gone.open()
        #expect(record.failure?.kind == .connectionWriteTimeout)
    }

    @Test(
        "a request that could not be sent as it stands is not sent",
        arguments: [
            ("127.0.0.1", "/a b", "GET"), ("127.0.0.1", "/a\r\nX: y", "GET"),
            ("127.0.0.1", "a", "GET"), ("127.0.0.1", "/a#b", "GET"), ("127.0.0.1", "", "GET"),
            ("127.0.0.1", "*", "GET"), ("evil@127.0.0.1", "/", "GET"), ("", "/", "GET"),
            ("127.0.0.1/x?", "/", "GET"), ("127.0.0.1\r\nX: y", "/", "GET"),
            ("127.0.0.1", "/", "CONNECT"), ("127.0.0.1", "/", "A B"), ("127.0.0.1", "/", ""),
            ("127.0.0.1", "/", "GET\r\nX: y"),
        ])
    func unsendable(_ host: String, _ target: String, _ method: String) async throws {
        let origin = try ScriptedOrigin { _ = $0.readHead() }
        let request = Request(
            method: Method(rawValue: method),
            uri: TargetURI(scheme: .http, host: host, port: origin.port, pathAndQuery: target))
        let record = try await withUpstream { await $0.answer(to: request) }
        #expect(record.failure?.party == .client)
        #expect(origin.connectionCount == 0)
    }
}
