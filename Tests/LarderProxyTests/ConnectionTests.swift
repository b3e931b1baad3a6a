import LarderHTTP
import LarderSession
import NIOCore
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@testable import LarderProxy

@Suite("Connections that end, stall, crowd or wait")
struct ConnectionTests {
    @Test("a client that has ended its side still gets its answer")
    func halfClosed() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            try await client.endOutput()
            let exchange = try await proxy.session.exchange()
            let body = ScriptedBody([.piece(ByteBuffer(string: "slow"))])
            exchange.answer(from: body)
            try await client.received("slow")
            body.add(.end(trailers: Fields()))
            let all = try await client.receivedAll()
            #expect(all.hasSuffix("4\r\nslow\r\n0\r\n\r\n"))
            #expect(!exchange.isCancelled.value)
        }
    }

    @Test("content of a refused request is no request, though input has ended behind it")
    func refusedAheadOfTheEnd() async throws {
        let access = ScriptedAccess { $0.host == "closed.example" }
        try await Fixture.run(ScriptedSession { _ in }, access: access) { proxy in
            let client = try await proxy.connect()
            let inner = get("/inner")
            try await client.send(
                get("/first")
                    + "POST http://closed.example/ HTTP/1.1\r\nHost: closed.example\r\n"
                    + "Content-Length: \(inner.utf8.count)\r\n\r\n\(inner)" + get("/last"))
            try await client.endOutput()
            try await proxy.session.exchange().answer()
            let last = try await proxy.session.exchange(1)
            #expect(last.request.uri.pathAndQuery == "/last")
            last.answer()
            let all = try await client.receivedAll()
            #expect(all.contains("HTTP/1.1 403 "))
            #expect(proxy.log.entries.value.compactMap(\.rule) == ["scripted"])
            #expect(proxy.session.exchanges.value.count == 2)
        }
    }

    @Test("content that the end of input cut short is an error at once")
    func cutShortAheadOfTheEnd() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/first") + post("Content-Length: 9\r\n", "hello"))
            try await client.endOutput()
            try await proxy.session.exchange().answer()
            let all = try await client.receivedAll()
            #expect(all.contains("HTTP/1.1 400 Bad Request"))
            #expect(try await proxy.log.entry(1).failure == "the client ended its content early")
        }
    }

    @Test("a client that vanishes while its answer is awaited cancels the exchange")
    func vanishesWaiting() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(get() + get("/ahead"))
            let exchange = try await proxy.session.exchange()
            try await client.reset()
            try await exchange.isCancelled.wait(for: "the cancel") { $0 }
            let entry = try await proxy.log.entry()
            #expect(entry.status == nil)
            #expect(entry.failure != nil)
            // An answer that comes too late has its body cancelled.
            let late = ScriptedBody()
            exchange.answer(from: late)
            try await late.isCancelled.wait(for: "the late body's cancel") { $0 }
            #expect(proxy.session.exchanges.value.count == 1)
        }
    }

    @Test("a client that vanishes while it sends fails its content")
    func vanishesSending() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(post("Content-Length: 10\r\n", "hello"))
            let exchange = try await proxy.session.exchange()
            try await client.reset()
            try await exchange.isCancelled.wait(for: "the cancel") { $0 }
            await #expect(throws: BodyFailure.self) { try await exchange.content() }
        }
    }

    @Test("a client that vanishes in an answer cancels its body", arguments: [false, true])
    func vanishesReading(endless: Bool) async throws {
        let slow = ScriptedBody([.piece(ByteBuffer(string: "begun"))])
        let fast = EndlessBody()
        let session = ScriptedSession { $0.answer(from: endless ? fast : slow) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            try await client.received(endless ? "xxxx" : "begun")
            try await client.reset()
            try await (endless ? fast.isCancelled : slow.isCancelled).wait(for: "the cancel") { $0 }
            #expect(try await proxy.log.entry().failure != nil)
        }
    }

    @Test(
        "a client that does not read holds a bounded amount, and is cut off in time",
        arguments: ["1.1", "1.0"])
    func slowReader(_ version: String) async throws {
        let body = EndlessBody()
        try await Fixture.run(
            ScriptedSession { $0.answer(from: body) },
            configure: {
                $0.sendBufferHigh = .kibibytes(64)
                $0.sendBufferLow = .kibibytes(32)
                $0.sendTimeout = .milliseconds(200)
            }
        ) { proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send(get("/", version: version))
            try await body.isCancelled.wait(for: "the cut") { $0 }
            // Both kernels' socket buffers, our own, and one turn's pieces.
            #expect(body.taken.value < 16 << 20)
            let entry = try await proxy.log.entry()
            #expect(entry.failure == "the client takes nothing of its answer")
            // Where the end of the connection would mean the end of the content: a reset, which who
            // does not read hears of, too.
            if version == "1.0" {
                try await client.seen.wait(for: "the reset") { $0.closed }
            } else {
                try await client.close()
            }
        }
    }

    @Test("an answer without another end than its connection's is reset also where all is written")
    func slowReaderOfAll() async throws {
        let body = String(repeating: "x", count: 32 << 20)
        try await Fixture.run(
            ScriptedSession { $0.answer(200, [:], body, length: .unknown) },
            configure: { $0.sendTimeout = .milliseconds(200) }
        ) { proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send(get("/", version: "1.0"))
            try await client.seen.wait(for: "the reset") { $0.closed }
        }
    }

    @Test("a slow reader that reads gets it all")
    func patientReader() async throws {
        let size = 4 << 20
        let body = ScriptedBody()
        try await Fixture.run(
            ScriptedSession {
                $0.answer(from: body, length: .known(UInt64(size)))
            }
        ) { proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send(get())
            for _ in 0..<(size / 65_536) {
                body.add(.piece(ByteBuffer(repeating: 120, count: 65_536)))
            }
            body.add(.end(trailers: Fields()))
            try await body.taken.wait(for: "some of it") { $0 > 0 }
            try await client.resumeReading()
            let seen = try await client.seen.wait(for: "all") { $0.bytes.count >= size }
            #expect(seen.bytes.count < size + 500)
            #expect(try await proxy.log.entry().responseBodyBytes == UInt64(size))
        }
    }

    @Test("requests sent ahead by a client that does not read are not all answered")
    func greedyPipelining() async throws {
        let text = String(repeating: "x", count: 256 << 10)
        let session = ScriptedSession { $0.answer(200, [:], text) }
        try await Fixture.run(session, configure: { $0.sendTimeout = .milliseconds(200) }) {
            proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send((0..<200).map { get("/\($0)") }.joined())
            // Cut in the end, after far fewer than were asked for: 200 would be 50 MiB.
            try await proxy.log.entry()
            try await client.seen.wait(for: "nothing") { _ in true }
            await proxy.server.drain(within: .seconds(5))
            #expect(session.exchanges.value.count < 100)
            try await client.close()
        }
    }

    @Test("an idle connection is closed without a word")
    func idle() async throws {
        try await Fixture.run(configure: { $0.idleTimeout = .milliseconds(50) }) { proxy in
            let client = try await proxy.connect()
            #expect(try await client.receivedAll() == "")
        }
        // On a busy machine the request may come too late: then it counts as none, and has more time.
        var received = ""
        for seconds in [1, 5, 25] where received.isEmpty {
            try await Fixture.run(configure: { $0.idleTimeout = .seconds(seconds) }) { proxy in
                let used = try await proxy.connect()
                try? await used.send(get())
                received = try await used.receivedAll()
            }
        }
        #expect(received == ExchangeTests.hello)
    }

    @Test("a head that does not end is answered 408, though its bytes trickle")
    func slowHead() async throws {
        try await Fixture.run(configure: { $0.headTimeout = .milliseconds(50) }) { proxy in
            let client = try await proxy.connect()
            try await client.send("GET http://a.example/ HT")
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
            #expect(all.contains("Connection: close\r\n"))
        }
    }

    @Test("connections beyond the cap wait, and idle ones make room")
    func cap() async throws {
        try await Fixture.run(ScriptedSession { _ in }, configure: { $0.maximumConnections = 2 }) {
            proxy in
            let first = try await proxy.connect()
            try await first.send(get("/1"))
            let one = try await proxy.session.exchange(0)
            let second = try await proxy.connect()
            try await second.send(get("/2"))
            let two = try await proxy.session.exchange(1)
            let third = try await proxy.connect()
            try await third.send(get("/3"))
            #expect(proxy.server.openConnections == 2)
            // Busy connections keep their place; once one has its answer it gives way.
            one.answer()
            try await first.received("hello")
            let three = try await proxy.session.exchange(2)
            #expect(three.request.uri.pathAndQuery == "/3")
            #expect(!two.isCancelled.value)
            three.answer()
            try await third.received("hello")
            #expect(proxy.events.value.first == .crowded(connections: 2, waited: 1))
            #expect(proxy.server.statistics().connectionsWaited == 1)
        }
    }

    @Test("beyond the cap those that owe a head for too long make room", arguments: ["", "GET /h"])
    func lateHead(_ part: String) async throws {
        let configure: (inout ProxyConfiguration) -> Void = {
            $0.maximumConnections = 1
            $0.headGrace = .milliseconds(50)
        }
        try await Fixture.run(ScriptedSession { _ in }, configure: configure) { proxy in
            let slow = try await proxy.connect()
            try await slow.send(part)
            let next = try await proxy.connect()
            try await next.send(get("/next"))
            let all = try await slow.receivedAll()
            #expect(part.isEmpty ? all.isEmpty : all.hasPrefix("HTTP/1.1 408 "))
            let exchange = try await proxy.session.exchange(0)
            #expect(exchange.request.uri.pathAndQuery == "/next")
            exchange.answer()
            try await next.received("hello")
        }
    }

    @Test("draining ends idle connections at once and lets the others finish")
    func drain() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let idle = try await proxy.connect()
            let busy = try await proxy.connect()
            try await busy.send(get())
            let exchange = try await proxy.session.exchange()
            async let drained: Void = proxy.server.drain(within: .seconds(60))
            #expect(try await idle.receivedAll() == "")
            exchange.answer()
            let all = try await busy.receivedAll()
            #expect(all.contains("Connection: close\r\n"))
            #expect(all.hasSuffix("hello"))
            await drained
            #expect(proxy.server.openConnections == 0)
            await #expect(throws: (any Error).self) { try await proxy.connect() }
        }
    }

    @Test(
        "draining does not wait for what only lingers, be it since before or since",
        arguments: [false, true])
    func drainLingering(_ lingersBefore: Bool) async throws {
        try await Fixture.run(
            ScriptedSession { _ in },
            configure: {
                $0.lingerTimeout = .seconds(3_600)
                $0.lastLingerTimeout = .milliseconds(10)
            }
        ) { proxy in
            let client = try await proxy.connect()
            // What it still owes is discarded behind an answer that ends the connection.
            let fields = "Connection: close\r\nContent-Length: 100000\r\n"
            try await client.send(post(fields, "hi"))
            let exchange = try await proxy.session.exchange()
            if lingersBefore {
                exchange.answer()
                _ = try await client.receivedAll()
            }
            async let drained: Void = proxy.server.drain(within: .seconds(3_600))
            if !lingersBefore { exchange.answer() }
            let all = try await client.receivedAll()
            #expect(all.hasSuffix("hello"))
            await drained
            #expect(proxy.server.openConnections == 0)
        }
    }

    @Test("draining cuts what runs past its deadline")
    func drainCuts() async throws {
        try await Fixture.run(ScriptedSession { _ in }) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            let exchange = try await proxy.session.exchange()
            await proxy.server.drain(within: .milliseconds(20))
            #expect(exchange.isCancelled.value)
            try await client.seen.wait(for: "the cut") { $0.inputEnded || $0.closed }
        }
    }

    @Test(
        "draining cuts an answer short so that nobody takes it for whole, and the log says who did",
        arguments: ["1.1", "1.0"])
    func drainCutsAnswer(_ version: String) async throws {
        let body = ScriptedBody()
        let session = ScriptedSession { $0.answer(from: body, length: .unknown) }
        try await Fixture.run(session) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/", version: version))
            body.add("hello")
            try await client.received("hello")
            await proxy.server.drain(within: .milliseconds(20))
            let seen = try await client.seen.wait(for: "the cut") { $0.inputEnded || $0.closed }
            // Where the end of the connection would mean the end of the content: a reset.
            if version == "1.0" { #expect(seen.error != nil) }
            let entry = try await proxy.log.entry()
            #expect(entry.failure == "the proxy is shutting down")
            #expect(entry.wasCut)
        }
    }

    @Test("a port that is taken is said to be")
    func portInUse() async throws {
        try await Fixture.run { proxy in
            let error = await #expect(throws: ListenError.self) {
                try await proxy.server.listen(on: proxy.address, session: proxy.session)
            }
            #expect(error?.code == .addressInUse)
            #expect(error?.description.contains("127.0.0.1:\(proxy.port)") == true)
        }
    }

    @Test("a Unix socket serves too, also where an old file lies in the way")
    func unixSocket() async throws {
        let name = "larder-\(UInt64.random(in: 0 ... .max)).sock"
        let address = ListenAddress.unix(path: "/tmp/\(name)")
        defer { _ = unsafe unlink("/tmp/\(name)") }
        for _ in 0..<2 {
            try await Fixture.run { proxy in
                let bound = try await proxy.server.listen(on: address, session: proxy.session)
                #expect(bound == address)
                let client = try await Peer.connect(to: address)
                try await client.send(get())
                try await client.received("hello")
                #expect(try await proxy.log.entry().client.isUnix)
                await #expect(throws: ListenError.self) {
                    try await proxy.server.listen(on: address, session: proxy.session)
                }
            }
        }
    }

    @Test(
        "addresses to listen on",
        arguments: [
            ("127.0.0.1:3128", ListenAddress.tcp(host: "127.0.0.1", port: 3128)),
            ("[::1]:0", .tcp(host: "::1", port: 0)), (":8080", .tcp(host: "127.0.0.1", port: 8080)),
            ("localhost:1", .tcp(host: "localhost", port: 1)),
            ("unix:/run/x", .unix(path: "/run/x")),
            ("::1:80", nil), ("127.0.0.1", nil), ("a:65536", nil), ("a:", nil), ("unix:x", nil),
            ("a:-1", nil),
        ] as [(String, ListenAddress?)])
    func addresses(_ text: String, _ expected: ListenAddress?) {
        #expect(ListenAddress(text) == expected)
    }
}
