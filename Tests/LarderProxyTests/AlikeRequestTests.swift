import Foundation
import LarderHTTP
import LarderSession
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Requests of the same gist as one that came before")
struct AlikeRequestTests {
    private static func run(
        _ origin: StoringSession, session: Session? = nil,
        access: any AccessPolicy = LocalClients(), _ body: (Fixture) async throws -> Void
    ) async throws {
        let directory = OneSessionDirectory(session ?? origin.session())
        try await Fixture.run(access: access, directory: directory, body)
    }

    @Test("get the answer that they would get anew, and are noted with what is their own")
    func sameAnswer() async throws {
        let origin = StoringSession()
        let access = ReplaceableAccess()
        try await Self.run(origin, access: access) { proxy in
            let client = try await proxy.connect()
            _ = try await client.answer(to: get("/a"))
            for number in 0..<8 {
                origin.advance(.seconds(number))
                let alike = try await client.answer(
                    to: get("/a", "User-Agent: \(number)\r\nX-Id: \(number)\r\n"))
                let anew = try await client.answer(to: get("/a", "Cookie: \(number)\r\n"))
                #expect(alike == anew)
            }
            #expect(origin.fetches == ["/a"])
            let entries = proxy.log.entries.value
            #expect(entries.count == 17)
            for number in 0..<8 {
                let (alike, anew) = (entries[1 + 2 * number], entries[2 + 2 * number])
                #expect(alike.userAgent == "\(number)")
                #expect(alike.request?.fields.string("x-id") == "\(number)")
                #expect(alike.uri == anew.uri)
                #expect(alike.exchange < anew.exchange)
                #expect(alike.cacheStatus == anew.cacheStatus)
                #expect(alike.responseHeadBytes == anew.responseHeadBytes)
                #expect(alike.responseBodyBytes == anew.responseBodyBytes)
                #expect(alike.session == anew.session)
            }
            // Those that came anew, those until the gist was known, and the client itself once.
            #expect(access.judged.load(ordering: .relaxed) <= 12)
            #expect(proxy.server.statistics().requests == 17)
        }
    }

