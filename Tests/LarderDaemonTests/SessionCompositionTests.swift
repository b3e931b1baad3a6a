import Foundation
import LarderConfig
import LarderControl
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
            environment: ProcessEnvironment(["HOME": self.directory]))
    }

    private func start(
        _ loaded: LoadedSettings, then next: LoadedSettings? = nil
    ) async throws -> (proxy: RunningProxy, port: UInt16) {
        var options = RunningProxy.Options()
        options.hasControl = false
        let level = DaemonLog.Level(.critical)
        let proxy = try await RunningProxy.start(
            loaded, options: options, log: quietLog(), level: level
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

    /// A file of tokens in the test's directory; its path.
    private func writeTokens() throws -> String {
        let path = self.directory + "/tokens"
        let isWritten = FileManager.default.createFile(
            atPath: path,
            contents: Data(
                ("alice:aaaaaaaaaaaaaaaaaaaaaaaa\nbob:bbbbbbbbbbbbbbbbbbbbbbbb\n"
                    + "carol:cccccccccccccccccccccccc\n").utf8),
            attributes: [.posixPermissions: 0o600])
        try #require(isWritten)
        return path
    }

    @Test("A route leads a user to a session, which keeps each user's cookies apart")
    func routes() async throws {
        try await self.withOrigin { origin in
            let tokens = try self.writeTokens()
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
            #expect(try await proxy.reload().needingRestart.isEmpty)
            #expect(await self.get("/show", origin, by: port).contains("X-Session: new"))
            await proxy.stop(within: .zero)
        }
    }

    /// What a newer file says, and what comes of it.
    struct Newer: Sendable {
        var listener = "}]"
        var rules: String
        /// What it waits with.
        var waiting: [String] = []
        var shows: String
        var hides: String
    }

    /// `%@` stands for the test's directory.
    private static let asking = ", authentication: { token-file: %@/tokens } }]"
    private static let oldRoutes = "routes: [ { clients: [10.0.0.0/8], session: build } ]\n"
    private static let injection =
        "injections: [ { hosts: [127.0.0.1], credential: api, insecure: true } ]\n"

    private static let newer: [Newer] = [
        Newer(
            listener: Self.asking, rules: "routes: [ { session: build } ]\n",
            waiting: ["listeners[0].authentication", "routes"],
            shows: "X-Session: default", hides: "X-Session: build"),
        Newer(
            rules: "routes: [ { session: build } ]\n",
            shows: "X-Session: build", hides: "X-Session: default"),
        Newer(
            listener: Self.asking, rules: Self.oldRoutes + Self.injection,
            waiting: ["listeners[0].authentication", "injections"],
            shows: "X-Session: default", hides: "open-sesame"),
        Newer(
            rules: Self.oldRoutes + Self.injection,
            shows: "open-sesame", hides: "X-Session: build"),
        Newer(
            rules: "routes: [ { session: guests } ]\naccess: [ { action: deny } ]\n",
            waiting: ["access", "routes"],
            shows: "X-Session: default", hides: "X-Session: guests"),
    ]

    @Test(
        "Routes and injections wait with a listener that a restart alone closes, and what is not open",
        arguments: Self.newer)
    func waiting(_ newer: Newer) async throws {
        try await self.withOrigin { origin in
            let sessions = """
                sessions:
                  default: { fields: { X-Session: default } }
                  build: { kind: ephemeral, fields: { X-Session: build } }
                  guests: { kind: ephemeral, fields: { X-Session: guests } }
                """
            _ = try self.writeTokens()
            let listener = newer.listener.replacingOccurrences(of: "%@", with: self.directory)
            let (proxy, port) = try await self.start(
                try self.load("}]\n" + Self.oldRoutes + sessions),
                then: try self.load(listener + "\n" + newer.rules + sessions))
            for member in await proxy.members {
                await member.open.common.credentials.update { store in
                    store.set(
                        NamedCredential(
                            name: "api", kind: .bearer(Secret("open-sesame")),
                            persistence: .forSession))
                }
            }
            #expect(await self.get("/show", origin, by: port).contains("X-Session: default"))
            #expect(try await proxy.reload().needingRestart == newer.waiting)
            let answer = await self.get("/show", origin, by: port)
            #expect(answer.contains(newer.shows))
            #expect(!answer.contains(newer.hides))
            await proxy.stop(within: .zero)
        }
    }

    @Test(
        "A client that is trusted names its listener's session, those it is led to, and those allowed",
        arguments: [
            (nil, 200, "one"), ("default", 200, "default"), ("one", 200, "one"),
            ("two", 200, "two"), ("three", 200, "three"), ("four", 403, "may not use"),
            ("five", 403, "may not use"),
            ("tree", 400, "did you mean three"), ("fore", 400, "session that is not there\""),
        ] as [(String?, Int, String)])
    func named(_ name: String?, _ status: Int, _ text: String) async throws {
        try await self.withOrigin { origin in
            let names = ["default", "one", "two", "three", "four", "five"]
            let sessions = names.map {
                "  \($0): { kind: ephemeral, fields: { X-Session: \($0) } }"
            }
            let loaded = try self.load(
                """
                , trusted-clients: 127.0.0.0/8, named-sessions: [three] }]
                routes:
                  - { clients: 127.0.0.0/8, listeners: "127.0.0.1:0", session: one }
                  - { session: two }
                  - { clients: 10.0.0.0/8, session: four }
                  - { uids: [7], session: five }
                sessions:

                """ + sessions.joined(separator: "\n"))
            let (proxy, port) = try await self.start(loaded)
            let answer = await self.get(
                "/show", origin, by: port, name.map { "Larder-Session: \($0)\r\n" } ?? "")
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
            #expect(answer.contains(status == 200 ? "X-Session: \(text)\r" : text))
            #expect(!answer.contains("Larder-Session: "))
            await proxy.stop(within: .zero)
        }
    }

    @Test(
        "Files of clients follow a reload to other places; a bad one refuses the reload as a whole")
    func clients() async throws {
        try await self.withOrigin { origin in
            func write(_ name: String, _ text: String, mode: Int = 0o600) -> String {
                let path = self.directory + "/" + name
                #expect(
                    FileManager.default.createFile(
                        atPath: path, contents: Data(text.utf8),
                        attributes: [.posixPermissions: mode]))
                return path
            }
            let old = write("old", "alice:aaaaaaaaaaaaaaaaaaaaaaaa\n")
            let new = write("new", "bob:bbbbbbbbbbbbbbbbbbbbbbbb\n")
            let open = write("open", "mallory:cccccccccccccccccccccccc\n", mode: 0o666)
            func load(_ file: String, _ realm: String) throws -> LoadedSettings {
                try self.load(
                    ", authentication: { token-file: \(file), realm: \(realm) } }]\n"
                        + (file == open ? "access: [ { action: deny } ]\n" : ""))
            }
            for (file, realm, expected) in [
                (new, "other", ["407", "200", "407"]), (open, "other", ["200", "407", "407"]),
            ] {
                let (proxy, port) = try await self.start(
                    try load(old, "first"), then: try load(file, realm))
                if file == open {
                    let error = await #expect(throws: ConfigurationError.self) {
                        try await proxy.reload()
                    }
                    #expect(error?.description.contains("listeners[0].authentication") == true)
                    #expect(error?.description.contains(open) == true)
                } else {
                    #expect(try await proxy.reload().needingRestart.isEmpty)
                }
                var statuses: [String] = []
                for letter in ["a", "b", "c"] {
                    let token = String(repeating: letter, count: 24)
                    let answer = await self.get(
                        "/show", origin, by: port, "Proxy-Authorization: Bearer \(token)\r\n")
                    statuses.append(String(answer.dropFirst(9).prefix(3)))
                }
                #expect(statuses == expected)
                let challenge = await self.get("/show", origin, by: port)
                #expect(challenge.contains("realm=\"\(file == new ? "other" : "first")\""))
                await proxy.stop(within: .zero)
            }
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
            let aside = self.directory + "/aside.key"
            try FileManager.default.moveItem(atPath: state + "/default.key", toPath: aside)
            do throws(DaemonError) {
                let level = DaemonLog.Level(.critical)
                var options = RunningProxy.Options()
                options.hasControl = false
                _ = try await RunningProxy.start(
                    loaded, options: options, log: quietLog(), level: level
                ) { () throws(ConfigurationError) in loaded }
                Issue.record("it started")
            } catch {
                #expect(error.code == .configuration)
                #expect(error.description.contains("default.key"))
            }
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: state + "/default/state.mdb")) == data)
            #expect(!FileManager.default.fileExists(atPath: state + "/default.key"))
            // The cache was closed, as if nothing had been.
            try FileManager.default.moveItem(atPath: aside, toPath: state + "/default.key")
            let again = try await self.start(loaded).proxy
            #expect(await again.members.first?.open.directory != nil)
            await again.stop(within: .zero)
        }
    }
}
