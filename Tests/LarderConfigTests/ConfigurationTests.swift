import Testing

@testable import LarderConfig

private let user = ProcessEnvironment(["HOME": "/srv/u"])

private func parse(_ text: String) throws(ConfigurationError) -> LoadedSettings {
    try Configuration.parse(text, file: "larder.yaml", environment: user)
}

/// A file and all that is wrong with it, as it is told.
struct ProblemCase: Sendable {
    var text: String
    var messages: [String]

    init(_ text: String, _ messages: String...) {
        self.text = text
        self.messages = messages.map { "larder.yaml:\($0)" }
    }
}

@Suite("The configuration file")
struct ConfigurationTests {
    @Test(
        "Nothing in it leaves the defaults", arguments: ["", "# only prose\n", "---\n", "cache:\n"])
    func empty(_ text: String) throws {
        guard text != "cache:\n" else {
            #expect(throws: ConfigurationError.self) { try parse(text) }
            return
        }
        let loaded = try parse(text)
        #expect(loaded.settings == Settings())
        #expect(loaded.origins.isEmpty)
    }

    @Test("The shape that the documents show")
    func shape() throws {
        let loaded = try parse(
            """
            listeners:
              - address: 127.0.0.1:3128
                session: default
              - address: "*:8080"
                session: private
            sessions:
              default: { kind: default, cache: { memory: 1 MiB, disk: 2 GiB } }
              private: { kind: ephemeral }
            access:
              - { action: deny, destinations: [.example.com, "*:25"] }
              - { action: allow, clients: 10.0.0.0/8 }
            limits: { request-body: unlimited, connections: 7, connections-per-client: 3 }
            log:
              access: { format: json, to: /var/log/l }
            workers: 2
            """)
        let settings = loaded.settings
        #expect(settings.listeners.map(\.address.settingText) == ["127.0.0.1:3128", "*:8080"])
        #expect(settings.listeners.map(\.session.text) == ["default", "private"])
        #expect(settings.sessions.map(\.name.text) == ["default", "ephemeral", "private"])
        #expect(settings.sessions[0].cache.memory == .mebibytes(1))
        #expect(settings.sessions[0].cache.disk == .gibibytes(2))
        #expect(settings.sessions[2].kind == .ephemeral)
        #expect(settings.access.map(\.action) == [.deny, .allow])
        #expect(settings.access[0].destinations.count == 2)
        #expect(settings.access[1].clients.map(\.settingText) == ["10.0.0.0/8"])
        #expect(settings.limits.connections == 7)
        #expect(settings.limits.connectionsPerClient == 3)
        #expect(settings.log.accessFormat == .json)
        #expect(settings.log.accessDestination == .file(FilePath("/var/log/l")))
        #expect(settings.eventLoops == 2)
        #expect(loaded.origins["sessions.default.cache.disk"] == .file(line: 7))
        #expect(loaded.origins["workers"] == .file(line: 15))
        #expect(loaded.cacheDirectory(of: settings.sessions[0]) == "/srv/u/.cache/larder/default")
        #expect(loaded.cacheDirectory(of: settings.sessions[2]) == nil)
    }

