import LarderHTTP
import LarderSession
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import LarderProxy

func post(_ fields: String, _ body: String = "", path: String = "/") -> String {
    "POST http://a.example\(path) HTTP/1.1\r\nHost: a.example\r\n\(fields)\r\n\(body)"
}

@Suite("Request content (RFC 9112 §6, §7)")
struct UploadTests {
    /// Answers with what was sent.
    static func echo() -> ScriptedSession {
        ScriptedSession { exchange in
            Task {
                do {
                    let (text, trailers) = try await exchange.content()
                    exchange.answer(200, trailers, "<\(text)>")
                } catch {
                    exchange.answer(599, [:], "\(error)")
                }
            }
        }
    }

    @Test(
        "reaches the session, with its trailers",
        arguments: [
            (post("Content-Length: 5\r\n", "hello"), "<hello>"),
            (post("Content-Length: 0\r\n"), "<>"),
            (post(""), "<>"),
            (
                post(
                    "Transfer-Encoding: chunked\r\n",
                    "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-T: 1\r\n\r\n"), "<hello>"
            ),
        ])
    func arrives(_ request: String, _ answer: String) async throws {
        try await Fixture.run(Self.echo()) { proxy in
            for byteByByte in [false, true] {
                let client = try await proxy.connect()
                if byteByByte {
                    for byte in request.utf8 { try client.push(ByteBuffer(bytes: [byte])) }
                } else {
                    try await client.send(request)
                }
                let all = try await client.received(answer)
                #expect(all.contains("X-T: 1") == request.contains("X-T"))
                try await client.send(get("/", "Connection: close\r\n"))
                #expect(try await client.receivedAll().hasSuffix("<>"))
            }
        }
    }

    @Test("has no trailers that its Connection names (RFC 9110 §7.6.1)")
    func namedTrailers() async throws {
        try await Fixture.run(Self.echo()) { proxy in
            let client = try await proxy.connect()
            try await client.send(
                post(
                    "Connection: X-T\r\nX-T: 0\r\nTransfer-Encoding: chunked\r\n",
                    "5\r\nhello\r\n0\r\nx-t: 1\r\nX-U: 2\r\n\r\n"))
            let all = try await client.received("<hello>")
            #expect(all.contains("\r\nX-U: 2\r\n"))
            #expect(!all.lowercased().contains("x-t"))
        }
    }

