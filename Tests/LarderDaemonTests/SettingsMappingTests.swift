import LarderConfig
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderProxy
import LarderSession
import LarderStore
import LarderTransfer
import Testing

@testable import LarderDaemon

@Suite("Settings reach the modules that they are about")
struct SettingsMappingTests {
    private func loaded(_ text: String) throws -> LoadedSettings {
        try Configuration.parse(text, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
    }

    @Test("the bounds on heads hold for origins as for clients")
    func heads() throws {
        let loaded = try self.loaded("limits: { head: 10 KiB, field-count: 20 }")
        let session = try #require(loaded.settings.session(named: .default))
        let transfer = loaded.blueprint(of: session).transfer
        #expect(transfer.maximumHead == .kibibytes(10))
        #expect(transfer.maximumFieldCount == 20)
        #expect(loaded.proxyConfiguration.headLimits.head == 10_240)
        #expect(loaded.proxyConfiguration.headLimits.fieldCount == 20)
    }

    @Test("every kind of session is its own", arguments: SessionSettings.Kind.allCases)
    func kind(_ kind: SessionSettings.Kind) throws {
        let loaded = try self.loaded("sessions: { s: { kind: \(kind.rawValue) } }")
        let session = try #require(loaded.settings.sessions.last)
        let blueprint = loaded.blueprint(of: session)
        #expect(blueprint.kind.rawValue == kind.rawValue)
        #expect(blueprint.kind.isPersistent == kind.isPersistent)
        #expect((blueprint.disk != nil) == kind.isPersistent)
        #expect((blueprint.state != nil) == kind.isPersistent)
    }

    @Test("the bounds on connections")
    func connections() throws {
        let limits = "limits: { connections: 100, connections-per-client: 7 }"
        let proxy = try self.loaded(limits).proxyConfiguration
        #expect(proxy.maximumConnections == 100)
        #expect(proxy.maximumConnectionsPerClient == 7)
        #expect(try self.loaded("").proxyConfiguration.maximumConnectionsPerClient == nil)
    }

    @Test("the largest disk is the largest that the store takes")
    func largestDisk() throws {
        let most = DiskConfiguration.maximumCapacity.bytes
        func disk(_ bytes: UInt64) throws -> UInt64? {
            let loaded = try self.loaded("sessions: { default: { cache: { disk: \(bytes) B } } }")
            return loaded.settings.session(named: .default)?.cache.disk.bytes
        }
        #expect(try disk(most) == most)
        #expect(throws: ConfigurationError.self) { try disk(most + 1) }
    }

    @Test("connections to origins")
    func originConnections() throws {
        let loaded = try self.loaded("limits: { origin-connections: 9 }")
        let session = try #require(loaded.settings.session(named: .default))
        #expect(loaded.blueprint(of: session).transfer.maximumConnections == 9)
        let standard = TransferConfiguration().maximumConnections
        #expect(Settings().limits.originConnections == standard)
    }

    @Test("times for clients, for origins, and for tunnels and upgrades to them")
    func times() throws {
        let loaded = try self.loaded(
            "timeouts: { idle: 7 s, resolve: 2 s, connect: 3 s, response: 11 s, stall: 13 s }")
        let proxy = loaded.proxyConfiguration
        #expect(proxy.idleTimeout == .seconds(7))
        #expect(proxy.sendTimeout == .seconds(7))
        #expect(proxy.requestBodyTimeout == .seconds(13))
        #expect(proxy.resolveTimeout == .seconds(2))
        #expect(proxy.connectTimeout == .seconds(3))
        #expect(proxy.upgradeTimeout == .seconds(11))
        // Who takes nothing has the same time, whether others wait for the rest or not.
        let session = try #require(loaded.settings.session(named: .default))
        #expect(loaded.blueprint(of: session).session.clientPatience == .seconds(7))
        #expect(SessionConfiguration().clientPatience == Settings().timeouts.idle.duration)
    }

    @Test("nothing larger than the largest object is kept in memory either")
    func largestObject() throws {
        let loaded = try self.loaded(
            "sessions: { default: { cache: { memory-object: 1 MiB, maximum-object: 10 KiB } } }")
        let session = try #require(loaded.settings.session(named: .default))
        #expect(loaded.blueprint(of: session).memory.maximumObject == .kibibytes(10))
    }

    @Test("what a session remembers and shows for explanations")
    func explanations() throws {
        let text = "sessions: { default: { cache: { remember: 0, show-key: true } } }"
        let loaded = try self.loaded(text)
        let session = try #require(loaded.settings.session(named: .default))
        let configuration = loaded.blueprint(of: session).session
        #expect(configuration.remembersExchanges == 0)
        #expect(configuration.showsCacheKey)
        #expect(SessionConfiguration().remembersExchanges == Settings().sessions[0].cache.remember)
        #expect(!SessionConfiguration().showsCacheKey)
    }

    @Test("the name stands in Via, with a number that makes it this process's own")
    func name() throws {
        let loaded = try self.loaded("name: pantry")
        #expect(loaded.proxyConfiguration.pseudonym.hasPrefix("pantry-"))
        #expect(loaded.proxyConfiguration.pseudonym != loaded.proxyConfiguration.pseudonym)
    }
}

@Suite("Settings of caching reach policy")
struct PolicyMappingTests {
    private func policy(_ text: String) throws -> PolicyConfiguration {
        let loaded = try Configuration.parse(
            text, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
        let session = try #require(loaded.settings.session(named: .default))
        return loaded.policy(of: session)
    }

    @Test("the defaults are those of policy itself, but for an origin that is silent")
    func defaults() throws {
        var expected = PolicyConfiguration()
        expected.unreachableGrace = .seconds(86_400)
        #expect(try self.policy("") == expected)
    }

    @Test("each setting has its place")
    func settings() throws {
        let policy = try self.policy(
            """
            sessions:
              default:
                cache:
                  shared: false
                  variants: 3
                  semantic-vary: false
                  store-set-cookie: false
                  store-post: false
                  no-vary-search: false
                freshness:
                  heuristic-fraction: 0.5
                  heuristic-maximum: 1 h
                  stale-if-error: 2 h
                  stale-if-unreachable: 4 h
                  stale-while-revalidate: false
                  negative: {404: 30 s, 5xx: 5 s}
                  targeted-fields: [Larder-Cache-Control, CDN-Cache-Control]
                  ftp: 3 h
            """)
        var expected = PolicyConfiguration(
            kind: .private, heuristicFraction: 0.5, heuristicMaximum: .seconds(3600),
            semanticVary: false, maximumVariants: 3, staleIfErrorGrace: .seconds(7200),
            honoursStaleWhileRevalidate: false,
            targetedFields: ["Larder-Cache-Control", "CDN-Cache-Control"],
            storesSetCookie: false, storesPost: false, ftpLifetime: .seconds(10_800))
        expected.honoursNoVarySearch = false
        expected.unreachableGrace = .seconds(14_400)
        expected.negative = [
            NegativeLifetime(404...404, .seconds(30)), NegativeLifetime(500...599, .seconds(5)),
        ]
        #expect(policy == expected)
    }

    @Test("each part of a cache rule has its place, and rules of other sessions stay away")
    func rules() throws {
        let policy = try self.policy(
            """
            sessions: { other: }
            cache-rules:
              - { name: elsewhere, sessions: [other] }
              - name: all
                sessions: [default]
                hosts: [.a.example, "b.example:81"]
                paths: ["/x/*"]
                minimum: 1 min
                maximum: 2 min
                lifetime: 90 s
                ignore: [no-store, private, no-cache, must-revalidate, max-age, s-maxage, expires,
                  vary, reload, set-cookie, authorization]
                negative: {410: 1 s}
                stale-if-error: 3 min
                store: never
            """)
        var ignored: CacheRule.Ignored = []
        for (_, bit) in CacheRule.Ignored.words { ignored.insert(bit) }
        let expected = CacheRule(
            name: "all", place: "f:4",
            hosts: [
                LarderPolicy.HostPattern(".a.example"),
                LarderPolicy.HostPattern("b.example", ports: 81...81),
            ], paths: [Wildcard("/x/*")], minimum: .seconds(60), maximum: .seconds(120),
            lifetime: .seconds(90), ignored: ignored,
            negative: [NegativeLifetime(410...410, .seconds(1))],
            staleIfErrorGrace: .seconds(180), forbidsStoring: true)
        #expect(policy.rules == [expected])
    }

    @Test("every word of ignore sets its own bit", arguments: CacheRuleSettings.Ignored.allCases)
    func ignored(_ word: CacheRuleSettings.Ignored) {
        #expect(CacheRule.Ignored(word).names == [word.rawValue])
    }

    @Test("every request cache policy has its word", arguments: RequestCachePolicy.allCases)
    func cachePolicy(_ policy: RequestCachePolicy) throws {
        let word = try #require(CachePolicyWord(rawValue: policy.rawValue))
        #expect(RequestCachePolicy(word) == policy)
    }
}
