import Foundation
import LarderConfig
import LarderCredentials
import LarderEngine
import LarderSession
import Testing

@testable import LarderDaemon

/// A whole proxy in this process, with a directory of its own and an origin that answers with what
/// it was sent.
@Suite("A proxy put together from its settings", .timeLimit(.minutes(10)))
struct SessionCompositionTests {
    private let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("larder-composition-\(UUID().uuidString)").path

    /// Sets a cookie under /set; answers with its request's head anywhere else.
    private static func answer(_ head: String) -> String {
        let body = head.contains("/set") ? "" : head
        let cookie = head.contains("/set") ? "Set-Cookie: flavour=plain; Max-Age=1000\r\n" : ""
        return "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\(cookie)Content-Length: "
            + "\(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
    }

    private func load(_ text: String) throws -> LoadedSettings {
        try Configuration.parse(
            "listeners: [{ address: \"127.0.0.1:0\" \(text)", file: "f",
            environment: Environment(["HOME": self.directory]))
    }

    private func start(
        _ loaded: LoadedSettings, then next: LoadedSettings? = nil
    ) async throws -> (proxy: RunningProxy, port: UInt16) {
        var options = RunningProxy.Options()
        options.hasControl = false
        let level = DaemonLog.Level(.critical)
        let proxy = try await RunningProxy.start(
            loaded, options: options, log: DaemonLog.make(level), level: level
        ) { () throws(ConfigurationError) in next ?? loaded }
        let port = await proxy.url.split(separator: ":").last.flatMap { UInt16($0) }
        return (proxy, try #require(port))
    }

    private func get(
        _ path: String, _ origin: TextOrigin, by proxy: UInt16, _ fields: String = ""
    ) async -> String {
        await TextOrigin.ask(
            proxy,
            "GET http://127.0.0.1:\(origin.port)\(path) HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                + "\(fields)Connection: close\r\n\r\n")
    }

    private func withOrigin(_ body: (TextOrigin) async throws -> Void) async throws {
        try FileManager.default.createDirectory(
            atPath: self.directory, withIntermediateDirectories: true)
        let origin = try TextOrigin(Self.answer)
        defer {
            origin.stop()
            try? FileManager.default.removeItem(atPath: self.directory)
        }
        try await body(origin)
    }

    @Test("A jar's persistent cookies outlast the proxy, and no client sees them")
    func jar() async throws {
        try await self.withOrigin { origin in
            let loaded = try self.load("}]\nsessions: { default: { cookies: { mode: jar } } }")
            var (proxy, port) = try await self.start(loaded)
            let set = await self.get("/set", origin, by: port)
            #expect(set.hasPrefix("HTTP/1.1 200"))
            #expect(!set.lowercased().contains("set-cookie"))
            #expect(await self.get("/show", origin, by: port).contains("Cookie: flavour=plain"))
            await proxy.stop(within: .zero)
            (proxy, port) = try await self.start(loaded)
            #expect(await self.get("/show", origin, by: port).contains("Cookie: flavour=plain"))
            await proxy.stop(within: .zero)
        }
    }

    @Test("A rule's credential reaches the places that it names, and no others")
    func injection() async throws {
        try await self.withOrigin { origin in
            let loaded = try self.load(
                "}]\ninjections: [ { hosts: [127.0.0.1], paths: [/v1/*], credential: api, "
                    + "insecure: true } ]")
            let (proxy, port) = try await self.start(loaded)
            let member = try #require(await proxy.members.first)
            await member.open.common.credentials.update { store in
                store.set(
                    NamedCredential(
                        name: "api", kind: .bearer(Secret("open-sesame")), persistence: .forSession)
                )
            }
            #expect(
                await self.get("/v1/x", origin, by: port).contains(
                    "Authorization: Bearer open-sesame"))
            #expect(!(await self.get("/v2/x", origin, by: port)).contains("open-sesame"))
            await proxy.stop(within: .zero)
        }
    }

    @Test("A route leads a user to a session, which keeps each user's cookies apart")
    func routes() async throws {
        try await self.withOrigin { origin in
            let tokens = self.directory + "/tokens"
            let written = FileManager.default.createFile(
                atPath: tokens,
                contents: Data(
                    ("alice:aaaaaaaaaaaaaaaaaaaaaaaa\nbob:bbbbbbbbbbbbbbbbbbbbbbbb\n"
                        + "carol:cccccccccccccccccccccccc\n").utf8),
                attributes: [.posixPermissions: 0o600])
            #expect(written)
            let loaded = try self.load(
                """
                , authentication: { token-file: \(tokens) } }]
                routes: [ { users: [alice, bob], session: work } ]
                sessions:
                  default: { fields: { X-Session: default } }
                  work: { kind: ephemeral, principals: user, cookies: { mode: jar },
                    fields: { X-Session: work } }
                """)
            let (proxy, port) = try await self.start(loaded)
            func ask(_ path: String, _ token: String) async -> String {
                await self.get(
                    path, origin, by: port, "Proxy-Authorization: Bearer \(token)\r\n")
            }
            #expect(await self.get("/show", origin, by: port).hasPrefix("HTTP/1.1 407"))
            #expect(await ask("/show", "cccccccccccccccccccccccc").contains("X-Session: default"))
            _ = await ask("/set", "aaaaaaaaaaaaaaaaaaaaaaaa")
            let alice = await ask("/show", "aaaaaaaaaaaaaaaaaaaaaaaa")
            #expect(alice.contains("X-Session: work") && alice.contains("Cookie: flavour=plain"))
            let bob = await ask("/show", "bbbbbbbbbbbbbbbbbbbbbbbb")
            #expect(bob.contains("X-Session: work") && !bob.contains("flavour"))
            #expect(!origin.received.contains { $0.contains("Proxy-Authorization") })
            await proxy.stop(within: .zero)
        }
    }

    @Test("Routes, fields and cookies follow a reload, also for clients that are there")
    func reload() async throws {
        try await self.withOrigin { origin in
            let sessions = """
                sessions:
                  default: { fields: { X-Session: %@ }, cookies: { mode: jar } }
                  other: { kind: ephemeral, fields: { X-Session: other } }
                """
            let old = try self.load(
                "}]\nroutes: [ { clients: [10.0.0.0/8], session: other } ]\n"
                    + sessions.replacingOccurrences(of: "%@", with: "old"))
            let new = try self.load(
                "}]\nroutes: [ { clients: [10.0.0.0/8], session: other } ]\n"
                    + sessions.replacingOccurrences(of: "%@", with: "new"))
            let (proxy, port) = try await self.start(old, then: new)
            #expect(await self.get("/show", origin, by: port).contains("X-Session: old"))
            #expect(try await proxy.reload().isEmpty)
            #expect(await self.get("/show", origin, by: port).contains("X-Session: new"))
            await proxy.stop(within: .zero)
        }
    }

    @Test("A key that does not open the state stops the start, and overwrites nothing")
    func wrongKey() async throws {
        try await self.withOrigin { origin in
            let loaded = try self.load("}]\nsessions: { default: { cookies: { mode: jar } } }")
            let (proxy, port) = try await self.start(loaded)
            _ = await self.get("/set", origin, by: port)
            await proxy.stop(within: .zero)
            let state = self.directory + "/.local/state/larder"
            let data = try Data(contentsOf: URL(fileURLWithPath: state + "/default/state.mdb"))
            try FileManager.default.removeItem(atPath: state + "/default.key")
            do throws(DaemonError) {
                let level = DaemonLog.Level(.critical)
                var options = RunningProxy.Options()
                options.hasControl = false
                _ = try await RunningProxy.start(
                    loaded, options: options, log: DaemonLog.make(level), level: level
                ) { () throws(ConfigurationError) in loaded }
                Issue.record("it started")
            } catch {
                #expect(error.code == .configuration)
                #expect(error.description.contains("default.key"))
            }
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: state + "/default/state.mdb")) == data)
            #expect(!FileManager.default.fileExists(atPath: state + "/default.key"))
        }
    }
}
