import Testing

/// The rules of HTTP caching, played through whole proxies: a table a topic.
@Suite("Conformance", .laboratory, .timeLimit(.minutes(5)))
struct ConformanceTests {
    private func check(_ played: Case) async throws {
        try await #require(Laboratory.current).check(played)
    }

    @Test("Cache-Control as it is written", arguments: Self.cacheControlSyntax)
    func cacheControlSyntax(_ played: Case) async throws { try await self.check(played) }

    @Test("Freshness", arguments: Self.freshness)
    func freshness(_ played: Case) async throws { try await self.check(played) }
}
