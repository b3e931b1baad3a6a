import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("A request's content (RFC 9110 §6.4)", .timeLimit(.minutes(10)))
struct ContentTests {
    /// An origin that answers with what it received.
    private func echo(_ notes: Notes) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(head)
                var content = ""
                if head.contains("Transfer-Encoding: chunked") {
                    content = connection.readChunked() ?? "cut"
                } else if let range = head.range(of: "Content-Length: ") {
                    let digits = head[range.upperBound...].prefix { $0.isNumber }
                    content = connection.read(Int(digits) ?? 0) ?? "cut"
                }
                notes.add(content)
                connection.write(
                    "HTTP/1.1 200 OK\r\nContent-Length: \(content.utf8.count)\r\n\r\n\(content)")
            }
        }
    }

    @Test(
        "of known length goes out with Content-Length, with any method",
        arguments: [Method.post, .put, .patch, .get, .delete, Method(rawValue: "REPORT")])
    func knownLength(_ method: Method) async throws {
        let notes = Notes()
        let origin = try self.echo(notes)
        let record = try await withUpstream { upstream in
            await upstream.answer(
                to: origin.request(method, "/c", length: .known(5)),
                body: ScriptedContent(text: "hello"))
        }
        #expect(
            notes.all.first
                == "\(method) /c HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\nContent-Length: 5\r\n\r\n"
        )
        #expect(record.text == "hello")
    }

    @Test("of unknown length goes out chunked, with its trailers, also after an HTTP/1.0 answer")
    func chunked() async throws {
        let old = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.0 200 OK\r\n\r\nold")
            connection.close()
        }
        let notes = Notes()
        let origin = try self.echo(notes)
        let record = try await withUpstream { upstream in
            #expect(await upstream.answer(to: old.request()).text == "old")
            return await upstream.answer(
                to: origin.request(.post, length: .unknown),
                body: ScriptedContent(text: "hello", trailers: ["X-Sum": "5"]))
        }
        #expect(record.text == "5|hello|0|X-Sum: 5|")
        #expect(
            notes.all.first
                == "POST / HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n")
    }

    @Test(
        "that is empty is announced where the method expects content (RFC 9110 §8.6)",
        arguments: [
            (Method.post, BodyLength.none, true), (.put, .known(0), true), (.patch, .none, true),
            (.delete, .known(0), true), (.delete, .none, false), (.get, .known(0), false),
        ])
    func empty(_ method: Method, _ length: BodyLength, _ isAnnounced: Bool) async throws {
        let notes = Notes()
        let origin = try self.echo(notes)
        let content = length == .none ? nil : ScriptedContent([.end(trailers: Fields())])
        let record = try await withUpstream { upstream in
            await upstream.answer(to: origin.request(method, length: length), body: content)
        }
        #expect(record.head?.status == .ok)
        #expect(notes.all.first?.contains("Content-Length: 0\r\n") == isAnnounced)
        #expect(notes.all.first?.contains("Transfer-Encoding") == false)
    }

    @Test("waits for its source, and is not timed out for that")
    func pending() async throws {
        let notes = Notes()
        let origin = try self.echo(notes)
        let content = ScriptedContent()
        try await withUpstream({
            $0.stallTimeout = .milliseconds(100)
            $0.responseTimeout = .milliseconds(100)
        }) { upstream in
            let recorder = Recorder()
            let fetch = upstream.fetch(
                origin.request(.post, length: .known(10)), body: content, receiver: recorder)
            await content.wasAsked.passed()
            try await upstream.letTimesPass()
            content.push(.piece(ByteBuffer(string: "hello")))
            content.push(.piece(ByteBuffer(string: "world")))
            content.push(.end(trailers: Fields()))
            #expect(await recorder.end().text == "helloworld")
            _ = fetch
        }
    }

    @Test("that fails, or is not as long as announced, cuts the request off: the client's fault")
    func failure() async throws {
        let cut = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            if connection.waitForEnd() { cut.open() }
        }
        let cases: [[BodyStep]] = [
            [.piece(ByteBuffer(string: "hel")), .failed(.client("went away"))],
            [.piece(ByteBuffer(string: "hel")), .end(trailers: Fields())],
            [.piece(ByteBuffer(string: "hello, world"))],
        ]
        try await withUpstream { upstream in
            for steps in cases {
                let content = ScriptedContent(steps)
                let record = await upstream.answer(
                    to: origin.request(.put, length: .known(5)), body: content)
                #expect(record.failure?.kind == .requestBodyFailed)
                #expect(record.failure?.party == .client)
                #expect(content.isCancelled)
            }
            await cut.passed()
        }
    }

    @Test(
        "is held back under Expect: 100-continue until the origin asks for it",
        arguments: [true, false])
    func expectation(joinsFieldLines: Bool) async throws {
        let content = ScriptedContent(text: "hello")
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            notes.add(connection.readHead() ?? "")
            notes.add("asked \(content.asked)")
            connection.write("HTTP/1.1 100 Continue\r\n\r\n")
            notes.add(connection.read(5) ?? "")
            connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream({
            $0.continueTimeout = .seconds(30)
            $0.joinsFieldLines = joinsFieldLines
        }) { upstream in
            await upstream.answer(
                to: origin.request(.put, length: .known(5), expects: true), body: content)
        }
        #expect(notes.all.first?.contains("Expect: 100-continue\r\n") == true)
        #expect(notes.all.dropFirst() == ["asked 0", "hello"])
        #expect(record.head?.status == StatusCode(201))
        #expect(record.informational.isEmpty)
    }

    @Test(
        "is not sent when the origin's final answer comes first",
        arguments: [413, 417, 401, 302])
    func refusedExpectation(_ status: Int) async throws {
        let content = ScriptedContent(text: "hello")
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(String(head.prefix { $0 != " " }))
                connection.write("HTTP/1.1 \(status) No\r\nContent-Length: 4\r\n\r\nlong")
            }
        }
        let record = try await withUpstream({ $0.continueTimeout = .seconds(30) }) { upstream in
            await upstream.answer(
                to: origin.request(.put, length: .known(5), expects: true), body: content)
        }
        #expect(record.head?.status.rawValue == UInt16(status))
        #expect(record.text == "long")
        #expect(record.failure == nil)
        #expect(content.asked == 0)
        #expect(content.isCancelled)
        #expect(notes.all == ["PUT"])
    }

    @Test("is sent without leave when the origin gives none in time")
    func noLeave() async throws {
        let notes = Notes()
        let origin = try self.echo(notes)
        let record = try await withUpstream({ $0.continueTimeout = .milliseconds(50) }) {
            upstream in
            await upstream.answer(
                to: origin.request(.post, length: .known(5), expects: true),
                body: ScriptedContent(text: "hello"))
        }
        #expect(notes.all.first?.contains("Expect: 100-continue\r\n") == true)
        #expect(record.text == "hello")
    }

    @Test("does not keep an answer from coming that the origin gives before the end of it")
    func earlyAnswer() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            _ = connection.read(3)
            connection.write("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong")
            _ = connection.waitForEnd()
        }
        let content = ScriptedContent([.piece(ByteBuffer(string: "abc"))])
        let record = try await withUpstream { upstream in
            await upstream.answer(
                to: origin.request(.post, length: .known(1 << 40)), body: content)
        }
        #expect(record.head?.status == StatusCode(413))
        #expect(record.text == "long")
        #expect(record.failure == nil)
        #expect(content.isCancelled)
    }

    @Test(
        "does not keep open what the origin has answered and will close (RFC 9112 §9.6)",
        arguments: [
            EarlyAnswer(413, expects: false), EarlyAnswer(413, expects: true),
            EarlyAnswer(413, expects: false, isChunked: true), EarlyAnswer(200, expects: false),
            EarlyAnswer(200, expects: false, isChunked: true),
        ])
    func closingAnswer(_ answer: EarlyAnswer) async throws {
        let isHeard = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            if !answer.expects { _ = connection.read(3) }
            let framing = answer.isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 4"
            connection.write(
                "HTTP/1.1 \(answer.status) Early\r\nConnection: close\r\n\(framing)\r\n\r\n")
            // Its end comes in another read than its head.
            guard isHeard.block() else { return }
            connection.write(answer.isChunked ? "4\r\nlong\r\n0\r\n\r\n" : "long")
            _ = connection.waitForEnd()
        }
        let content = ScriptedContent([.piece(ByteBuffer(string: "abc"))])
        try await withUpstream({
            $0.stallTimeout = .seconds(60)
            $0.continueTimeout = .seconds(30)
        }) { upstream in
            let recorder = Recorder()
            let fetch = upstream.fetch(
                origin.request(.post, length: .known(1 << 40), expects: answer.expects),
                body: content, receiver: recorder)
            await recorder.wait { $0.head != nil }
            isHeard.open()
            let record = await recorder.end()
            #expect(record.head?.status.rawValue == answer.status)
            #expect(record.text == "long")
            #expect(record.failure == nil)
            #expect(content.isCancelled)
            if answer.expects { #expect(content.asked == 0) }
            _ = fetch
        }
    }

    @Test("may still be on its way when the answer comes, and is not timed out for that")
    func pendingBehindHead() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            _ = connection.read(3)
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            let rest = connection.read(3) ?? ""
            connection.write("\(rest)!")
            _ = connection.waitForEnd()
        }
        let content = ScriptedContent([.piece(ByteBuffer(string: "abc"))])
        try await withUpstream({
            $0.stallTimeout = .milliseconds(100)
            $0.responseTimeout = .milliseconds(100)
        }) { upstream in
            let recorder = Recorder()
            let fetch = upstream.fetch(
                origin.request(.post, length: .known(6)), body: content, receiver: recorder)
            await recorder.wait { $0.head != nil }
            try await upstream.letTimesPass()
            content.push(.piece(ByteBuffer(string: "def")))
            content.push(.end(trailers: Fields()))
            let record = await recorder.end()
            #expect(record.text == "def!")
            #expect(record.failure == nil)
            _ = fetch
        }
    }

    @Test("of a HEAD request goes out, and the head ends the answer")
    func headWithContent() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            notes.add(connection.read(5) ?? "")
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream { upstream in
            await upstream.answer(
                to: origin.request(.head, length: .known(5)), body: ScriptedContent(text: "hello"))
        }
        #expect(record.length == BodyLength.none)
        #expect(record.failure == nil)
        #expect(notes.all == ["hello"])
    }

    @Test("of many pieces arrives whole")
    func large() async throws {
        let piece = ByteBuffer(repeating: 0x61, count: 100_000)
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            let content = connection.read(10_000_000) ?? ""
            let text = "\(content.utf8.count)"
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
            _ = connection.waitForEnd()
        }
        let content = ScriptedContent(
            Array(repeating: .piece(piece), count: 100) + [.end(trailers: Fields())])
        let record = try await withUpstream { upstream in
            await upstream.answer(
                to: origin.request(.put, length: .known(10_000_000)), body: content)
        }
        #expect(record.text == "10000000")
    }
}

/// An answer that comes before all of the content has gone out.
struct EarlyAnswer: Sendable {
    let status: UInt16
    let expects: Bool
    let isChunked: Bool

    init(_ status: UInt16, expects: Bool, isChunked: Bool = false) {
        (self.status, self.expects, self.isChunked) = (status, expects, isChunked)
    }
}
