import Glibc
import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Content that comes in pieces")
struct PieceGatheringTests {
    private static func piece(_ letter: String, _ count: Int) -> ByteBuffer {
        ByteBuffer(string: String(repeating: letter, count: count))
    }

    /// Answers /LETTER/SIZE/COUNT with so many pieces of this size; with a length unless COUNT has a
    /// sign in front.
    private static func inPieces() -> ScriptedSession {
        ScriptedSession { exchange in
            let parts = exchange.request.uri.pathAndQuery.split(separator: "/")
            let (size, count) = (Int(parts[1]) ?? 0, Int(parts[2]) ?? 0)
            let pieces = (0..<abs(count)).map { _ in
                BodyStep.piece(Self.piece(String(parts[0]), size))
            }
            exchange.answer(
                from: ScriptedBody(pieces + [.end(trailers: Fields())]),
                length: count < 0 ? .unknown : .known(UInt64(size * count)))
        }
    }

    @Test(
        "is whole and in order, requests one behind the other",
        arguments: [(10, 1), (7, 100), (65_512, 4), (65_512, 17), (100_000, 40), (1, 0)])
    func whole(size: Int, count: Int) async throws {
        try await Fixture.run(Self.inPieces()) { proxy in
            let client = try await proxy.connect()
            let letters = ["a", "b", "c"]
            for letter in letters { try await client.send(get("/\(letter)/\(size)/\(count)")) }
            try await client.send(get("/z/1/1", "Connection: close\r\n"))
            let all = try await client.receivedAll()
            try expect(all, isAnswersOf: letters.map { ($0, size * count) } + [("z", 1)])
            for loop in proxy.server.loops {
                let isInUse = try await loop.eventLoop.submit {
                    loop.value.gathering.isInUse
                }.get()
                #expect(!isInUse)
            }
        }
    }

    @Test("is framed where its length is not known", arguments: [1, 3, 40])
    func chunked(count: Int) async throws {
        try await Fixture.run(Self.inPieces()) { proxy in
            let client = try await proxy.connect()
            try await client.send(get("/a/5/-\(count)", "Connection: close\r\n"))
            let all = try await client.receivedAll()
            let chunks = String(repeating: "5\r\naaaaa\r\n", count: count) + "0\r\n\r\n"
            #expect(all.hasSuffix("\r\n\r\n" + chunks))
        }
    }

    @Test("waits for a slow client, and is what it asked for", arguments: [1, 20, 200])
    func slowClient(count: Int) async throws {
        try await Fixture.run(Self.inPieces()) { proxy in
            let client = try await proxy.connect(reads: false)
            try await client.send(get("/a/65512/\(count)"))
            try await client.send(get("/b/65512/1", "Connection: close\r\n"))
            let other = try await proxy.connect()
            try await other.send(get("/c/65512/20", "Connection: close\r\n"))
            #expect(try await other.receivedAll().utf8.count > 20 * 65_512)
            try await client.resumeReading()
            let all = try await client.receivedAll()
            #expect(all.utf8.count { $0 == UInt8(ascii: "a") } >= count * 65_512)
            #expect(all.hasSuffix(String(repeating: "b", count: 65_512)))
        }
    }

    @Test("goes to a socket as far as that takes it", arguments: [1, 5, PieceGathering.most])
    func partly(count: Int) throws {
        var pair: [CInt] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { for descriptor in pair { _ = close(descriptor) } }
        let gathering = PieceGathering()
        var got: [UInt8] = []
        var expected: [UInt8] = []
        for turn in 0..<40 {
            gathering.begin()
            for index in 0..<count {
                let piece = Self.piece(["x", "y", "z"][(turn + index) % 3], 20_000 + index)
                expected += piece.readableBytesView
                gathering.append(piece)
            }
            #expect(gathering.isFull == (count == PieceGathering.most))
            let wanted = gathering.bytes
            var rest: [UInt8] = []
            let sent = gathering.send(to: pair[0]) { rest += $0.readableBytesView }
            gathering.end()
            #expect(sent + rest.count == wanted)
            #expect(gathering.bytes == 0)
            // What the socket took comes first, and then what it did not.
            var bytes = [UInt8](repeating: 0, count: sent)
            var had = 0
            while had < sent {
                let read = unsafe recv(pair[1], &bytes, sent - had, 0)
                try #require(read > 0)
                got += bytes.prefix(read)
                had += read
            }
            got += rest
        }
        #expect(got == expected)
        var all = 0
        gathering.append(Self.piece("a", 9))
        #expect(gathering.send(to: nil) { all += $0.readableBytes } == 0)
        #expect(all == 9)
    }
}
