import Foundation
import Testing

@testable import LarderProcess

/// An origin that breaks off, and in which form it had announced its content.
struct BrokenBody: Sendable, CustomTestStringConvertible {
    var name: String
    var head: String
    var body: String
    var resets = false
    var testDescription: String { self.name }

    static let all = [
        BrokenBody(
            name: "Content-Length too long", head: "Content-Length: 100", body: "0123456789"),
        BrokenBody(
            name: "chunked, cut in a chunk", head: "Transfer-Encoding: chunked",
            body: "14\r\n0123456789"),
        BrokenBody(
            name: "chunked, cut behind a chunk", head: "Transfer-Encoding: chunked",
            body: "a\r\n0123456789\r\n"),
        BrokenBody(
            name: "chunked, cut in the trailers", head: "Transfer-Encoding: chunked",
            body: "a\r\n0123456789\r\n0\r\nX: y\r\n"),
        BrokenBody(
            name: "chunked, no chunk size", head: "Transfer-Encoding: chunked",
            body: "a\r\n0123456789\r\nzz\r\n"),
        BrokenBody(
            name: "reset inside Content-Length", head: "Content-Length: 100", body: "0123456789",
            resets: true),
        BrokenBody(
            name: "reset where the close would end the body", head: "X: y", body: "0123456789",
            resets: true),
    ]
}

