import Testing

@testable import LarderConfig

@Suite("Secrets that others could use")
struct SecretWarningTests {
    private static let injection = "injections: [{ hosts: [a], credential: c }]\n"
    private static let tcp = "listeners: [{ address: '127.0.0.1:3128' }]\n"

    @Test(
        "are warned of where clients need not say who they are",
        arguments: [
            (injection, "1:14: injections[0]: ", "the credentials"),
            (tcp + injection, "2:14: injections[0]: ", "the credentials"),
            (
                tcp + "sessions: { default: { credentials: { answer: true } } }\n",
                "2:47: sessions.default.credentials.answer: ", "the credentials"
            ),
            (
                tcp + "sessions: { default: { cookies: jar } }\n",
                "2:33: sessions.default.cookies.mode: ", "the cookies"
            ),
        ])
    func warned(_ text: String, _ place: String, _ what: String) throws {
        let loaded = try parse(text)
        #expect(
            loaded.warnings.map(\.description) == [
                "larder.yaml:" + place
                    + "whoever can connect to 127.0.0.1:3128, be it another user of this machine, "
                    + "uses \(what) of the session default; let it listen on unix:PATH (mode 0600), "
                    + "or give the listener an authentication.password-file or token-file"
            ])
    }

    @Test(
        "are not where there are none, or nobody else gets there",
        arguments: [
            "", tcp, "sessions: { default: { credentials: { answer: false } } }\n",
            "listeners: [{ address: 'unix:/s' }]\n" + injection,
            "listeners: [{ address: '127.0.0.1:1', authentication: { password-file: /u } }]\n"
                + injection,
            tcp + "access: [{ action: allow, clients: [unix] }]\n" + injection,
            tcp + "sessions: { s: {} }\ninjections: [{ sessions: s, hosts: [a], credential: c }]\n",
            "listeners: [{ address: 'unix:/s' }, { address: '127.0.0.1:1', session: ephemeral }]\n"
                + "sessions: { default: { cookies: jar } }\n",
            tcp + "sessions: { s: { cookies: jar } }\nroutes: [{ uids: [5], session: s }]\n",
            tcp + "sessions: { s: { cookies: jar } }\n"
                + "routes: [{ clients: [unix, 'user:a', 'uid:5'], session: s }]\n",
            "listeners: [{ address: '127.0.0.1:1', named-sessions: s, trusted-clients: unix }]\n"
                + "sessions: { s: { cookies: jar } }\n",
        ])
    func quiet(_ text: String) throws {
        let warnings = try parse(text).warnings.map(\.description)
        #expect(!warnings.contains { $0.contains("whoever can connect") })
    }

    private func parse(_ text: String) throws(ConfigurationError) -> LoadedSettings {
        try Configuration.parse(
            text, file: "larder.yaml", environment: ProcessEnvironment(["HOME": "/h"]))
    }
}

@Suite("Access rules that name no clients")
struct OpenRuleWarningTests {
    private func warnings(_ text: String) throws -> [String] {
        try Configuration.parse(
            text, file: "f", environment: ProcessEnvironment(["HOME": "/h"])
        ).warnings.map(\.description).filter { $0.contains("names no clients") }
    }

    @Test("are warned of where they let in other machines")
    func warned() throws {
        let found = try self.warnings(
            "listeners: [{ address: '*:3128' }, { address: '127.0.0.1:1' }]\n"
                + "access:\n- { action: deny, methods: PUT }\n- { action: allow, methods: GET }\n")
        #expect(
            found == [
                "f:4:3: access[1]: names no clients, which is everyone who can connect to *:3128, also "
                    + "from other machines; name some, or \"*\" where that is meant"
            ])
    }

    @Test(
        "are not where that is said, or nobody else gets there",
        arguments: [
            "listeners: [{ address: '127.0.0.1:3128' }]\naccess: [{ action: allow }]\n",
            "listeners: [{ address: 'unix:/s' }]\naccess: [{ action: allow }]\n",
            "listeners: [{ address: '*:1' }]\naccess: [{ action: allow, clients: '*' }]\n",
            "listeners: [{ address: '*:1' }]\naccess: [{ action: deny }]\n",
            "listeners: [{ address: '*:1', authentication: { password-file: /u } }]\n"
                + "access: [{ action: allow }]\n",
        ])
    func quiet(_ text: String) throws {
        #expect(try self.warnings(text).isEmpty)
    }
}