    @Test(
        "are told apart by what the responses vary by",
        arguments: ["X-Id", "User-Agent", "accept, x-id", "*"])
    func vary(_ vary: String) async throws {
        let origin = StoringSession(vary: vary)
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for number in 0..<5 {
                let answer = try await client.answer(
                    to: get("/a", "User-Agent: \(number)\r\nX-Id: \(number)\r\n"))
                #expect(answer.contains("; fwd="))
            }
            #expect(origin.fetches.count == 5)
        }
    }

    struct Deciding: Sendable, CustomTestStringConvertible {
        let fields: String
        /// What the answer's head must have in it.
        let says: String
        var end = "\r\n\r\n"
        var testDescription: String { self.fields.replacing("\r\n", with: " ") }
    }

    @Test(
        "are not those with a field that decides, and those are not the others",
        arguments: [
            Deciding(fields: "Range: bytes=1-2\r\n", says: " 206 ", end: "\r\n\r\n/a"),
            Deciding(fields: "RANGE:bytes=0-0\r\n", says: " 206 ", end: "\r\n\r\n<"),
            Deciding(fields: "If-None-Match: \"t\"\r\n", says: " 304 "),
            Deciding(fields: "if-none-match: \"t\"\r\n", says: " 304 "),
            Deciding(
                fields: "If-None-Match: \"s\"\r\nIF-NONE-MATCH: \"t\"\r\n", says: " 304 "),
            Deciding(
                fields: "If-Modified-Since: Mon, 07 Nov 1994 00:00:00 GMT\r\n", says: " 304 "),
            Deciding(fields: "If-Match: \"s\"\r\n", says: "; fwd="),
            Deciding(fields: "Cache-Control: no-cache\r\n", says: "; fwd="),
            Deciding(fields: "CACHE-CONTROL: x, max-age=0\r\n", says: "; fwd="),
            Deciding(fields: "Pragma: no-cache\r\n", says: "; fwd="),
            Deciding(fields: "Expect: 200-ok\r\n", says: " 417 "),
            Deciding(fields: "Host: a.example\r\n", says: " 400 "),
            Deciding(fields: "Content-Length: x\r\n", says: " 400 "),
            Deciding(fields: "Connection: close\r\n", says: "Connection: close"),
        ])
    func deciding(_ c: Deciding) async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let plain = try await proxy.connect()
            _ = try await plain.answer(to: get("/a"))
            for number in 0..<8 {
                let id = "X-Id: \(number)\r\n"
                // Each of the two comes when the other is known.
                if number >= 4 {
                    let answer = try await plain.answer(to: get("/a", "X-Other: \(number)\r\n"))
                    #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains("; hit"))
                    #expect(answer.hasSuffix("\r\n\r\n</a>"))
                }
                let client = try await proxy.connect()
                // So that it has a session, as known requests take it for granted.
                _ = try await client.answer(to: get("/b"), until: "</b>")
                let answer = try await client.answer(to: get("/a", id + c.fields), until: c.end)
                #expect(answer.contains(c.says))
                try await client.close()
            }
        }
    }

    @Test("have content that is no request, whatever it says")
    func content() async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for _ in 0..<4 { _ = try await client.answer(to: get("/a")) }
            let content = get("/a")
            for number in 0..<5 {
                // The head comes alone, and is answered before the content has come.
                let head = get(
                    "/b", "X-Id: \(number)\r\nContent-Length: \(content.utf8.count)\r\n")
                let answer = try await client.answer(to: head, until: "</b>")
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
                client.seen.change { $0.bytes = [] }
                try await client.send(content)
                try await client.send(get("/c", "X-Id: \(number)\r\n"))
                let next = try await client.received("</c>")
                #expect(next.hasPrefix("HTTP/1.1 200 ") && !next.contains("</a>"))
            }
        }
    }

    @Test("wait until those that came before are answered", arguments: [false, true])
    func behind(isGist: Bool) async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for number in 0..<4 {
                _ = try await client.answer(to: get("/a", isGist ? "X-Id: \(number)\r\n" : ""))
            }
            for number in 0..<4 {
                client.seen.change { $0.bytes = [] }
                try await client.send(get("/held/\(number)"))
                try await origin.holds(number + 1)
                let request = get("/a", isGist ? "X-Id: 1\(number)\r\n" : "")
                let read = proxy.server.statistics().bytesIn + UInt64(request.utf8.count)
                try await client.send(request)
                while proxy.server.statistics().bytesIn < read { await Task.yield() }
                origin.release()
                let all = try await client.received("</a>")
                let place = try #require(all.range(of: "</held/\(number)>"))
                let last = try #require(all.range(of: "</a>"))
                #expect(place.upperBound < last.lowerBound)
            }
        }
    }

    @Test("that end their connection do so each time", arguments: ["1.1", "1.0"])
    func closing(_ version: String) async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            for number in 0..<10 {
                let client = try await proxy.connect()
                _ = try await client.answer(to: get("/b"), until: "</b>")
                client.seen.change { $0.bytes = [] }
                try await client.send(
                    get(
                        "/a", "Connection: close\r\nX-Id: \(number % 5)\r\n", version: version))
                let answer = try await client.receivedAll()
                #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("\r\n\r\n</a>"))
            }
            #expect(origin.fetches == ["/b", "/a"])
        }
    }

    @Test("share what varies by fields that the gist has")
    func shared() async throws {
        let origin = StoringSession(vary: "Accept")
        let access = ReplaceableAccess()
        try await Self.run(origin, access: access) { proxy in
            let client = try await proxy.connect()
            for number in 0..<12 {
                let kind = number % 2
                let answer = try await client.answer(
                    to: get("/a", "Accept: a/\(kind)\r\nX-Id: \(number)\r\n"))
                #expect(answer.contains("; hit") == (number > 1))
            }
            #expect(origin.fetches.count == 2)
            #expect(access.judged.load(ordering: .relaxed) < 12)
        }
    }

    @Test(
        "are refused for what is wrong in a line that decides nothing",
        arguments: ["X-Id : 1\r\n", "X-Id: \u{1}\r\n", "X-Id: 1\r\n 2\r\n", "X-Id: 1\n"])
    func malformed(_ line: String) async throws {
        let origin = StoringSession()
        try await Self.run(origin) { proxy in
            let client = try await proxy.connect()
            for number in 0..<4 {
                _ = try await client.answer(to: get("/a", "X-Id: \(number)\r\n"))
            }
            let answer = try await client.answer(to: get("/a", line), until: "\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 400 "))
        }
    }

    @Test("go to the origin when what they were answered with is gone, and are judged each time")
    func changes() async throws {
        let origin = StoringSession()
        let session = origin.session()
        let access = ReplaceableAccess()
        try await Self.run(origin, session: session, access: access) { proxy in
            let client = try await proxy.connect()
            for number in 0..<4 {
                _ = try await client.answer(to: get("/a", "X-Id: \(number)\r\n"))
            }
            session.removeAll(in: .all) { _ in }
            for number in 4..<8 {
                let answer = try await client.answer(to: get("/a", "X-Id: \(number)\r\n"))
                #expect(answer.contains("fwd=uri-miss") == (number == 4))
            }
            #expect(origin.fetches == ["/a", "/a"])
            access.deny()
            let refused = try await client.answer(to: get("/a", "X-Id: 9\r\n"), until: "\r\n\r\n")
            #expect(refused.hasPrefix("HTTP/1.1 403 "))
        }
    }
}
