import LarderHTTP
import LarderSession
import NIOCore
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Requests of the same gist as one that came before")
struct AlikeRequestTests {
    private static func ask(
        _ client: Peer, _ request: String, until end: String = "</a>"
    ) async throws -> String {
        client.seen.change { $0.bytes = [] }
        try await client.send(request)
        return try await client.received(end)
    }

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
            _ = try await Self.ask(client, get("/a"))
            for number in 0..<8 {
                origin.advance(.seconds(number))
                let alike = try await Self.ask(
                    client, get("/a", "User-Agent: \(number)\r\nX-Id: \(number)\r\n"))
                let anew = try await Self.ask(client, get("/a", "Cookie: \(number)\r\n"))
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
                let answer = try await Self.ask(
                    client, get("/a", "User-Agent: \(number)\r\nX-Id: \(number)\r\n"))
                #expect(answer.contains("; fwd="))
            }
            #expect(origin.fetches.count == 5)
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
                let answer = try await Self.ask(
                    client, get("/a", "Accept: a/\(kind)\r\nX-Id: \(number)\r\n"))
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
                _ = try await Self.ask(client, get("/a", "X-Id: \(number)\r\n"))
            }
            let answer = try await Self.ask(client, get("/a", line), until: "\r\n\r\n")
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
                _ = try await Self.ask(client, get("/a", "X-Id: \(number)\r\n"))
            }
            session.removeAll(where: { _ in true }, { _ in })
            for number in 4..<8 {
                let answer = try await Self.ask(client, get("/a", "X-Id: \(number)\r\n"))
                #expect(answer.contains("fwd=uri-miss") == (number == 4))
            }
            #expect(origin.fetches == ["/a", "/a"])
            access.deny()
            let refused = try await Self.ask(
                client, get("/a", "X-Id: 9\r\n"), until: "\r\n\r\n")
            #expect(refused.hasPrefix("HTTP/1.1 403 "))
        }
    }
}
