import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Requests that came before, byte for byte")
struct KnownRequestTests {
    private static func run(
        _ origin: StoringSession = StoringSession(), session: Session? = nil,
        access: any AccessPolicy = LocalClients(),
        clock: @escaping @Sendable () -> Timestamp = { Fixture.now },
        _ body: (Fixture) async throws -> Void
    ) async throws {
        let directory = OneSessionDirectory(session ?? origin.session())
        try await Fixture.run(access: access, directory: directory, clock: clock, body)
    }

    @Test("get the answer that they would get anew, with its age and freshness of the moment")
    func sameAnswer() async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            // Another spelling of the same, which is never known.
            var spellings = 0
            for seconds in [0, 0, 0, 1, 8, 1, 10, 9] {
                origin.advance(.seconds(seconds))
                let answer = try await client.answer(to: get("/a"))
                spellings += 1
                let anew = try await client.answer(to: get("/a", "Cookie: \(spellings)\r\n"))
                if spellings > 1 { #expect(answer == anew) }
            }
            #expect(origin.fetches == ["/a"])
            let entries = proxy.log.entries.value
            #expect(entries.count == 16)
            for (known, anew) in zip(entries.dropFirst(2), entries.dropFirst(3))
            where known.request?.fields.count == 1 {
                #expect(known.exchange < anew.exchange)
                #expect(known.cacheStatus == anew.cacheStatus)
                #expect(known.status == anew.status)
                #expect(known.responseHeadBytes == anew.responseHeadBytes)
                #expect(known.responseBodyBytes == anew.responseBodyBytes)
                #expect(known.responseFields.count == anew.responseFields.count)
                #expect(known.began <= anew.began)
                #expect(known.session == anew.session)
                #expect(known.uri == anew.uri)
            }
            #expect(proxy.server.statistics().requests == 16)
        }
    }

    @Test("have ended when they are noted, and not later")
    func moments() async throws {
        let time = Mutex(Fixture.now)
        let origin = StoringSession()
        // A day goes by with each look at it.
        let clock: @Sendable () -> Timestamp = {
            time.withLock {
                $0 = $0 + .seconds(86_400)
                return $0
            }
        }
        try await Self.run(origin, clock: clock) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<3 { _ = try await client.answer(to: get("/a")) }
            for number in 3..<6 {
                let before = time.withLock { $0 }
                _ = try await client.answer(to: get("/a"))
                let entry = try await proxy.log.entry(number)
                #expect(entry.duration > .zero)
                #expect(entry.began + entry.duration == before + .seconds(86_400))
            }
        }
    }

    @Test(
        "are answered whatever they ask of what is stored",
        arguments: [
            ("GET", "", "200 OK", "</a>"), ("HEAD", "", "200 OK", "\r\n\r\n"),
            ("GET", "If-None-Match: \"t\"\r\n", "304 Not Modified", "\r\n\r\n"),
            ("GET", "Range: bytes=1-2\r\n", "206 Partial Content", "\r\n\r\n/a"),
        ])
    func kinds(_ method: String, _ fields: String, _ status: String, _ end: String) async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            _ = try await client.answer(to: get("/a"))
            let request =
                "\(method) http://a.example/a HTTP/1.1\r\nHost: a.example\r\n\(fields)\r\n"
            let first = try await client.answer(to: request, until: end)
            #expect(first.hasPrefix("HTTP/1.1 \(status)\r\n"))
            for _ in 0..<3 {
                #expect(try await client.answer(to: request, until: end) == first)
            }
            #expect(origin.fetches == ["/a"])
        }
    }

    @Test("with a large body get it whole")
    func large() async throws {
        let text = String(repeating: "0123456789abcdef", count: 8_192) + "."
        let origin = StoringSession { _ in text }
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<4 {
                let answer = try await client.answer(to: get("/a"), until: "f.")
                #expect(answer.hasSuffix("\r\n\r\n" + text))
            }
        }
    }

    @Test(
        "of a client that takes its time get whole answers in their order",
        arguments: [(2_000, 1_500), (4_000, 800), (50_000, 130)])
    func slow(_ repetitions: Int, _ count: Int) async throws {
        let origin = StoringSession { String(repeating: $0, count: repetitions) + "." }
        let paths = ["/a", "/b", "/c"]
        try await Self.run(origin, session: origin.session()) { proxy in
            let reader = try await proxy.connect()
            var answers: [String] = []
            for path in paths {
                for _ in 0..<2 { _ = try await reader.answer(to: get(path), until: "\(path).") }
                answers.append(try await reader.answer(to: get(path), until: "\(path)."))
            }
            let client = try await proxy.connect(reads: false)
            // More than the largest buffers of the kernel's hold.
            for number in 0..<count { try await client.send(get(paths[number % paths.count])) }
            try await client.send(get("/a", "Connection: close\r\n"))
            try await client.resumeReading()
            let all = try await client.receivedAll()
            let expected = (0..<count).map { answers[$0 % answers.count] }.joined()
            #expect(all.hasPrefix(expected))
            #expect(all.dropFirst(expected.count).hasSuffix("/a."))
            let sent = proxy.server.statistics().bytesOut
            #expect(sent >= UInt64(all.utf8.count))
        }
    }

    @Test("are answered in order where several come at once, or in pieces")
    func pipelined() async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<3 { _ = try await client.answer(to: get("/a")) }
            let all = try await client.answer(
                to: get("/a") + get("/b") + get("/a") + "\r\n" + get("/c"), until: "</c>")
            let bodies = all.matches(of: /<\/(.*?)>/).map { String($0.output.1) }
            #expect(bodies == ["a", "b", "a", "c"])
            client.seen.change { $0.bytes = [] }
            for byte in get("/a").utf8 { try client.push(ByteBuffer(bytes: [byte])) }
            try await client.received("</a>")
            #expect(try await client.answer(to: get("/a")).hasSuffix("</a>"))
            _ = try await client.answer(to: get("/a", "Connection: close\r\n"))
            #expect(try await client.receivedAll().contains("Connection: close"))
        }
    }

    @Test("are none of those that come with another in one read", arguments: [10, 9_000, 100_000])
    func glued(_ repetitions: Int) async throws {
        let origin = StoringSession { path in
            path == "/a" ? String(repeating: path, count: repetitions) : "<\(path)>"
        }
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<5 {
                let all = try await client.answer(to: get("/a") + get("/b"), until: "</b>")
                let parts = all.components(separatedBy: "\r\n\r\n")
                #expect(parts.count == 3)
                #expect(parts[1].hasPrefix(String(repeating: "/a", count: repetitions) + "HTTP"))
                #expect(parts[2] == "</b>")
            }
            let one = try await client.answer(to: get("/b"), until: "</b>")
            #expect(one.hasSuffix("\r\n\r\n</b>"))
            #expect(origin.fetches == ["/a", "/b"])
        }
    }

    @Test("are judged by the access rules of the moment")
    func access() async throws {
        let access = ReplaceableAccess()
        try await Self.run(access: access) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<4 { _ = try await client.answer(to: get("/a")) }
            // Three requests to know it by, and once for the client.
            #expect(access.judged.load(ordering: .relaxed) <= 4)
            access.deny()
            let refused = try await client.answer(to: get("/a"), until: "\r\n\r\n")
            #expect(refused.hasPrefix("HTTP/1.1 403 "))
        }
    }

    @Test("are judged each time where the rules have no number")
    func unnumbered() async throws {
        let judged = Event(0)
        let access = ScriptedAccess { _ in
            judged.change { $0 += 1 }
            return false
        }
        try await Self.run(access: access) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<5 { _ = try await client.answer(to: get("/a")) }
            #expect(judged.value == 5)
        }
    }

    @Test("go to the origin when what they were answered with is gone")
    func purged() async throws {
        let origin = StoringSession()
        let session = origin.session()
        try await Self.run(origin, session: session) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<4 { _ = try await client.answer(to: get("/a")) }
            session.removeAll(in: .all) { _ in }
            let answer = try await client.answer(to: get("/a"))
            #expect(answer.contains("fwd=uri-miss"))
            #expect(origin.fetches == ["/a", "/a"])
            #expect(
                try await client.answer(to: get("/a")).contains("larder; hit"))
        }
    }

    @Test("for the proxy itself go to nobody else")
    func own() async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            let request =
                "GET http://127.0.0.1:\(proxy.port)/a HTTP/1.1\r\n"
                + "Host: 127.0.0.1:\(proxy.port)\r\n\r\n"
            for _ in 0..<3 {
                let answer = try await client.answer(to: request, until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 404 "))
            }
            #expect(origin.fetches.isEmpty)
        }
    }
}

