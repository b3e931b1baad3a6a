import Testing

@testable import LarderConfig

@Suite("Access rules of a newer file")
struct WaitingAccessTests {
    private static let old = """
        listeners:
          - { address: 127.0.0.1:1 }
          - { address: 127.0.0.1:2, authentication: { password-file: /p } }
          - { address: unix:/s, mode: "0660", trusted-clients: [unix], named-sessions: [x] }
        access: [ { action: allow, clients: 10.0.0.0/8 } ]
        sessions:
          default: { cookies: { mode: jar }, cache: { shared: false } }
          x: {}
          idle: {}

        """

    private func parse(_ text: String) throws(ConfigurationError) -> LoadedSettings {
        try Configuration.parse(
            text, file: "/larder.yaml", environment: ProcessEnvironment(["HOME": "/h"]))
    }

    struct Case: Sendable {
        /// What the newer file has in the place of something.
        var change: (String, String)
        /// The listeners that it closes.
        var closed: [String] = []
        /// The sessions that it closes.
        var sessions: [String] = []
    }

    @Test(
        "wait for a restart together with a listener or session that it closes further",
        arguments: [
            Case(
                change: ("1 }", "1, authentication: { password-file: /p } }"),
                closed: ["127.0.0.1:1"]),
            Case(
                change: ("1 }", "1, authentication: { token-file: /p } }"), closed: ["127.0.0.1:1"]),
            Case(change: ("127.0.0.1:1", "127.0.0.2:1"), closed: ["127.0.0.1:1"]),
            Case(change: ("- { address: 127.0.0.1:1 }\n", "\n"), closed: ["127.0.0.1:1"]),
            Case(change: ("unix:/s", "unix:/t"), closed: ["unix:/s"]),
            Case(change: ("0660", "0606"), closed: ["unix:/s"]),
            Case(
                change: (
                    "\"0660\"", "\"0660\", authentication: { token-file: /t, unix-peers: true }"
                ),
                closed: ["unix:/s"]),
            // Who comes through a Unix socket is let in as before.
            Case(change: ("\"0660\"", "\"0660\", authentication: { token-file: /t }")),
            Case(change: ("0660", "0666")),
            Case(change: (", authentication: { password-file: /p }", "")),
            Case(change: ("password-file: /p", "token-file: /t")),
            // Who comes for the other session would use this one until then.
            Case(change: ("1 }", "1, session: x }"), closed: ["127.0.0.1:1"]),
            Case(
                change: ("1 }", "1, cache-policy: return-cache-dont-load }"),
                closed: ["127.0.0.1:1"]),
            Case(change: ("1 }", "1, cache-policy: reload-revalidating }")),
            Case(change: ("[unix]", "[]"), closed: ["unix:/s"]),
            Case(change: ("[unix]", "[127.0.0.1]"), closed: ["unix:/s"]),
            Case(change: ("[unix]", "[127.0.0.1, unix]")),
            Case(change: ("[x]", "[idle]"), closed: ["unix:/s"]),
            Case(change: ("[x]", "[idle, x]")),
            Case(change: ("1 }", "1, trusted-clients: [127.0.0.1] }")),
            Case(change: ("default: {", "default: { principals: address,"), sessions: ["default"]),
            Case(change: ("x: {}", "x: { principals: uid }"), sessions: ["x"]),
            Case(change: ("idle: {}", "idle: { principals: uid }")),
            Case(change: ("mode: jar", "mode: pass"), sessions: ["default"]),
            Case(change: ("x: {}", "x: { cookies: { mode: jar } }")),
            Case(change: ("shared: false", "shared: true"), sessions: ["default"]),
            Case(
                change: ("shared: false", "shared: false, directory: /c"), sessions: ["default"]),
            // Until then its rules are those of one client's cache, and it is one for all.
            Case(change: ("x: {}", "x: { cache: { shared: false } }"), sessions: ["x"]),
            Case(change: ("x: {}", "x: { cache: { directory: /c } }")),
            Case(change: ("default: {", "default: { kind: ephemeral,"), sessions: ["default"]),
            Case(change: ("x: {}", "x: { state-directory: /t }"), sessions: ["x"]),
            Case(change: ("x: {}", "x: { kind: background }")),
            Case(
                change: ("x: {}", "x: { kind: background, state-directory: /t }"),
                sessions: ["x"]),
            // The same listeners and one more, in another order.
            Case(
                change: (
                    "- { address: 127.0.0.1:1 }\n",
                    "- { address: 127.0.0.1:3 }\n  - { address: 127.0.0.1:1 }\n"
                )),
            Case(change: ("access:", "access:")),
        ])
    func waiting(_ c: Case) throws {
        let old = try self.parse(Self.old)
        let text = Self.old.replacing(c.change.0, with: c.change.1)
        let rules: [(String, [String])] = [
            ("", []), ("access: [ { action: allow } ]\n", ["access"]),
            ("connect-ports: [ 1-65535 ]\n", ["connect-ports"]),
            (
                "access: [ { action: allow } ]\nconnect-ports: [ 1-65535 ]\n",
                ["access", "connect-ports"]
            ),
            ("routes: [ { clients: 10.1.0.0/16, session: x } ]\n", ["routes"]),
            ("injections: [ { hosts: [a], credential: c } ]\n", ["injections"]),
            ("cache-rules: [ { ignore: [authorization] } ]\n", ["cache-rules"]),
        ]
        for (other, changed) in rules {
            let kept = other.contains("access") ? text.replacing(Self.access, with: "") : text
            let new = try self.parse(kept + other)
            let expected = c.closed.isEmpty && c.sessions.isEmpty ? [] : changed
            #expect(
                old.settings.listenersClosed(by: new.settings).map(\.settingText) == c.closed)
            #expect(old.settings.sessionsClosed(by: new.settings).map(\.text) == c.sessions)
            #expect(old.settings.accessWaiting(for: new.settings) == expected)
            let waiting = SettingsTable.needingRestart(from: old.settings, to: new.settings)
            #expect(waiting.filter { Self.rules.contains($0) } == expected)
            #expect((old.waitingAccessWarning(for: new) == nil) == expected.isEmpty)
        }
    }

    private static let rules = ["access", "connect-ports", "routes", "injections", "cache-rules"]

    @Test(
        "have with them what hands on others' cookies, and other files of clients",
        arguments: [
            (
                "x: {}", "x: { cache: { store-set-cookie: false } }",
                "sessions.x.cache.store-set-cookie"
            ),
            (
                "mode: jar", "mode: jar, show-set-cookie: true",
                "sessions.default.cookies.show-set-cookie"
            ),
            ("password-file: /p", "password-file: /q", "listeners[1].authentication.password-file"),
            (
                "password-file: /p", "password-file: /p, token-file: /t",
                "listeners[1].authentication.token-file"
            ),
        ])
    func companions(_ old: String, _ new: String, _ path: String) throws {
        let before = try self.parse(Self.old).settings
        let text = Self.old.replacing(old, with: new)
        let changed = try self.parse(text).settings
        #expect(before.accessWaiting(for: changed) == [])
        #expect(SettingsTable.needingRestart(from: before, to: changed) == [])
        let closing = try self.parse(text.replacing("1 }", with: "1, session: x }")).settings
        #expect(before.accessWaiting(for: closing) == [path])
        for (session, newer) in zip(before.sessions, changed.sessions) {
            #expect(session.followingLive(newer).keepingAccess(of: session) == session)
        }
        for (listener, newer) in zip(before.listeners, changed.listeners) {
            let kept = newer.authentication.keepingFiles(of: listener.authentication)
            #expect(kept == listener.authentication)
            #expect(
                listener.authentication.hasFiles(of: newer.authentication)
                    == (listener.authentication == newer.authentication))
        }
    }

    @Test("have presets with them, also where it is their files that changed")
    func presets() throws {
        var old = try self.parse(Self.old + "cache-rules: [ { minimum: 1 d } ]\n")
        var rule = CacheRuleSettings()
        old.cacheRules.append(LocatedRule(rule: rule, name: "p[0]", file: "/p.yaml", line: 2))
        var new = old
        new.cacheRules[1].line = 3
        #expect(!old.hasOtherPresets(than: new))
        rule.ignore = [.authorization]
        new.cacheRules[1].rule = rule
        #expect(old.hasOtherPresets(than: new))
        #expect(old.waitingAccessWarning(for: new) == nil)
        new.settings.listeners[0].cachePolicy = .returnCacheDontLoad
        #expect(old.waitingAccessWarning(for: new)?.message.hasPrefix("presets: the old") == true)
        #expect(
            SettingsTable.needingRestart(
                from: old.settings, to: new.settings, otherPresets: true
            ).contains("presets"))
        old.cacheRules = new.cacheRules
        #expect(old.waitingAccessWarning(for: new) == nil)
    }
    private static let access = "access: [ { action: allow, clients: 10.0.0.0/8 } ]\n"

    @Test("wait with a warning that says why, and what to do")
    func warning() throws {
        let new = try self.parse(
            """
            listeners:
              - { address: 127.0.0.1:1, authentication: { password-file: /p } }
              - { address: 127.0.0.1:2, authentication: { password-file: /p } }
            access: [ { action: allow } ]
            sessions: { guests: {}, default: { cookies: { mode: jar } } }
            """)
        let old = try self.parse(Self.old)
        #expect(
            old.waitingAccessWarning(for: new)?.description
                == "/larder.yaml: access: the old rules hold until a restart, which alone closes "
                + "127.0.0.1:1, unix:/s, session default as this file has it; the new ones could "
                + "let others in until then; restart, or reload without that change")
        let guests = try #require(new.settings.sessions.last { $0.name.text == "guests" }?.name)
        #expect(
            new.waitingAccessWarning(for: old, unopened: [guests, guests])?.description
                == "/larder.yaml: access: the old rules hold until a restart, which alone closes "
                + "session default as this file has it and opens session guests; the new ones could "
                + "let others in until then; restart, or reload without that change")
    }

    @Test("wait for a session that routes lead to and that is not open, and they alone")
    func unopened() throws {
        let text = """
            access: [ { action: allow, clients: 10.1.0.0/16 } ]
            routes: [ { clients: 10.1.0.0/16, session: guests } ]
            sessions: { guests: {} }
            """
        let old = try self.parse("sessions: { guests: {} }\n").settings
        let new = try self.parse(text).settings
        let guests = new.routes.map(\.session)
        #expect(old.accessWaiting(for: new) == [])
        #expect(old.accessWaiting(for: new, unopened: guests) == ["access", "routes"])
        #expect(
            SettingsTable.needingRestart(from: old, to: new, unopened: guests)
                == ["access", "routes"])
        #expect(new.accessWaiting(for: new, unopened: guests) == [])
    }

    @Test("have the session's own credentials with them, and the places of injections")
    func credentials() throws {
        let old = try self.parse(
            """
            injections: [ { hosts: [a], credential: a } ]
            sessions: { default: { credentials: { answer: false } } }
            cache-rules: [ { minimum: 1 d } ]
            """)
        let new = try self.parse(
            """
            listeners: [ { address: 127.0.0.1:3128, authentication: { token-file: /t } } ]
            sessions: { default: { http2: false } }
            injections: [ { hosts: [a], credential: a } ]

            cache-rules: [ { minimum: 1 d } ]
            """)
        #expect(
            old.settings.accessWaiting(for: new.settings) == [
                "sessions.default.credentials.answer"
            ])
        for (holds, line, other) in [(true, 1, 3), (false, 3, 5)] {
            var followed = old
            followed.followOrigins(of: new, holdsRules: holds)
            #expect(followed.origins["injections[0].credential"] == .file(line: line))
            #expect(followed.origins["cache-rules[0].minimum"] == .file(line: other))
            #expect(followed.origins["sessions.default.http2"] == .file(line: 2))
            #expect(followed.origins["sessions.default.credentials.answer"] == nil)
        }
    }

    @Test("are told apart for listeners that all take a free port")
    func freePorts() throws {
        let text = """
            listeners:
              - { address: 127.0.0.1:0 }
              - { address: 127.0.0.1:0, authentication: { password-file: /p } }

            """
        let old = try self.parse(text)
        let new = try self.parse(text + Self.access)
        #expect(old.settings.listenersClosed(by: new.settings).isEmpty)
        let asking = try self.parse(
            text.replacing(":0 }", with: ":0, authentication: { password-file: /p } }"))
        #expect(old.settings.listenersClosed(by: asking.settings).count == 1)
    }
}
