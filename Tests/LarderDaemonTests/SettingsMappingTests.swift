import LarderConfig
import LarderEngine
import LarderHTTP
import LarderProxy
import LarderSession
import LarderStore
import LarderTransfer
import Testing

@testable import LarderDaemon

@Suite("Settings reach the modules that they are about")
struct SettingsMappingTests {
    private func loaded(_ text: String) throws -> LoadedSettings {
        try Configuration.parse(text, file: "f", environment: Environment(["HOME": "/h"]))
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

    @Test("times for clients, for origins, and for tunnels and upgrades to them")
    func times() throws {
        let loaded = try self.loaded(
            "timeouts: { idle: 7 s, resolve: 2 s, connect: 3 s, response: 11 s, stall: 13 s }")
        let proxy = loaded.proxyConfiguration
        #expect(proxy.idleTimeout == .seconds(7))
        #expect(proxy.sendTimeout == .seconds(7))
        #expect(proxy.requestBodyTimeout == .seconds(13))
        #expect(proxy.connectTimeout == .seconds(5))
        #expect(proxy.upgradeTimeout == .seconds(11))
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
