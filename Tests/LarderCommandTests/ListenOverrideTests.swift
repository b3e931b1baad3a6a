import LarderConfig
import Testing

@testable import larder

@Suite("larder serve --listen")
struct ListenOverrideTests {
    private static func loaded(_ text: String) throws -> LoadedSettings {
        try Configuration.parse(text, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
    }

    private static let guarded = """
        listeners:
          - address: 127.0.0.1:3128
            session: offline
            cache-policy: return-cache-dont-load
            authentication: {password-file: /etc/users}
        sessions: {offline: {}, other: {}}
        routes:
          - {listeners: ["127.0.0.1:3128"], clients: ["user:a"], session: other}
        """

    @Test("takes what the configuration takes")
    func addresses() throws {
        #expect(try ListenOverride(["*:0"]).addresses == [.everywhere(port: 0)])
        let failure = #expect(throws: CommandFailure.self) { try ListenOverride(["nowhere"]) }
        #expect(failure?.status == .usage)
    }

    @Test("of one address moves a single listener, with its settings and its routes")
    func move() throws {
        var loaded = try Self.loaded(Self.guarded)
        var expected = loaded.settings
        let address = ListenAddress.ip(IPAddress(.v4, 0x7F00_0001), port: 9)
        expected.listeners[0].address = address
        expected.routes[0].listeners = [address]
        let override = try ListenOverride(["127.0.0.1:9"])
        #expect(override.objection(to: loaded.settings) == nil)
        override.apply(to: &loaded)
        #expect(loaded.settings == expected)
    }

    @Test("is refused where a listener with settings of its own would be lost, which is named")
    func lost() throws {
        let loaded = try Self.loaded(Self.guarded)
        let override = try ListenOverride(["127.0.0.1:9", "127.0.0.1:10"])
        let objection = override.objection(to: loaded.settings)
        #expect(objection?.status == .usage)
        #expect(objection?.causes.first?.contains("127.0.0.1:3128") == true)
        let two = try Self.loaded(
            """
            listeners:
              - address: 127.0.0.1:3128
              - {address: "unix:/run/x.sock", mode: "0666"}
            """)
        let one = try ListenOverride(["127.0.0.1:9"]).objection(to: two.settings)
        #expect(one?.causes.first?.contains("unix:/run/x.sock") == true)
    }

    @Test("keeps the settings of the listeners that it names, and gives others the defaults")
    func several() throws {
        var loaded = try Self.loaded(Self.guarded)
        let kept = loaded.settings.listeners[0]
        let override = try ListenOverride(["127.0.0.1:3128", "127.0.0.1:9"])
        #expect(override.objection(to: loaded.settings) == nil)
        override.apply(to: &loaded)
        #expect(
            loaded.settings.listeners == [
                kept, ListenerSettings(address: .ip(IPAddress(.v4, 0x7F00_0001), port: 9)),
            ])
    }

    @Test("warns of a listener that lets in nobody from where it listens")
    func closed() throws {
        var loaded = try Self.loaded("")
        try ListenOverride(["*:3128"]).apply(to: &loaded)
        #expect(loaded.warnings.map(\.file) == ["--listen"])
        var open = try Self.loaded("access: [{action: allow, clients: [10.0.0.0/8]}]")
        try ListenOverride(["*:3128"]).apply(to: &open)
        #expect(open.warnings.isEmpty)
    }

    @Test("takes back the warning of a listener that it moves to this machine, and no other")
    func opened() throws {
        var moved = try Self.loaded("listeners: [{address: '*:3128'}]")
        #expect(moved.warnings.count == 1)
        try ListenOverride(["127.0.0.1:9"]).apply(to: &moved)
        #expect(moved.warnings.isEmpty)
        var kept = try Self.loaded("listeners: [{address: '*:1'}, {address: '*:2'}]")
        try ListenOverride(["127.0.0.1:9", "*:2"]).apply(to: &kept)
        #expect(kept.warnings.count == 1)
        #expect(kept.warnings.first?.message.hasPrefix("listeners[1].address: ") == true)
    }

