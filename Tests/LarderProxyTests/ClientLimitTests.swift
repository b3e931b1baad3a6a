import NIOCore
import Testing

@testable import LarderProxy

@Suite("A client's share of the connections", .timeLimit(.minutes(10)))
struct ClientLimitTests {
    private static let begin = NIODeadline.uptimeNanoseconds(1)

    private static func network(_ text: String) throws -> ClientSource {
        ClientSource(try #require(IPAddress(text)))
    }

    @Test(
        "is that of its IPv4 address, however written, or of its /64",
        arguments: [
            ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true), ("::1", "127.0.0.1", false),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false), ("::", "0.0.0.0", false),
        ])
    func client(_ one: String, _ other: String, _ isSame: Bool) throws {
        #expect((try Self.network(one) == Self.network(other)) == isSame)
    }

    @Test("ends at the maximum, which another client's does not touch")
    func maximum() throws {
        var counts = ClientCounts(maximum: 2)
        let (one, other) = (try Self.network("192.0.2.1"), try Self.network("192.0.2.2"))
        func enter(_ client: ClientSource, _ minutes: Int64 = 0) -> ClientCounts.Verdict {
            counts.enter(client, at: Self.begin + .minutes(minutes))
        }
        #expect(enter(one) == .admitted)
        #expect(enter(one) == .admitted)
        #expect(enter(one) == .refused(count: 1, isNews: true))
        #expect(enter(other) == .admitted)
        #expect(enter(one, 59) == .refused(count: 2, isNews: false))
        #expect(enter(one, 60) == .refused(count: 3, isNews: true))
        counts.leave(one)
        #expect(enter(one) == .admitted)
        #expect(counts.refused == 3)
        for client in [one, one, other] { counts.leave(client) }
        #expect(counts.isEmpty)
    }

    @Test("follows another maximum, and counts without one")
    func change() throws {
        var counts = ClientCounts(maximum: nil)
        let client = try Self.network("192.0.2.1")
        for _ in 0..<3 { #expect(counts.enter(client, at: Self.begin) == .admitted) }
        counts.maximum = 2
        counts.leave(client)
        #expect(counts.enter(client, at: Self.begin) == .refused(count: 1, isNews: true))
        counts.leave(client)
        #expect(counts.enter(client, at: Self.begin) == .admitted)
        counts.maximum = nil
        #expect(counts.enter(client, at: Self.begin) == .admitted)
    }

    @Test("is kept by the proxy: what is beyond it is closed, said once and counted")
    func door() async throws {
        try await Fixture.run(configure: { $0.maximumConnectionsPerClient = 2 }) { proxy in
            let first = try await proxy.connect()
            let second = try await proxy.connect()
            for client in [first, second] {
                try await client.send(get())
                try await client.received("hello")
            }
            for _ in 0..<2 {
                #expect(try await proxy.connect().receivedAll() == "")
            }
            let refusal = ProxyEvent.clientRefused(proxy.address, client: "127.0.0.1", count: 1)
            #expect(proxy.events.value == [refusal])
            #expect(proxy.server.statistics().connectionsRefused == 2)
            #expect(proxy.server.openConnections == 2)
            proxy.server.follow(maximumConnectionsPerClient: 3)
            let third = try await proxy.connect()
            try await third.send(get("/", "Connection: close\r\n"))
            #expect(try await third.receivedAll().hasSuffix("hello"))
            // Its place is free again, at once or a moment later.
            var answer = ""
            for _ in 0..<1_000 where answer.isEmpty {
                let next = try await proxy.connect()
                try? await next.send(get("/", "Connection: close\r\n"))
                answer = try await next.receivedAll()
            }
            #expect(answer.hasSuffix("hello"))
        }
    }
}
