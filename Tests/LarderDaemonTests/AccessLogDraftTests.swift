import LarderConfig
import LarderHTTP
import LarderProxy
import NIOCore
import Testing

@testable import LarderDaemon

@Suite("Lines of the access log that repeat themselves")
struct AccessLogDraftTests {
    static func request(_ text: String) throws -> RequestHead {
        var parser = RequestHeadParser()
        var bytes = ByteBuffer(string: text)
        return try #require(try parser.parse(&bytes))
    }

    static func pattern(from client: ClientAddress) throws -> EntryPattern {
        var entry = ExchangeEntry(
            exchange: 5, client: client,
            request: try Self.request(
                "GET http://a.example/\"b HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\"y\r\n"
                    + "Referer: http://a.example/\r\n\r\n"),
            status: StatusCode(200), began: Timestamp(microseconds: 1_600_000_000_999_999))
        entry.session = "default"
        entry.responseHeadBytes = 99
        entry.responseBodyBytes = 1_024
        entry.cacheStatus = CacheStatus(hit: true, ttl: 60)
        entry.cacheStatus?.isFromMemory = true
        entry.responseFields = ["Content-Type": "text/html; charset=utf-8"]
        return EntryPattern(entry)
    }

    static let clients: [ClientAddress] = [
        .unix(nil), .unix(PeerCredentials(uid: 1000, pid: 7)),
        .ip(IPAddress(v4: 0xC000_0201), text: "192.0.2.1", port: 5),
        .ip(IPAddress(v4: 0x7F00_0001), text: "127.0.0.1", port: 65_535),
    ]

    @Test("read as if each were made by itself", arguments: LogSettings.AccessFormat.allCases)
    func same(_ format: LogSettings.AccessFormat) throws {
        let formatter = AccessLogFormatter(format)
        let pattern = try Self.pattern(from: .unix(nil))
        var line = LogLine()
        let draft = AccessLogDraft(pattern.entry, name: "larder", formatter, &line)
        var ended = pattern.entry.began
        for (number, microseconds) in [0, 1, 999, 1_000, 1_234_567, 90_000_000, 86_400_000_000]
            .enumerated()
        {
            ended = ended + .microseconds(microseconds)
            let facts = EntryFacts(
                exchange: UInt64(number) << 20, client: Self.clients[number % Self.clients.count],
                session: ["default", "other", ""][number % 3], ended: ended,
                took: .nanoseconds(Int64(microseconds) * 1_000 + 1),
                responseHeadBytes: UInt64(microseconds), ttl: Int64(number) * 7)
            draft.write(facts, to: &line)
            let expected = formatter.line(
                AccessLogEntry(pattern.entry(with: facts), name: "larder"))
            #expect(line.bytes == expected)
        }
    }
}