    @Test("may be answered from inside the wake that brought its end")
    func answeredInside() async throws {
        let session = ScriptedSession { exchange in
            exchange.body?.attach {
                exchange.answer(200, [:], "<\(exchange.request.uri.pathAndQuery)>")
            }
            _ = exchange.body?.next()
        }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Transfer-Encoding: chunked\r\n", path: "/1"))
            try await proxy.session.exchange()
            try await client.send("0\r\n\r\n")
            try await client.received("</1>")
            try await client.send(post("Content-Length: 3\r\n", path: "/2"))
            try await proxy.session.exchange(1)
            try await client.send("abc")
            let all = try await client.received("</2>")
            #expect(!all.contains("close"))
        }
    }

    @Test("of any size goes through a bounded buffer; the socket is not read further")
    func backPressure() async throws {
        let total = 8 << 20
        try await Fixture.run(
            ScriptedSession { _ in },
            configure: {
                $0.requestBuffer = .kibibytes(32)
            }
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: \(total)\r\n"))
            try client.push(ByteBuffer(repeating: 120, count: total))
            let exchange = try await proxy.session.exchange()
            let feed = try #require(exchange.body as? BodyFeed)
            // Nobody reads: all that was taken is the buffer and a piece, whatever was sent.
            let woken = Event(0)
            feed.attach { woken.change { $0 += 1 } }
            var count = 0
            var wakes = 0
            var largest = 0
            while count < total {
                switch feed.next() {
                case .piece(let piece):
                    count += piece.readableBytes
                    largest = max(largest, piece.readableBytes)
                    #expect(proxy.server.statistics().bytesIn <= UInt64(count + (4 << 20)))
                case .pending:
                    let before = wakes
                    wakes = try await woken.wait(for: "content") { $0 > before }
                case .end, .failed: Issue.record("ended at \(count)")
                }
            }
            #expect(count == total)
            #expect(largest <= 65_536)
            exchange.answer()
            try await client.received("hello")
        }
    }

    @Test("waits for 100 Continue until it is wanted (RFC 9110 §10.1.1)")
    func expectation() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: 5\r\nExpect: 100-Continue\r\n"))
            let exchange = try await proxy.session.exchange()
            #expect(client.seen.value.bytes.isEmpty)
            async let content = exchange.content()
            try await client.received("HTTP/1.1 100 Continue\r\n\r\n")
            try await client.send("hello")
            #expect(try await content.text == "hello")
            exchange.answer()
            let all = try await client.received("hello")
            #expect(all.matches(of: /100 Continue/).count == 1)
            #expect(!all.contains("close"))
        }
    }

    @Test("that was asked leave for and refused ends the connection")
    func refusedExpectation() async throws {
        try await Fixture.run(ScriptedSession { $0.answer(403, [:], "no") }) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: 5\r\nExpect: 100-continue\r\n"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
            #expect(all.hasSuffix("Connection: close\r\n\r\nno"))
        }
    }

    @Test("that no answer waits for is thrown away, where there is little of it")
    func earlyAnswer() async throws {
        try await Fixture.run(ScriptedSession { $0.answer(200, [:], $0.request.uri.pathAndQuery) })
        {
            proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: 10\r\n", "hello", path: "/first"))
            try await client.received("/first")
            try await client.send("world" + get("/second"))
            let all = try await client.received("/second")
            #expect(!all.contains("close"))
        }
    }

    @Test(
        "that is too much to throw away ends the connection",
        arguments: [
            ("Content-Length: 10000000\r\n", true), ("Transfer-Encoding: chunked\r\n", false),
        ])
    func muchUnwanted(_ fields: String, _ announced: Bool) async throws {
        try await Fixture.run(ScriptedSession { $0.answer(200, [:], "early") }) { proxy in
            let client = try await proxy.connect()
            try await client.send(post(fields, "5\r\nhello\r\n"))
            let answer = try await client.received("early")
            #expect(answer.contains("Connection: close") == announced)
            let chunk = "10000\r\n" + String(repeating: "x", count: 65_536) + "\r\n"
            for _ in 0..<4 { try client.push(ByteBuffer(string: chunk)) }
            #expect(try await client.receivedAll() == answer)
        }
    }

    @Test(
        "that breaks its framing fails, and is answered 400",
        arguments: [
            "x\r\n", "5\r\nhelloX", "5 \r\n", "fffffffffffffffff\r\n",
        ])
    func malformed(_ body: String) async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Transfer-Encoding: chunked\r\n", body + get("/smuggled")))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 400 "))
            let exchange = try await proxy.session.exchange()
            await #expect(throws: BodyFailure.self) { try await exchange.content() }
            try await exchange.isCancelled.wait(for: "the cancel") { $0 }
            #expect(proxy.session.exchanges.value.count == 1)
        }
    }

    @Test(
        "that breaks its framing behind its answer ends the connection",
        arguments: [false, true], [false, true])
    func malformedBehind(isRefused: Bool, comesTogether: Bool) async throws {
        let access = ScriptedAccess { _ in isRefused }
        let session = ScriptedSession { $0.answer(200, [:], "early") }
        try await Fixture.run(session, access: access) { proxy in
            let client = try await proxy.connect()
            let head = post("Transfer-Encoding: chunked\r\n")
            let broken = "Z\r\n" + get("/smuggled")
            if comesTogether {
                try await client.send(head + broken)
            } else {
                try await client.send(head)
                try await client.received("\r\n\r\n")
                try await client.send(broken)
            }
            let all = try await client.receivedAll()
            #expect(all.hasPrefix(isRefused ? "HTTP/1.1 403 " : "HTTP/1.1 200 "))
            #expect(all.matches(of: #/HTTP/1\.1 \d/#).count == 1)
            #expect(session.exchanges.value.count == (isRefused ? 0 : 1))
        }
    }

    @Test(
        "beyond the bound is answered 413, announced or not",
        arguments: [
            post("Content-Length: 11\r\n", "hello world"),
            post("Transfer-Encoding: chunked\r\n", "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n"),
        ])
    func tooLarge(_ request: String) async throws {
        try await Fixture.run(
            ScriptedSession { _ in },
            configure: {
                $0.maximumRequestBody = ByteCount(10)
            }
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(request)
            try await client.received("HTTP/1.1 413 ")
        }
    }

    @Test("that ends before it is whole fails")
    func brokenOff() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: 10\r\n", "hello"))
            let exchange = try await proxy.session.exchange()
            try await client.endOutput()
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 400 "))
            await #expect(throws: BodyFailure.self) { try await exchange.content() }
            #expect(exchange.isCancelled.value)
        }
    }

    @Test(
        "is whole or broken off by its bytes, not by when its client ends its side (RFC 9112 §8)",
        arguments: [true, false])
    func endedAhead(isWhole: Bool) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let session = ScriptedSession { if $0.request.method == .get { $0.answer() } }
        try await Fixture.run(
            session, group: group, configure: { $0.requestBuffer = .kibibytes(4) }
        ) { proxy in
            let client = try await proxy.connect()
            let text = String(repeating: "x", count: 60_000)
            try await client.send(
                post("Content-Length: \(text.utf8.count + (isWhole ? 0 : 1))\r\n", text))
            try await client.endOutput()
            let exchange = try await proxy.session.exchange()
            // The loop that has answered others since has met the end of the input, too.
            let other = try await proxy.connect()
            for number in 0..<2 {
                try await other.send(get("/\(number)"))
                try await proxy.log.entry(number)
            }
            #expect(proxy.server.statistics().bytesIn > 60_000)
            if isWhole {
                #expect(try await exchange.content().text == text)
                exchange.answer()
                #expect(try await client.receivedAll().hasSuffix("\r\n\r\nhello"))
            } else {
                await #expect(throws: BodyFailure.self) { try await exchange.content() }
                #expect(try await client.receivedAll().hasPrefix("HTTP/1.1 400 "))
            }
        }
        try await group.shutdownGracefully()
    }

    @Test(
        "that nobody wants any more has its time, however full its buffer was",
        arguments: [true, false])
    func stallsUnwanted(isAbandoned: Bool) throws {
        let session = ScriptedSession { _ in }
        let loop = EmbeddedEventLoop()
        let connection = ReleaseTests.connection(session, log: LogRecorder(), loop: loop)
        let channel = EmbeddedChannel(handler: connection, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let begun = "40000\r\n" + String(repeating: "x", count: 140_000)
        try channel.writeInbound(
            ByteBuffer(string: post("Transfer-Encoding: chunked\r\n", begun)))
        let exchange = try #require(session.exchanges.value.first)
        #expect((exchange.body as? BodyFeed)?.isFull == true)
        #expect(connection.timer.wait == .nothing)
        if isAbandoned {
            exchange.body?.cancel()
            loop.run()
            #expect(connection.timer.wait == .content)
        }
        exchange.answer()
        loop.run()
        #expect(connection.timer.wait == .content)
        _ = try? channel.finish()
    }

    @Test("that pauses has its time anew as long as an answer goes out beside it")
    func pauses() throws {
        let session = ScriptedSession { _ in }
        let loop = EmbeddedEventLoop()
        let connection = ReleaseTests.connection(session, log: LogRecorder(), loop: loop)
        let channel = EmbeddedChannel(handler: connection, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(
            ByteBuffer(string: post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n")))
        let body = ScriptedBody()
        #expect(connection.timer.wait == .content)
        try #require(session.exchanges.value.first).answer(from: body)
        loop.run()
        // It has just begun: there is its head alone.
        connection.giveWay()
        #expect(channel.isActive)
        for isAnswered in [true, true, false] {
            if isAnswered {
                body.add("more")
                loop.run()
            }
            #expect(connection.timer.wait == .content)
            connection.giveWay()
            #expect(channel.isActive == isAnswered)
        }
        #expect(body.isCancelled.value)
        _ = try? channel.finish()
    }

    @Test("that stalls is answered 408")
    func stalls() async throws {
        try await Fixture.run(
            ScriptedSession { _ in },
            configure: {
                $0.requestBodyTimeout = .milliseconds(50)
            }
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: 10\r\n", "hello"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 408 "))
            #expect(try await proxy.session.exchange().isCancelled.value)
        }
    }
}
