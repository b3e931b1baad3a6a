import Foundation
import LarderConfig
import LarderControl
import Synchronization
import Testing

@testable import LarderDaemon

@Suite("Access rules that are read again together with listeners", .timeLimit(.minutes(10)))
struct WaitingAccessTests {
    private let files: CredentialFiles
    /// A listener that asks its clients for a password.
    private let asking: Text

    init() throws {
        self.files = try CredentialFiles()
        self.asking = Text(
            listener: ", authentication: { password-file: \(self.files.passwordPath) }")
    }

    /// A configuration, of whose one listener nobody is led to an origin.
    private struct Text {
        var address = "127.0.0.1:0"
        var listener = ""
        var isOpen = false
        var rest = ""

        var open: Text { self.with { $0.isOpen = true } }

        func with(_ change: (inout Text) -> Void) -> Text {
            var text = self
            change(&text)
            return text
        }

        func loaded() throws -> LoadedSettings {
            try Configuration.parse(
                """
                listeners: [{ address: "\(self.address)", session: ephemeral, \
                cache-policy: return-cache-dont-load\(self.listener) }]
                access: [{ action: \(self.isOpen ? "allow" : "deny") }]
                \(self.rest)
                """, file: "/a", environment: ProcessEnvironment(["HOME": "/nowhere"]))
        }
    }

    /// A proxy that reads these texts, one after the other.
    private func withProxy(
        _ texts: [Text], _ body: (RunningProxy) async throws -> Void
    ) async throws {
        let all = try texts.map { try $0.loaded() }
        let rest = Mutex(all.dropFirst())
        var options = RunningProxy.Options()
        options.hasControl = false
        let level = DaemonLog.Level(.critical)
        let proxy = try await RunningProxy.start(
            all[0], options: options, log: quietLog(), level: level
        ) { () throws(ConfigurationError) in rest.withLock { $0.popFirst() } ?? all[0] }
        do {
            try await body(proxy)
        } catch {
            await proxy.stop(within: .zero)
            throw error
        }
        await proxy.stop(within: .zero)
    }

    /// The status of an answer: 403 is denied, 504 is not stored.
    private func status(_ proxy: RunningProxy, as user: String? = nil) async throws -> Int {
        let port = try #require(await proxy.url.split(separator: ":").last.flatMap { UInt16($0) })
        let credentials = user.map {
            "Proxy-Authorization: \(FileAuthenticatorTests.basic($0, "correct horse"))\r\n"
        }
        let answer = await TextOrigin.ask(
            port,
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n"
                + (credentials ?? "") + "\r\n")
        return try #require(answer.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    }

    @Test("wait with a password that is asked for only after a restart")
    func authentication() async throws {
        let closed = Text()
        // It asks and opens; so it stays; it asks alone; it opens alone.
        let texts = [closed, self.asking.open, self.asking.open, self.asking, closed.open]
        try await self.withProxy(texts) { proxy in
            let before = try await self.status(proxy)
            #expect(before == 403)
            for _ in 0..<2 {
                #expect(
                    try await proxy.reload().needingRestart
                        == ["listeners[0].authentication", "access"])
                #expect(try await self.status(proxy) == 403)
                #expect(await proxy.loaded.settings.access == [AccessRule(action: .deny)])
            }
            #expect(try await proxy.reload().needingRestart == ["listeners[0].authentication"])
            #expect(try await self.status(proxy) == 403)
            #expect(try await proxy.reload().needingRestart == [])
            #expect(try await self.status(proxy) == 504)
        }
    }

    @Test("wait with an address that is given up only after a restart")
    func address() async throws {
        let moved = Text(address: "127.0.0.2:0")
        try await self.withProxy([Text(), moved.open, moved, Text().open]) { proxy in
            let waiting = try await proxy.reload().needingRestart
            #expect(waiting == ["listeners[0].address", "access"])
            #expect(try await self.status(proxy) == 403)
            #expect(try await proxy.reload().needingRestart == ["listeners[0].address"])
            #expect(try await self.status(proxy) == 403)
            #expect(try await proxy.reload().needingRestart == [])
            #expect(try await self.status(proxy) == 504)
        }
    }

    private static let rules = "cache-rules: [ { ignore: [authorization] } ]\n"

    @Test("have cache rules with them, which share what one client alone is to have until then")
    func cacheRules() async throws {
        let session = "sessions: { ephemeral: { cache: { store-set-cookie: false } %@} }"
        let split = session.replacing("%@", with: ", principals: address ")
        let texts = [
            Text(), Text(rest: Self.rules + split),
            Text(rest: Self.rules + session.replacing("%@", with: "")),
        ]
        try await self.withProxy(texts) { proxy in
            #expect(
                try await proxy.reload().needingRestart == [
                    "cache-rules", "sessions.ephemeral.cache.store-set-cookie",
                    "sessions.ephemeral.principals",
                ])
            for isHeld in [true, false] {
                let loaded = await proxy.loaded
                #expect(loaded.cacheRules.isEmpty == isHeld)
                #expect(loaded.settings.cacheRules.isEmpty == isHeld)
                let session = try #require(loaded.settings.session(named: .ephemeral))
                #expect(session.cache.storesSetCookie == isHeld)
                if isHeld { #expect(try await proxy.reload().needingRestart == []) }
            }
        }
    }

    @Test("have other files of clients with them, and what changes in the same file counts")
    func clients() async throws {
        func write(_ user: String, to path: String) throws {
            let hash = try #require(CredentialFiles.passwords.split(separator: "\n").first)
            try self.files.write("\(hash.replacing("alice", with: user))\n", to: path)
        }
        let other = self.files.directory.appending(path: "other").path
        try write("guest", to: other)
        let asking = self.asking.with { $0.listener.replace(self.files.passwordPath, with: other) }
        let split = asking.with { $0.rest = "sessions: { ephemeral: { principals: user } }" }
        try await self.withProxy([self.asking, split, split, asking]) { proxy in
            for (known, unknown) in [("alice", "guest"), ("bob", "alice")] {
                try write(known, to: self.files.passwordPath)
                #expect(
                    try await proxy.reload().needingRestart == [
                        "listeners[0].authentication.password-file",
                        "sessions.ephemeral.principals",
                    ])
                #expect(try await self.status(proxy, as: known) == 403)
                #expect(try await self.status(proxy, as: unknown) == 407)
            }
            try FileManager.default.removeItem(atPath: self.files.passwordPath)
            #expect(try await proxy.reload().needingRestart == [])
            #expect(try await self.status(proxy, as: "guest") == 403)
            #expect(try await self.status(proxy, as: "bob") == 407)
        }
    }

    @Test("come into force at once where the listener asks already, or is to ask no more")
    func asked() async throws {
        let texts = [self.asking, self.asking.open, Text()]
        try await self.withProxy(texts) { proxy in
            let before = try await self.status(proxy, as: "alice")
            #expect(before == 403)
            #expect(try await proxy.reload().needingRestart == [])
            #expect(try await self.status(proxy, as: "alice") == 504)
            #expect(try await self.status(proxy) == 407)
            #expect(try await proxy.reload().needingRestart == ["listeners[0].authentication"])
            #expect(try await self.status(proxy, as: "alice") == 403)
        }
    }
}
