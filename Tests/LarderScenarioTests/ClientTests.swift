import Foundation
import Testing

@testable import LarderProcess

@Suite("Clients of every kind (RFC 9112 §9)", .timeLimit(.minutes(10)))
struct ClientTests {
    @Test(
        "Requests sent ahead are answered in order, whatever their origin takes (RFC 9112 §9.3.2)")
    func pipelining() async throws {
        let isOpen = Event(false)
        try await Scene.play { request in
            if request.target == "/0" { try await isOpen.wait(for: "the barrier") { $0 } }
            return response(body: request.target)
        } _: { scene in
            let client = try await scene.proxy.connect()
            var all = ""
            for i in 0..<50 { all += scene.request(i % 7 == 3 ? "HEAD" : "GET", "/\(i)") }
            try await client.send(all + "BAD\r\n\r\n")
            isOpen.change { $0 = true }
            for i in 0..<50 {
                let method = i % 7 == 3 ? "HEAD" : "GET"
                let answer = try await client.message(to: method)
                #expect(answer.status == 200)
                if method == "GET" { #expect(answer.text == "/\(i)") }
            }
            let bad = try await client.message(to: "GET")
            #expect(bad.status == 400)
            let rest = try await client.readAll()
            #expect(rest.isEmpty)
        }
    }

    @Test("An HTTP/1.0 client gets its content and the end, with and without a length")
    func oldClient() async throws {
        try await Scene.play { request in
            request.target == "/known"
                ? response(body: "hello", cache: nil)
                : "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        } _: { scene in
            for path in ["/known", "/unknown"] {
                let client = try await scene.proxy.connect()
                try await client.send(
                    "GET \(scene.origin.url(path)) HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                let head = try await client.head()
                #expect(!head.has("Transfer-Encoding"))
                let body = try await client.readAll()
                #expect(body == Array("hello".utf8))
                #expect(!client.seen.value.wasReset)
            }
        }
    }

    @Test("A client that ended its sending side gets its answer")
    func halfClose() async throws {
        let isOpen = Event(false)
        try await Scene.play { _ in
            try await isOpen.wait(for: "the barrier") { $0 }
            return response(body: "late")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a") + scene.request("GET", "/b"))
            try await client.endOutput()
            isOpen.change { $0 = true }
            let first = try await client.message(to: "GET")
            #expect(first.text == "late")
            let second = try await client.message(to: "GET")
            #expect(second.text == "late")
            let rest = try await client.readAll()
            #expect(rest.isEmpty)
        }
    }

    @Test("Connection: close is heeded")
    func close() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a", ["Connection: close"]))
            let answer = try await client.message(to: "GET")
            #expect(answer.text == "x")
            #expect(answer["Connection"] == "close")
            let rest = try await client.readAll()
            #expect(rest.isEmpty)
        }
    }

    @Test("A client waits for leave, and content goes on as the origin takes it (RFC 9110 §10.1.1)")
    func expectation() async throws {
        try await Scene.scripted { connection in
            while true {
                let head = try await connection.requestHead()
                if head["Expect"] == "100-continue" {
                    try await connection.send("HTTP/1.1 100 Continue\r\n\r\n")
                }
                let body = try await connection.wire.read(5)
                try await connection.send(
                    response(body: String(decoding: body, as: UTF8.self) + "!", cache: nil))
            }
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(
                scene.request("PUT", "/a", ["Expect: 100-continue", "Content-Length: 5"]))
            let leave = try await client.head()
            #expect(leave.line == "HTTP/1.1 100 Continue")
            try await client.send("hello")
            let answer = try await client.message(to: "PUT")
            #expect(answer.text == "hello!")
            // The connection goes on.
            try await client.send(scene.request("GET", "/b", ["Content-Length: 5"]) + "again")
            let next = try await client.message(to: "GET")
            #expect(next.text == "again!")
        }
    }

    @Test("An origin that refuses before the content spares it")
    func refusedExpectation() async throws {
        try await Scene.scripted { connection in
            _ = try await connection.requestHead()
            try await connection.send(
                "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(
                scene.request("PUT", "/a", ["Expect: 100-continue", "Content-Length: 1000000000"]))
            let answer = try await client.message(to: "PUT")
            // Leave may come first where the proxy asks for the content at once.
            let final = answer.status == 100 ? try await client.message(to: "PUT") : answer
            #expect(final.status == 401)
            #expect(final.text == "no")
        }
    }

