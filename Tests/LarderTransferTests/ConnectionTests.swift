import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("Connections to origins (RFC 9112 §9)", .timeLimit(.minutes(10)))
struct ConnectionTests {
    @Test("are reused, and say so")
    func reuse() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withUpstream { upstream in
            for i in 0..<5 {
                let record = await upstream.answer(to: origin.request())
                #expect(record.text == "ok")
                #expect(record.facts?.reused == (i > 0))
            }
            #expect(upstream.statistics().openConnections == 1)
        }
        #expect(origin.connectionCount == 1)
    }

    @Test(
        "are reused after every kind of framing that leaves them whole",
        arguments: [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ])
    func reuseByFraming(_ answer: String) async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.write(answer) }
        }
        try await withUpstream { upstream in
            for _ in 0..<3 {
                #expect(await upstream.answer(to: origin.request()).failure == nil)
            }
        }
        #expect(origin.connectionCount == 1)
    }

    @Test("are bounded for each origin; further fetches wait for one")
    func perHostLimit() async throws {
        let both = Gate()
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(head)
                if notes.count == 2 { both.open() }
                guard both.block() else { return }
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withUpstream({ $0.connectionsPerHost = 2 }) { upstream in
            await withTaskGroup(of: Recorder.Record.self) { group in
                for _ in 0..<10 { group.addTask { await upstream.answer(to: origin.request()) } }
                for await record in group { #expect(record.text == "ok") }
            }
        }
        #expect(origin.connectionCount == 2)
        #expect(notes.count == 10)
    }

    @Test("that die unanswered under a second request: GET goes out again, once")
    func idempotentIsSentAgain() async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            notes.add("request on \(connection.index)")
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            guard connection.readHead() != nil else { return }
            notes.add("request on \(connection.index)")
            connection.close()
        }
        try await withUpstream { upstream in
            #expect(await upstream.answer(to: origin.request()).text == "ok")
            let second = await upstream.answer(to: origin.request(.get, "/second"))
            #expect(second.text == "ok")
            #expect(second.facts?.reused == false)
        }
        #expect(notes.all == ["request on 0", "request on 0", "request on 1"])
    }

    @Test(
        "that die unanswered when others are idle: what goes out again takes none of those",
        arguments: [Method.get, .head, .options, .delete], [true, false])
    func sentAgainAnew(_ method: Method, isReset: Bool) async throws {
        let all = Gate()
        let (waiting, notes) = (Notes(), Notes())
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            if connection.index < 4 {
                waiting.add("")
                if waiting.count == 4 { all.open() }
                guard all.block() else { return }
            } else {
                notes.add("request on a new one")
            }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            guard connection.readHead() != nil else { return }
            notes.add("request on \(connection.index)")
            if isReset { connection.reset() } else { connection.close() }
        }
        try await withUpstream { upstream in
            await withTaskGroup(of: Recorder.Record.self) { group in
                for _ in 0..<4 { group.addTask { await upstream.answer(to: origin.request()) } }
                for await record in group { #expect(record.failure == nil) }
            }
            let record = await upstream.answer(to: origin.request(method, "/second"))
            #expect(record.failure == nil && record.facts?.reused == false)
            #expect(notes.count == 2 && notes.all.last == "request on a new one")
            // The handle that it had takes what is idle again.
            let next = await upstream.answer(to: origin.request(.get, "/third"))
            #expect(next.failure == nil)
            #expect(notes.count == 4)
        }
    }

    @Test(
        "POST, and whatever has content, reaches the origin exactly once",
        arguments: [
            (Method.post, BodyLength.none), (.post, .known(3)), (.post, .unknown),
            (.put, .known(3)),
            (.patch, .known(3)), (Method(rawValue: "FROB"), .none),
        ])
    func othersAreSentOnce(_ method: Method, _ length: BodyLength) async throws {
        let notes = Notes()
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(String(head.prefix { $0 != " " }))
                if head.contains("Transfer-Encoding: chunked") { _ = connection.readChunked() }
                if connection.index == 0, head.hasPrefix("GET /first") {
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                } else {
                    connection.close()
                }
            }
        }
        try await withUpstream { upstream in
            #expect(await upstream.answer(to: origin.request(.get, "/first")).text == "ok")
            let body = length == .none ? nil : ScriptedContent(text: "abc")
            let record = await upstream.answer(
                to: origin.request(method, "/", length: length), body: body)
            #expect(record.failure?.kind == .connectionTerminated)
            #expect(record.head == nil)
        }
        #expect(notes.all == ["GET", method.rawValue])
    }

    @Test("GET is not sent a third time")
    func notAThirdTime() async throws {
        let notes = Notes()
        let both = Gate()
        let origin = try ScriptedOrigin { connection in
            // Two connections are answered once each and then die under their second request.
            while let head = connection.readHead() {
                notes.add(head)
                guard head.hasPrefix("GET /warm") else {
                    connection.close()
                    return
                }
                if notes.count == 2 { both.open() }
                guard both.block() else { return }
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withUpstream { upstream in
            async let one = upstream.answer(to: origin.request(.get, "/warm1"))
            async let two = upstream.answer(to: origin.request(.get, "/warm2"))
            let warm = await [one, two]
            #expect(warm.map(\.text) == ["ok", "ok"])
            let record = await upstream.answer(to: origin.request(.get, "/dies"))
            #expect(record.failure?.kind == .connectionTerminated)
        }
        #expect(notes.all.filter { $0.hasPrefix("GET /dies") }.count == 2)
    }

    @Test("several that were cut off for what nobody asked for cost the next request nothing")
    func cutOff() async throws {
        let notes = Notes()
        let (all, answered, ended) = (Gate(), Gate(), Gate())
        let origin = try ScriptedOrigin { connection in
            guard let head = connection.readHead() else { return }
            guard head.hasPrefix("GET /warm") else {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                return
            }
            notes.add(head)
            if notes.count == 3 { all.open() }
            guard all.block() else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwarm")
            guard answered.block() else { return }
            connection.write("junk")
            _ = connection.waitForEnd()
            notes.add("ended")
            if notes.count == 6 { ended.open() }
        }
        try await withUpstream { upstream in
            async let one = upstream.answer(to: origin.request(.get, "/warm1"))
            async let two = upstream.answer(to: origin.request(.get, "/warm2"))
            async let three = upstream.answer(to: origin.request(.get, "/warm3"))
            let warm = await [one, two, three]
            #expect(warm.map(\.text) == ["warm", "warm", "warm"])
            answered.open()
            await ended.passed()
            let record = await upstream.answer(to: origin.request(.get, "/"))
            #expect(record.text == "ok" && record.failure == nil)
        }
    }

    @Test("those who wait for one origin hold up none who wait for another")
    func otherOrigin() async throws {
        let silent = try ScriptedOrigin { _ = $0.waitForEnd() }
        let goOn = Gate()
        let origin = try ScriptedOrigin { connection in
            while goOn.block(), connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withUpstream({
            $0.connectionsPerHost = 2
            $0.queueTimeout = .seconds(30)
        }) { upstream in
            var waiting: [any UpstreamFetch] = []
            for _ in 0..<22 {
                waiting.append(
                    upstream.fetch(silent.request(), body: nil, receiver: Recorder()))
            }
            var asked: [(Recorder, any UpstreamFetch)] = []
            for _ in 0..<5 {
                let recorder = Recorder()
                asked.append(
                    (recorder, upstream.fetch(origin.request(), body: nil, receiver: recorder)))
            }
            goOn.open()
            for (recorder, _) in asked {
                let record = await recorder.end()
                #expect(record.text == "ok" && record.failure == nil)
            }
            for fetch in waiting { fetch.cancel() }
        }
    }

    struct Excess: Sendable {
        var method = Method.get
        var answer: String
    }

    @Test(
        "end when an origin sends more than it announced, and the rest is no answer to anybody",
        arguments: [
            Excess(answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            Excess(answer: "HTTP/1.1 204 No Content\r\n\r\n"),
            Excess(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            Excess(
                answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n0\r\n\r\n"),
            Excess(method: .head, answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ], [false, true])
    func excess(_ c: Excess, _ isLate: Bool) async throws {
        let late = Gate()
        let written = Gate()
        let smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            guard connection.index == 0 else {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
                _ = connection.waitForEnd()
                return
            }
            if isLate {
                connection.write(c.answer)
                _ = late.block()
                connection.write(smuggled)
                written.open()
            } else {
                connection.write(c.answer + smuggled)
            }
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")
            }
        }
        try await withUpstream { upstream in
            let first = await upstream.answer(to: origin.request(c.method))
            #expect(first.failure == nil)
            if isLate {
                late.open()
                await written.passed()
            }
            let second = await upstream.answer(to: origin.request())
            #expect(second.text == "good")
        }
    }

    @Test(
        "end where an origin sent more than it announced while the receiver held the content back",
        arguments: [140_000, 150_000, 170_000])
    func excessBehindHeldContent(_ length: Int) async throws {
        let written = Gate()
        let origin = try ScriptedOrigin.sendingExcess(behind: length, written)
        let other = try ScriptedOrigin.answering("ok")
        try await withUpstream { upstream in
            let held = Recorder(pausesAfter: 0)
            let fetch = upstream.fetch(origin.request(), body: nil, receiver: held)
            await held.wait { $0.head != nil }
            await written.passed()
            // Once it is over, what lay there before was read, as far as the receiver lets it.
            #expect(await upstream.answer(to: other.request()).text == "ok")
            held.wantAll()
            fetch.resume()
            #expect(await held.end().body.readableBytes == length)
            // The next connection gets the same first answer.
            let next = await upstream.answer(to: origin.request())
            #expect(next.body.readableBytes == length)
        }
    }
}

extension ScriptedOrigin {
    /// One that sends so much content on each connection, and a whole response behind it at once.
    ///
    /// - Parameter written: opens when the kernel has all of that.
    static func sendingExcess(behind length: Int, _ written: Gate) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write(
                "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n"
                    + String(repeating: "a", count: length)
                    + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            written.open()
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")
            }
        }
    }

    /// One that answers the first request on each connection with this.
    static func answering(_ text: String) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write(
                "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
        }
    }
}
