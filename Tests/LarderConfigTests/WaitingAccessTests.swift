import Testing

@testable import LarderConfig

@Suite("Access rules of a newer file")
struct WaitingAccessTests {
    private static let old = """
        listeners:
          - { address: 127.0.0.1:1 }
          - { address: 127.0.0.1:2, authentication: { password-file: /p } }
          - { address: unix:/s, mode: "0660" }
        access: [ { action: allow, clients: 10.0.0.0/8 } ]

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
    }

    @Test(
        "wait for a restart together with a listener that it closes further",
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
            Case(change: ("- { address: 127.0.0.1:1 }", "- { address: 127.0.0.1:1, session: x }")),
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
        let sessions = "sessions: { x: {} }\n"
        let text = sessions + Self.old.replacing(c.change.0, with: c.change.1)
        let rules: [(String, [String])] = [
            ("", []), ("access: [ { action: allow } ]\n", ["access"]),
            ("connect-ports: [ 1-65535 ]\n", ["connect-ports"]),
            (
                "access: [ { action: allow } ]\nconnect-ports: [ 1-65535 ]\n",
                ["access", "connect-ports"]
            ),
        ]
        for (other, changed) in rules {
            let kept = other.contains("access") ? text.replacing(Self.access, with: "") : text
            let new = try self.parse(kept + other)
            let expected = c.closed.isEmpty ? [] : changed
            #expect(
                old.settings.listenersClosed(by: new.settings).map(\.settingText) == c.closed)
            #expect(old.settings.accessWaiting(for: new.settings) == expected)
            let waiting = SettingsTable.needingRestart(from: old.settings, to: new.settings)
            #expect(waiting.filter { ["access", "connect-ports"].contains($0) } == expected)
            #expect((old.waitingAccessWarning(for: new) == nil) == expected.isEmpty)
        }
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
            """)
        let warning = try self.parse(Self.old).waitingAccessWarning(for: new)
        #expect(
            warning?.description
                == "/larder.yaml: access: the old rules hold until a restart, which alone closes "
                + "127.0.0.1:1, unix:/s as this file has it; the new ones could open that to "
                + "others until then; restart, or reload without the change of listeners")
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