    @Test("has what is said of those who could use a session's secrets said of where it listens")
    func secrets() throws {
        let text = """
            listeners: [{address: "127.0.0.1:3128"}]
            sessions: {default: {cookies: jar}}
            """
        var guarded = try Self.loaded(text)
        #expect(guarded.warnings.map(\.line) == [2])
        try ListenOverride(["unix:/run/x.sock"]).apply(to: &guarded)
        #expect(guarded.warnings.isEmpty)
        var moved = try Self.loaded(text)
        try ListenOverride(["127.0.0.1:9"]).apply(to: &moved)
        #expect(moved.warnings.map { $0.message.contains("connect to 127.0.0.1:9,") } == [true])
        #expect(moved.warnings.map(\.line) == [2])
    }

    @Test(
        "has rules that fit nobody told by where it listens",
        arguments: [
            ("access: [{clients: 'uid:5', action: allow}]", 2, "access[0].clients"),
            ("routes: [{uids: 5, session: default}]", 2, "routes[0].uids"),
            ("routes: [{listeners: LISTENER, uids: 5, session: default}]", 2, "routes[0].uids"),
            ("routes: [{clients: 'uid:5', session: default}]", 2, "routes[0].clients"),
        ])
    func claims(_ rule: String, _ line: Int, _ path: String) throws {
        func told(_ listener: String, moved: String) throws -> [[String]] {
            var loaded = try Self.loaded(
                "listeners: [{address: '\(listener)'}]\n"
                    + rule.replacing("LISTENER", with: "'\(listener)'"))
            func messages() -> [String] { loaded.warnings.map { "\($0.line) \($0.message)" } }
            let before = messages()
            try ListenOverride([moved]).apply(to: &loaded)
            return [before, messages()]
        }
        let warning =
            "\(line) \(path): speaks of users of this machine, and no listener in question is a Unix "
            + "socket; it fits nobody"
        #expect(try told("127.0.0.1:3128", moved: "unix:/run/x.sock") == [[warning], []])
        #expect(try told("unix:/run/x.sock", moved: "127.0.0.1:3128") == [[], [warning]])
    }

    @Test("has rules for users told where it asks nobody")
    func users() throws {
        let listeners = "listeners: [{address: '127.0.0.1:1', authentication: {token-file: /t}}]\n"
        var loaded = try Self.loaded(
            listeners + "access: [{clients: 'user:a', action: allow}]")
        #expect(loaded.warnings.isEmpty)
        try ListenOverride(["127.0.0.1:9"]).apply(to: &loaded)
        #expect(loaded.warnings.isEmpty)
        // The listener that asks is kept, and others come.
        try ListenOverride(["127.0.0.1:9", "127.0.0.1:10"]).apply(to: &loaded)
        #expect(loaded.warnings.isEmpty)
        var plain = try Self.loaded("access: [{clients: 'user:a', action: allow}]")
        try ListenOverride(["127.0.0.1:9"]).apply(to: &plain)
        #expect(plain.warnings.map(\.line) == [1])
    }

    @Test("has unix-peers told where it moves them off a Unix socket, and not where onto one")
    func unixPeers() throws {
        func loaded(_ address: String) throws -> LoadedSettings {
            try Self.loaded(
                "listeners:\n  - address: '\(address)'\n"
                    + "    authentication: {token-file: /t, unix-peers: true}\n")
        }
        var off = try loaded("unix:/run/x.sock")
        #expect(off.warnings.isEmpty)
        try ListenOverride(["127.0.0.1:9"]).apply(to: &off)
        #expect(off.warnings.map(\.line) == [3])
        let path = "listeners[0].authentication.unix-peers: "
        #expect(off.warnings.first?.message.hasPrefix(path) == true)
        var onto = try loaded("127.0.0.1:9")
        #expect(onto.warnings.map(\.line) == [3])
        try ListenOverride(["unix:/run/x.sock"]).apply(to: &onto)
        #expect(onto.warnings.isEmpty)
    }

    @Test("that is not given changes nothing")
    func none() throws {
        var loaded = try Self.loaded(Self.guarded)
        let before = loaded
        let override = try ListenOverride([])
        #expect(override.objection(to: loaded.settings) == nil)
        override.apply(to: &loaded)
        #expect(loaded == before)
    }
}
