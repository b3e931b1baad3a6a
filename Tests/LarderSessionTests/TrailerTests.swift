import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

@Suite("Trailers are held to what the head says")
struct TrailerTests {
    private func trailers(_ client: RecordingClient) -> Fields? {
        if case .end(let trailers)? = client.read().last { trailers } else { nil }
    }

    private static let sent: Fields = ["X-Hop": "1", "X-Own": "2", "X-Old": "3", "X-Sum": "4"]

    @Test(
        "by Connection, and in what is stored by private and no-cache (RFC 9111 §5.2.2)",
        arguments: [
            ("max-age=60", .shared, ["X-Own": "2", "X-Old": "3", "X-Sum": "4"]),
            ("max-age=60, private=\"x-own\"", .shared, ["X-Old": "3", "X-Sum": "4"]),
            (
                "max-age=60, private=\"x-own\"", .private,
                ["X-Own": "2", "X-Old": "3", "X-Sum": "4"]
            ),
            ("max-age=60, no-cache=\"x-old, x-a\"", .shared, ["X-Own": "2", "X-Sum": "4"]),
            ("max-age=60, no-cache=x-old", .private, ["X-Own": "2", "X-Sum": "4"]),
        ] as [(String, CacheKind, Fields)])
    func stored(_ control: String, _ kind: CacheKind, _ left: Fields) {
        let bench = Bench(policy: PolicyConfiguration(kind: kind))
        let client = bench.perform().client
        bench.upstream.fetches[0].head(
            200, ["Cache-Control": control, "Connection": "close, X-Hop"])
        bench.upstream.fetches[0].piece("hello")
        bench.upstream.fetches[0].finish(Self.sent)
        #expect(self.trailers(client) == left)
        #expect(self.trailers(bench.perform().client) == left)
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("of what is not stored the client gets all but what Connection names")
    func relayed() {
        let bench = Bench()
        let client = bench.perform().client
        bench.upstream.fetches[0].head(
            200, ["Cache-Control": "no-store, private=\"x-own\"", "Connection": "x-hop"])
        bench.upstream.fetches[0].finish(Self.sent)
        #expect(self.trailers(client) == ["X-Own": "2", "X-Old": "3", "X-Sum": "4"])
    }
}
