import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Bodies whose pages are lent")
struct PageLenderTests {
    /// Answers with as many of its path's letter as the path says: /a/65536.
    private static func lending() -> ScriptedSession {
        ScriptedSession { exchange in
            let parts = exchange.request.uri.pathAndQuery.split(separator: "/")
            let text = String(repeating: parts[0].first ?? "?", count: Int(parts[1]) ?? 0)
            guard let body = LentMemory.copy(of: ByteBuffer(string: text)) else {
                return exchange.answer(500)
            }
            exchange.client.exchange(
                answered: Answer(
                    head: ResponseHead(status: .ok), bodyLength: .known(UInt64(text.utf8.count)),
                    body: .resident(body), cacheStatus: CacheStatus(hit: true)))
        }
    }

    /// Whether an answer ends with so many of this letter.
    private func ends(_ answer: String, in letter: Character, _ count: Int) -> Bool {
        answer.utf8.count > count
            && answer.utf8.suffix(count).allSatisfy { $0 == letter.asciiValue }
    }

    @Test("come whole, one after the other", arguments: [65_536, 100_000, 262_144, 1 << 20])
    func whole(_ count: Int) async throws {
        try await Fixture.run(Self.lending()) { proxy in
            let client = try await proxy.connect()
            for letter in ["a", "b", "c"] {
                try await client.send(get("/\(letter)/\(count)"))
            }
            try await client.send(get("/z/1", "Connection: close\r\n"))
            let all = try await client.receivedAll()
            try expect(all, isAnswersOf: [("a", count), ("b", count), ("c", count), ("z", 1)])
            let entry = try await proxy.log.entry()
            #expect(entry.responseBodyBytes == UInt64(count))
        }
    }

    @Test(
        "are what a slow client asked for, although their memory is used again",
        arguments: [65_536, 300_000, 2 << 20])
    func slowClient(_ count: Int) async throws {
        try await Fixture.run(Self.lending()) { proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send(get("/a/\(count)", "Connection: close\r\n"))
            // All of it is with the kernel, or waits for the socket.
            try await proxy.log.entry()
            let others = (0..<32).compactMap { _ in
                LentMemory.copy(of: ByteBuffer(repeating: UInt8(ascii: "b"), count: count))
            }
            #expect(others.count == 32)
            try await client.resumeReading()
            let all = try await client.receivedAll()
            #expect(self.ends(all, in: "a", count))
        }
    }

    @Test("end with a client that goes away in the middle, and with nobody else")
    func leaving() async throws {
        try await Fixture.run(Self.lending()) { proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send(get("/a/4194304"))
            try await proxy.log.entry()
            try await client.reset()
            let other = try await proxy.connect()
            try await other.send(get("/b/1048576", "Connection: close\r\n"))
            let all = try await other.receivedAll()
            #expect(self.ends(all, in: "b", 1_048_576))
        }
    }
}
