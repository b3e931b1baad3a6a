import Foundation
import LarderConfig
import LarderControl
import Synchronization
import Testing

@testable import LarderDaemon

@Suite("Files that a configuration names", .timeLimit(.minutes(10)))
struct NamedFilesTests {
    private static let listener = "listeners: [{ address: \"127.0.0.1:0\" }"
    private static let session = "sessions: { default: { cache: { disk: 0 }"

    /// - Parameters:
    ///   - listeners: the setting, but for its end.
    ///   - session: more of its settings.
    private static func parse(
        listeners: String = Self.listener, session: String = "", _ more: String = ""
    ) throws -> LoadedSettings {
        try Configuration.parse(
            "\(listeners)]\n\(Self.session)\(session) } }\n"
                + "control: { socket: \"/tmp/larder-\(UUID().uuidString.prefix(8))/c\" }\n\(more)",
            file: "/a", environment: ProcessEnvironment(["HOME": "/nowhere"]))
    }

    private static let asking =
        "listeners: [{ address: \"127.0.0.1:0\", authentication: { password-file: /nowhere/u } }"

    @Test(
        "are read by a reload also where they wait for a restart, which would be refused for them",
        arguments: [
            (asking, "", "/a:1:1: listeners[0].authentication.password-file: /nowhere/u: "),
            (
                "\(listener), { address: \"127.0.0.2:0\", authentication: "
                    + "{ token-file: /nowhere/t } }", "",
                "/a:1:1: listeners[1].authentication.token-file: /nowhere/t: "
            ),
            (listener, ", ca-file: /nowhere/ca", "/a:2:1: sessions.default.ca-file: /nowhere/ca: "),
        ])
    func waiting(_ listeners: String, _ session: String, _ problem: String) async throws {
        let old = try Self.parse(listeners: Self.listener, "access: [{ action: deny }]")
        let new = try Self.parse(
            listeners: listeners, session: session, "access: [{ action: allow }]")
        let proxy = try await RunningProxy.start(
            old, log: quietLog(), level: DaemonLog.Level(.critical)
        ) { () throws(ConfigurationError) in new }
        let error = await #expect(throws: ConfigurationError.self) { try await proxy.reload() }
        #expect(error?.problems == NamedFiles(trying: new).problems)
        #expect(error?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
        #expect(await proxy.loaded.settings.access == [AccessRule(action: .deny)])
        await proxy.stop(within: .seconds(5))
    }

    @Test("that a service manager brings with the next start are warned of by a reload")
    func credentials() async throws {
        let old = try Self.parse()
        let new = try Self.parse(
            listeners: Self.asking.replacingOccurrences(of: "/nowhere", with: "/run/credentials/x"))
        let proxy = try await RunningProxy.start(
            old, log: quietLog(), level: DaemonLog.Level(.critical)
        ) { () throws(ConfigurationError) in new }
        let outcome = try await proxy.reload()
        let warnings = outcome.warnings ?? []
        #expect(warnings.contains { $0.contains("/run/credentials/x/u: cannot be opened") })
        await proxy.stop(within: .seconds(5))
    }

    @Test("of a session that nothing leads to are only warned of, as a start does not open it")
    func unreachable() throws {
        let loaded = try Configuration.parse(
            "\(Self.listener)]\nsessions: { default: {}, other: { ca-file: /nowhere/ca } }",
            file: "/a", environment: ProcessEnvironment(["HOME": "/nowhere"]))
        for isProxy in [false, true] {
            let files = NamedFiles(trying: loaded, isProxy: isProxy)
            #expect(files.problems.isEmpty)
            #expect(files.warnings.map(\.message).contains { $0.contains("/nowhere/ca") })
        }
    }
}