@Suite("Heads that are sent again")
struct RepeatedHeadTests {
    private static func head(_ age: String, _ ttl: String) -> String {
        "HTTP/1.1 200 OK\r\nX-Age: 7\r\nAge: \(age)\r\nX-Ages: 1\r\n"
            + "Cache-Status: other; hit; ttl=5\r\n"
            + "Cache-Status: larder; hit; ttl=\(ttl); detail=x\r\nVia: 1.1 a\r\n\r\n"
    }

    @Test(
        "say another age and freshness, however long the numbers are",
        arguments: [(0, 60), (9, 51), (10, 50), (51, 9), (100, 1_000_000), (0, 0), (7, 100)])
    func say(age: Int64, ttl: Int64) throws {
        var head = try #require(RepeatedHead(ByteBuffer(string: Self.head("9", "10"))))
        head.say(age: age, ttl: ttl)
        #expect(String(buffer: head.bytes) == Self.head("\(age)", "\(ttl)"))
        head.say(age: 12_345, ttl: 6)
        #expect(String(buffer: head.bytes) == Self.head("12345", "6"))
        head.say(age: 9, ttl: 10)
        #expect(String(buffer: head.bytes) == Self.head("9", "10"))
    }

    @Test(
        "need one Age and a ttl",
        arguments: [
            "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nAge: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nAge: x\r\nCache-Status: a; ttl=1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nAge: 1\r\nAge: 1\r\nCache-Status: a; ttl=1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nCache-Status: a; ttl=1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nCache-Status: a; ttl=1\r\nAge: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nAge: 1\r\nCache-Status: a; hit\r\n\r\n",
        ])
    func refused(_ text: String) {
        #expect(RepeatedHead(ByteBuffer(string: text)) == nil)
    }
}