    static let problems: [ProblemCase] = [
        ProblemCase(
            "sessions:\n  default:\n    cache: { memroy: 1 MiB }\n",
            "3:14: sessions.default.cache.memroy: there is no such setting; did you mean \"memory\"?"
        ),
        ProblemCase(
            "sessions: { default: { memory: 1 MiB } }\n",
            "1:24: sessions.default.memory: there is no such setting; did you mean "
                + "\"sessions.default.cache.memory\"?"),
        ProblemCase(
            "frobnicate: 1\n",
            "1:1: frobnicate: there is no such setting; \"larder config settings\" lists all"),
        ProblemCase(
            "listeners: []\n",
            "1:12: listeners: there is none; leave it out for the default, or name one, such as "
                + "\"- address: 127.0.0.1:3128\""),
        ProblemCase(
            "control: { socket: /\(String(repeating: "x", count: 107)) }\n",
            "1:20: control.socket: \"/\(String(repeating: "x", count: 107))\" is too long for a "
                + "socket; expected an absolute path of at most 107 bytes"),
        ProblemCase(
            "control-socket: /run/x\n",
            "1:1: control-socket: there is no such setting; did you mean \"control.socket\"?"),
        ProblemCase(
            "listener: []\n",
            "1:1: listener: there is no such setting; did you mean \"listeners\"?"),
        ProblemCase(
            "workers: 0\n", "1:10: workers: 0 is out of range; allowed: 1 to 256"),
        ProblemCase(
            "workers: many\n", "1:10: workers: \"many\" is not a whole number"),
        ProblemCase(
            "limits:\n  head: 64\n",
            "2:9: limits.head: \"64\" has no unit: write \"64 MiB\", for example; expected a size "
                + "such as 512 B, 64 KiB, 1.5 MiB or 10 GiB"),
        ProblemCase(
            "limits:\n  head: 9 GiB\n",
            "2:9: limits.head: 9 GiB is out of range; allowed: 1 KiB to 8 MiB"),
        ProblemCase(
            "timeouts: { head: 30 }\nforwarded: perhaps\n",
            "1:19: timeouts.head: \"30\" has no unit: write \"30 s\", for example; expected a time "
                + "such as 1500 ms, 30 s, 5 min, 2 h or 1 d",
            "2:12: forwarded: \"perhaps\" is not true or false"),
        ProblemCase(
            "log: { level: warn, access: { format: sqiud } }\n",
            "1:15: log.level: \"warn\" is not trace, debug, info, "
                + "notice, warning, error or critical",
            "1:39: log.access.format: \"sqiud\" is unknown (did you mean \"squid\"?); expected squid, "
                + "combined or json"),
        ProblemCase(
            "workers: 1\nname: a\nworkers: 2\n",
            "3:1: \"workers\" is given more than once in one place; keep one of them"),
        ProblemCase(
            "name: a\nlimits:\n  head: 1 KiB\n  # head: 2 KiB\n\n  'head' : 3 KiB\n",
            "6:3: \"head\" is given more than once in one place; keep one of them"),
        ProblemCase(
            "access:\n  - action: deny\n  - action: allow\n    action: deny\n",
            "4:5: \"action\" is given more than once in one place; keep one of them"),
        ProblemCase(
            "limits: { head: 1 KiB, head: 2 KiB }\n",
            "1:11: \"head\" is given more than once in one place; keep one of them"),
        ProblemCase(
            "name: a\nworkers: \u{0}\n",
            "2:10: not YAML: control characters are not allowed"),
        ProblemCase(
            "listeners:\n  - address: 3128\n",
            "2:14: listeners[0].address: \"3128\" has no address: write \"127.0.0.1:3128\", or "
                + "\"*:3128\" for other machines; expected an address such as 127.0.0.1:3128, "
                + "[::1]:3128, *:3128 or unix:/run/larder/proxy.sock"),
        ProblemCase(
            "listeners:\n  - address: 127.0.0.1:3128\n  - address: \"*:3128\"\n",
            "3:5: listeners[1].address: *:3128 and 127.0.0.1:3128 of listeners[0] are one place in "
                + "part; give one of them another port"),
        ProblemCase(
            "listeners:\n  - address: 127.0.0.1:3128\n    session: privat\nsessions: { private: }\n",
            "3:14: listeners[0].session: there is no session \"privat\"; did you mean \"private\"?"),
        ProblemCase(
            "listeners:\n  - session: default\n  - address: 127.0.0.1:3128\n  - address: 127.0.0.1:3128\n",
            "2:5: listeners[0]: needs an address, such as 127.0.0.1:3128",
            "3:5: listeners[1].address: 127.0.0.1:3128 is given to another listener already",
            "4:5: listeners[2].address: 127.0.0.1:3128 is given to another listener already"),
        ProblemCase(
            "listeners: 127.0.0.1:3128\nsessions: [a]\naccess:\n  - allow\n",
            "1:12: listeners: takes a list, each item beginning with \"- \"",
            "2:11: sessions: takes settings of its own, such as \"name: value\"",
            "4:5: access[0]: takes settings of its own, such as \"name: value\""),
        ProblemCase(
            "access:\n  - { clients: [10.0.0.1/8, \"::1\", nobody] }\n",
            "2:5: access[0]: needs an action, allow or deny",
            "2:17: access[0].clients: \"10.0.0.1/8\" has bits set beyond its prefix; expected an "
                + "address, a block such as 192.168.0.0/16, unix, user:NAME, user:*, uid:NUMBER, or *",
            "2:36: access[0].clients: \"nobody\" is not an address, a block such as 192.168.0.0/16, "
                + "unix, user:NAME, user:*, uid:NUMBER, or *"),
        ProblemCase(
            "sessions:\n  Web: {}\n  p: { kind: ephemeral, cache: { disk: 1 GiB } }\n",
            "2:3: sessions: \"Web\" is no name of a session; expected up to 64 lower-case letters, "
                + "digits, - and _, beginning with a letter or digit",
            "3:3: sessions.p.cache.disk: an ephemeral session keeps nothing on disk; remove this or "
                + "its kind"),
        ProblemCase(
            "sessions:\n  p: { kind: background, cache: { disk: 0 } }\n",
            "2:41: sessions.p.cache.disk: 0 keeps nothing on disk, and nothing of a background session "
                + "would outlive the process; give it a size, or the session kind: default"),
        ProblemCase(
            "sessions:\n  p: { kind: backgroud }\n",
            "2:14: sessions.p.kind: \"backgroud\" is unknown (did you mean \"background\"?); expected "
                + "default, ephemeral or background"),
        ProblemCase(
            "sessions:\n  a: { kind: background, cache: { directory: /c } }\n"
                + "  b: { cache: { directory: /c } }\n",
            "3:3: sessions.b.cache.directory: /c is the cache of session \"a\" already"),
        ProblemCase(
            "sessions:\n  a: { cache: { directory: /c } }\n  b: { cache: { directory: /c } }\n",
            "3:3: sessions.b.cache.directory: /c is the cache of session \"a\" already"),
        ProblemCase(
            "workers:\nname: [a, b]\nconnect-ports: { a: b }\n", "1:1: workers: has no value",
            "2:7: name: takes one value", "3:16: connect-ports: takes a list of values"),
        ProblemCase(
            "limits: 3\n", "1:9: limits: takes settings of its own, such as \"name: value\""),
        ProblemCase("- a\n", "1:1: the file must hold settings, such as \"listeners:\""),
        ProblemCase("a: [b\n", "2:1: not YAML: did not find expected ',' or ']'"),
        ProblemCase("a: *b\n", "1:4: not YAML: found undefined alias"),
        ProblemCase("a: 1\n---\nb: 2\n", "2:1: not YAML: but found another document"),
    ]