@Suite("An origin that breaks off, stalls or lies", .timeLimit(.minutes(10)))
struct OriginTests {
    @Test("A truncated body is never stored, and the client is cut off", arguments: BrokenBody.all)
    func truncated(_ broken: BrokenBody) async throws {
        let hasRead = Event(0)
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\(broken.head)\r\n\r\n\(broken.body)"
            )
            // The client has the beginning before the end comes.
            let served = connection.index
            try await hasRead.wait(for: "the client to read") { $0 > served }
            if broken.resets { try await connection.wire.reset() }
        } _: { scene in
            for turn in 1...2 {
                let client = try await scene.proxy.connect()
                try await client.send(scene.request("GET", "/a"))
                let head = try await client.head()
                #expect(head.status == 200)
                let isChunked = head["Transfer-Encoding"] == "chunked"
                _ = try await client.read(through: "0123456789")
                hasRead.change { $0 += 1 }
                let rest = try await client.readAll()
                #expect(rest.end(of: Array("0\r\n\r\n".utf8)) == nil)
                #expect(isChunked || head.has("Content-Length"))
                #expect(scene.origin.count == turn)
            }
            let list = try await scene.home.cache("list")
            #expect(list.out.isEmpty)
        }
    }

    @Test("To an HTTP/1.0 client, for whom the close is the end, a cut is a reset")
    func truncatedForOldClient() async throws {
        let hasRead = Event(false)
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n")
            try await hasRead.wait(for: "the client to read") { $0 }
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send("GET \(scene.origin.url("/a")) HTTP/1.0\r\n\r\n")
            let head = try await client.head()
            #expect(!head.has("Transfer-Encoding"))
            _ = try await client.read(10)
            hasRead.change { $0 = true }
            try await client.seen.wait(for: "the reset") { $0.closed }
            #expect(client.seen.value.wasReset)
        }
    }

    /// An origin's answer that is none, and what the client is told instead.
    struct NoAnswer: Sendable, CustomTestStringConvertible {
        var name: String
        var sends: [String]
        var resets = false
        var stalls = false
        var status = 502
        var error: String
        var testDescription: String { self.name }
    }

    @Test(
        "An answer that is none becomes one of ours",
        arguments: [
            NoAnswer(name: "close without a byte", sends: [], error: "connection_terminated"),
            NoAnswer(
                name: "reset without a byte", sends: [], resets: true,
                error: "connection_terminated"),
            NoAnswer(
                name: "close inside the head", sends: ["HTTP/1.1 200 OK\r\nX: y\r\n"],
                error: "http_response_incomplete"),
            NoAnswer(
                name: "reset inside the head", sends: ["HTTP/1.1 200 OK\r\nX: y\r\n"], resets: true,
                error: "http_response_incomplete"),
            NoAnswer(
                name: "silence", sends: [], stalls: true, status: 504,
                error: "http_response_timeout"),
            NoAnswer(
                name: "silence inside the head", sends: ["HTTP/1.1 200 OK\r\nX: "], stalls: true,
                status: 504, error: "http_response_timeout"),
            NoAnswer(
                name: "junk", sends: ["\u{16}\u{3}\u{1} what is this\r\n\r\n"],
                error: "http_protocol_error"),
            NoAnswer(
                name: "HTTP/2 unasked", sends: ["HTTP/2.0 200 OK\r\n\r\n"],
                error: "http_protocol_error"),
            NoAnswer(
                name: "two lengths",
                sends: ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
                error: "http_protocol_error"),
            NoAnswer(
                name: "both lengths",
                sends: [
                    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                ], error: "http_protocol_error"),
            NoAnswer(
                name: "a negative length", sends: ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"],
                error: "http_protocol_error"),
            NoAnswer(
                name: "a space before the colon", sends: ["HTTP/1.1 200 OK\r\nX : y\r\n\r\n"],
                error: "http_protocol_error"),
            NoAnswer(
                name: "a status of two digits", sends: ["HTTP/1.1 99 Low\r\n\r\n"],
                error: "http_protocol_error"),
        ])
    func noAnswer(_ answer: NoAnswer) async throws {
        let settings = "timeouts: {response: 1s, stall: 1s}"
        try await Scene.scripted(settings) { connection in
            _ = try await connection.request()
            for text in answer.sends { try await connection.send(text) }
            if answer.resets { try await connection.wire.reset() }
            if answer.stalls { _ = try await connection.wire.readAll() }
        } _: { scene in
            let failed = try await scene.get("/a")
            #expect(failed.status == answer.status)
            #expect(
                failed["Proxy-Status"]?.hasPrefix("larder; error=\(answer.error);") == true,
                "\(failed["Proxy-Status"] ?? "")")
            #expect(failed["Content-Type"] == "application/problem+json")
            #expect(failed["Cache-Control"] == "no-store")
            #expect(failed.text.contains("\"status\":\(answer.status)"))
            #expect(scene.origin.count == 1)
        }
    }

    @Test("A stall inside the body cuts the client off")
    func stalledBody() async throws {
        try await Scene.scripted("timeouts: {stall: 1s}") { connection in
            _ = try await connection.request()
            try await connection.send(
                response(body: "0123456789").replacing(
                    "Content-Length: 10", with: "Content-Length: 20"))
            _ = try await connection.wire.readAll()
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a"))
            let head = try await client.head()
            #expect(head["Content-Length"] == "20")
            let rest = try await client.readAll()
            #expect(rest == Array("0123456789".utf8))
            let list = try await scene.home.cache("list")
            #expect(list.out.isEmpty)
        }
    }

    @Test("A head of a mebibyte, or without end, is 502", arguments: [true, false])
    func largeHead(_ ends: Bool) async throws {
        let line = "X-Filler: " + String(repeating: "f", count: 1_014) + "\r\n"
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send("HTTP/1.1 200 OK\r\n")
            if ends {
                try await connection.send(
                    String(repeating: line, count: 1_024) + "Content-Length: 0\r\n\r\n")
                _ = try await connection.wire.readAll()
            }
            while !connection.wire.seen.value.isOver { try await connection.send(line) }
        } _: { scene in
            let failed = try await scene.get("/a")
            #expect(failed.status == 502)
            #expect(
                failed["Proxy-Status"]?.hasPrefix(
                    "larder; error=http_response_header_section_size;") == true)
            #expect(failed.text.contains("\"status\":502"))
        }
    }

    @Test("A line without end is 502, too")
    func largeLine() async throws {
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send("HTTP/1.1 200 OK\r\nX: ")
            let piece = String(repeating: "f", count: 65_536)
            while !connection.wire.seen.value.isOver { try await connection.send(piece) }
        } _: { scene in
            let failed = try await scene.get("/a")
            #expect(failed.status == 502)
            #expect(
                failed["Proxy-Status"]?.hasPrefix(
                    "larder; error=http_response_header_section_size;") == true)
        }
    }

    @Test(
        "Bytes beyond the announced length are never the next answer",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ])
    func excess(_ first: String) async throws {
        let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
        try await Scene.scripted { connection in
            guard let request = try await connection.request() else { return }
            if request.target == "/first" {
                try await connection.send(first + poison)
            } else {
                try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean")
            }
            // More would come on this connection, and must not be asked for.
            while let next = try await connection.request() {
                try await connection.send(
                    "HTTP/1.1 200 OK\r\nX-Reused: \(next.target)\r\nContent-Length: 6\r\n\r\nreused"
                )
            }
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/first"))
            let answer = try await client.message(to: "GET")
            #expect(answer.text == "ok" || answer.status == 204)
            for i in 0..<3 {
                let next = try await scene.get("/next\(i)")
                #expect(next.text == "clean" || next.text == "reused")
                #expect(next["X-Reused"] == nil || next["X-Reused"] == "/next\(i)")
            }
        }
    }

    @Test(
        "Nobody listens there any more: what is stored answers who prefers something newer",
        arguments: [
            ("max-age=0", "fwd=request", "grace-without-answer"),
            ("min-fresh=6000", "fwd=request", "grace-without-answer"), ("no-cache", nil, nil),
        ] as [(String, String?, String?)])
    func gone(_ asked: String, _ forward: String?, _ detail: String?) async throws {
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send(
                response("200 OK", "ETag: \"a\"", "Connection: close", body: "index"))
        } _: { scene in
            #expect(try await scene.get("/index").text == "index")
            try await scene.stored("/index")
            let url = scene.origin.url("/index")
            await scene.origin.stop()
            let answer = try await scene.proxy.get(url, "Cache-Control: \(asked)")
            guard let forward, let detail else {
                #expect(answer.status == 502)
                return
            }
            #expect(answer.status == 200)
            #expect(answer.text == "index")
            #expect(answer.has("Age"))
            let told = answer["Cache-Status"] ?? ""
            #expect(told.hasPrefix("larder; \(forward); ttl="))
            #expect(told.hasSuffix("; detail=\(detail)"))
            #expect(answer["Proxy-Status"]?.contains("connection_refused") == true)
        }
    }

    @Test("Nobody listens there: 502 with the reason, and the proxy goes on")
    func refused() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            let gone = try await ScriptedOrigin.answering { _ in "" }
            let url = gone.url("/")
            await gone.stop()
            let failed = try await scene.proxy.get(url)
            #expect(failed.status == 502)
            #expect(failed["Proxy-Status"]?.hasPrefix("larder; error=connection_refused;") == true)
            #expect(try await scene.get("/a").text == "x")
        }
    }
}
