import Testing

/// The rules of HTTP caching, played through whole proxies: a table a topic.
@Suite("Conformance", .laboratory, .timeLimit(.minutes(5)))
struct ConformanceTests {
    private func check(_ played: Case) async throws {
        try await #require(Laboratory.current).check(played)
    }

    @Test("Cache-Control as it is written", arguments: Tables.cacheControlSyntax)
    func cacheControlSyntax(_ played: Case) async throws { try await self.check(played) }

    @Test("Freshness", arguments: Tables.freshness)
    func freshness(_ played: Case) async throws { try await self.check(played) }

    @Test("Heuristic lifetimes", arguments: Tables.heuristics)
    func heuristics(_ played: Case) async throws { try await self.check(played) }

    @Test("Status codes", arguments: Tables.statusCodes)
    func statusCodes(_ played: Case) async throws { try await self.check(played) }

    @Test("Age", arguments: Tables.age)
    func age(_ played: Case) async throws { try await self.check(played) }

    @Test("Expires and dates", arguments: Tables.expires)
    func expires(_ played: Case) async throws { try await self.check(played) }

    @Test("Pragma", arguments: Tables.pragma)
    func pragma(_ played: Case) async throws { try await self.check(played) }

    @Test("What is stored", arguments: Tables.storing)
    func storing(_ played: Case) async throws { try await self.check(played) }

    @Test("Directives of requests", arguments: Tables.requestDirectives)
    func requestDirectives(_ played: Case) async throws { try await self.check(played) }

    @Test("Directives of responses", arguments: Tables.responseDirectives)
    func responseDirectives(_ played: Case) async throws { try await self.check(played) }

    @Test("Entity tags that clients send", arguments: Tables.entityTagConditions)
    func entityTagConditions(_ played: Case) async throws { try await self.check(played) }

    @Test("Dates that clients send", arguments: Tables.dateConditions)
    func dateConditions(_ played: Case) async throws { try await self.check(played) }

    @Test("Validation", arguments: Tables.validation)
    func validation(_ played: Case) async throws { try await self.check(played) }

    @Test("What a 304 updates", arguments: Tables.updating)
    func updating(_ played: Case) async throws { try await self.check(played) }

    @Test("HEAD", arguments: Tables.headMethod)
    func headMethod(_ played: Case) async throws { try await self.check(played) }

    @Test("Variants", arguments: Tables.variants)
    func variants(_ played: Case) async throws { try await self.check(played) }

    @Test("Negotiation", arguments: Tables.negotiation)
    func negotiation(_ played: Case) async throws { try await self.check(played) }

    @Test("Keys", arguments: Tables.keys)
    func keys(_ played: Case) async throws { try await self.check(played) }

    @Test("Stale use", arguments: Tables.staleness)
    func staleness(_ played: Case) async throws { try await self.check(played) }

    @Test("Invalidation", arguments: Tables.invalidation)
    func invalidation(_ played: Case) async throws { try await self.check(played) }

    @Test("Cache groups", arguments: Tables.groups)
    func groups(_ played: Case) async throws { try await self.check(played) }

    @Test("Targeted control", arguments: Tables.targeted)
    func targeted(_ played: Case) async throws { try await self.check(played) }

    @Test("Stored fields", arguments: Tables.storedFields)
    func storedFields(_ played: Case) async throws { try await self.check(played) }

    @Test("Interim responses", arguments: Tables.interim)
    func interim(_ played: Case) async throws { try await self.check(played) }

    @Test("Forwarding", arguments: Tables.forwarding)
    func forwarding(_ played: Case) async throws { try await self.check(played) }

    @Test("Ranges", arguments: Tables.ranges)
    func ranges(_ played: Case) async throws { try await self.check(played) }

    @Test("Partial content", arguments: Tables.partialContent)
    func partialContent(_ played: Case) async throws { try await self.check(played) }

    @Test("Cache-Status", arguments: Tables.cacheStatus)
    func cacheStatus(_ played: Case) async throws { try await self.check(played) }

    @Test("Proxy-Status", arguments: Tables.proxyStatus)
    func proxyStatus(_ played: Case) async throws { try await self.check(played) }

    @Test("No-Vary-Search", arguments: Tables.searchVariance)
    func searchVariance(_ played: Case) async throws { try await self.check(played) }

    @Test("A private cache", arguments: Tables.privateCache)
    func privateCache(_ played: Case) async throws { try await self.check(played) }
}