    @Test("Tells all that is wrong, and where", arguments: Self.problems)
    func problem(_ c: ProblemCase) {
        do throws(ConfigurationError) {
            _ = try parse(c.text)
            Issue.record("accepted: \(c.text)")
        } catch {
            #expect(error.problems.map(\.description) == c.messages)
        }
    }

    @Test("Every setting says its default in a form that it takes")
    func defaultsAreAccepted() {
        var standard = Settings()
        for setting in SettingsTable.general {
            #expect(setting.accept(setting.show(standard), &standard).isEmpty, "\(setting.path)")
        }
        #expect(standard == Settings())
        var session = SessionSettings(name: .default)
        for setting in SettingsTable.session {
            #expect(setting.accept(setting.show(session), &session).isEmpty, "\(setting.path)")
        }
        #expect(session == SessionSettings(name: .default))
        var rule = CacheRuleSettings()
        for setting in SettingsTable.cacheRule {
            #expect(setting.accept(setting.show(rule), &rule).isEmpty, "\(setting.path)")
        }
        #expect(rule == CacheRuleSettings())
    }

    @Test(
        "Deep nesting and other junk are refused, not trapped on",
        arguments: [
            String(repeating: "[", count: 200_000), String(repeating: "{a: ", count: 100_000),
            String(repeating: "- ", count: 100_000), "\u{0}", "? [a]\n: b\n", "%YAML 9.9\n---\n",
            "!!x y",
            "&a [*a]", String(repeating: "x", count: Configuration.largestFile + 1),
        ])
    func junk(_ text: String) {
        #expect(throws: ConfigurationError.self) { try parse(text) }
    }

    @Test("A reload knows what needs a restart")
    func restart() throws {
        let old = try parse("workers: 2\nlog: { level: info }\n").settings
        let new = try parse(
            """
            workers: 3
            log: { level: debug }
            limits: { connections-per-client: 9 }
            listeners: [ { address: 127.0.0.1:1 } ]
            sessions: { default: { cache: { disk: 1 GiB, finish-fetch: 0 } }, x: { } }
            """
        ).settings
        #expect(
            SettingsTable.needingRestart(from: old, to: new) == [
                "listeners[0].address", "sessions.default.cache.disk",
                "sessions.default.cache.finish-fetch", "sessions.x", "workers",
            ])
        #expect(SettingsTable.needingRestart(from: new, to: new).isEmpty)
    }
}