    @Test("A chunked upload arrives whole, its extensions and trailers dealt with")
    func chunkedUpload() async throws {
        try await Scene.play { request in
            response(body: request.text, cache: nil)
        } _: { scene in
            let client = try await scene.proxy.connect()
            let chunks = "5;a=b\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\n\r\n"
            for piece in [chunks, chunks] {
                try await client.send(scene.request("POST", "/a", ["Transfer-Encoding: chunked"]))
                for byte in piece.utf8 { try await client.send([byte]) }
                let answer = try await client.message(to: "POST")
                #expect(answer.text == "hello world")
            }
            #expect(scene.origin.count == 2)
        }
    }

    @Test(
        "A chunked upload that breaks its framing is 400, and the connection ends",
        arguments: [
            "zz\r\nhello\r\n", "5\r\nhelloXX0\r\n\r\n", "-5\r\nhello\r\n", "fffffffffffffffff\r\n",
        ])
    func brokenUpload(_ chunks: String) async throws {
        try await Scene.play {
            response(body: $0.text, cache: nil)
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(
                scene.request("POST", "/a", ["Transfer-Encoding: chunked"]) + chunks)
            let answer = try await client.message(to: "POST")
            #expect(answer.status == 400)
            #expect(answer["Connection"] == "close")
            #expect(scene.origin.count == 0)
        }
    }

    @Test(
        "An upload that the client gives up never looks whole to the origin",
        arguments: [
            "Content-Length: 100", "Transfer-Encoding: chunked",
        ])
    func vanishedUpload(_ framing: String) async throws {
        let outcome = Event("")
        try await Scene.scripted { connection in
            _ = try await connection.requestHead()
            let isChunked = framing.hasPrefix("T")
            _ = try await connection.wire.read(isChunked ? 10 : 5)
            outcome.change { $0 = "begun" }
            let rest = try await connection.wire.readAll()
            outcome.change { $0 = rest.end(of: Array("0\r\n\r\n".utf8)) == nil ? "cut" : "whole" }
        } _: { scene in
            let client = try await scene.proxy.connect()
            let begin = framing.hasPrefix("T") ? "5\r\nhello\r\n" : "hello"
            try await client.send(scene.request("POST", "/a", [framing]) + begin)
            try await outcome.wait(for: "the origin to read") { $0 == "begun" }
            try await client.reset()
            try await outcome.wait(for: "the origin to see the end") { $0 != "begun" }
            #expect(outcome.value == "cut")
        }
    }

    @Test("A download that the client gives up, too large to finish, is given up")
    func vanishedDownload() async throws {
        let end = Event(false)
        let settings = "sessions: {default: {cache: {finish-fetch: 0 B}}}"
        try await Scene.scripted(settings) { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000000000\r\n\r\n"
            )
            let piece = [UInt8](repeating: 120, count: 65_536)
            while !connection.wire.seen.value.isOver {
                do { try await connection.wire.send(piece) } catch { break }
            }
            end.change { $0 = true }
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a"))
            _ = try await client.head()
            try await client.count(to: 1_000_000)
            try await client.reset()
            try await end.wait(for: "the origin to be let go") { $0 }
            let list = try await scene.home.cache("list")
            #expect(list.out.isEmpty)
        }
    }

    @Test(
        "Content above the bound is 413, announced or not",
        arguments: [
            "Content-Length: 2000000", "Transfer-Encoding: chunked",
        ])
    func tooLarge(_ framing: String) async throws {
        try await Scene.play("limits: {request-body: 1 MiB}") { _ in
            response(body: "x")
        } _: { scene in
            let client = try await scene.proxy.connect()
            let chunk = String(repeating: "x", count: 0x10000)
            let body =
                framing.hasPrefix("T")
                ? String(repeating: "10000\r\n\(chunk)\r\n", count: 17) : ""
            try await client.send(scene.request("POST", "/a", [framing]) + body)
            let answer = try await client.message(to: "POST")
            #expect(answer.status == 413)
            #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=http_request_error;") == true)
            #expect(scene.origin.count == 0)
        }
    }

    @Test("Content up to the bound is not")
    func largeEnough() async throws {
        try await Scene.play("limits: {request-body: 1 MiB}") {
            response(body: "\($0.body.count)", cache: nil)
        } _: { scene in
            let answer = try await scene.send(
                "POST", "/a", body: String(repeating: "x", count: 1 << 20))
            #expect(answer.text == "\(1 << 20)")
        }
    }
}
