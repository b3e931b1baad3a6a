import ArgumentParser
import LarderConfig
import LarderControl
import Testing

@testable import larder

@Suite("larder credentials")
struct CredentialCommandTests {
    private static func checked(_ arguments: [String]) throws -> CredentialRecord {
        try CredentialsAdd.parse(arguments).checked().0
    }

    private static let space = SpaceRecord(
        host: "h.example", port: 8443, scheme: "https", realm: "r", method: "digest")

    @Test(
        "add takes a name and a kind, or a protection space",
        arguments: [
            (
                ["x", "--user", "alice"],
                CredentialRecord(
                    name: .named("x"), kind: "password", user: "alice", persistence: "permanent")
            ),
            (
                ["x", "--kind", "bearer", "--persistence", "for-session"],
                CredentialRecord(name: .named("x"), kind: "bearer", persistence: "for-session")
            ),
            (
                ["x", "--field", "X-Key"],
                CredentialRecord(
                    name: .named("x"), kind: "field", field: "X-Key", persistence: "permanent")
            ),
            (
                [
                    "--host", "H.example", "--port", "8443", "--realm", "r", "--method", "digest",
                    "--user", "alice", "--default",
                ],
                CredentialRecord(
                    name: .space(Self.space, user: "alice"), kind: "password", user: "alice",
                    persistence: "permanent", isDefault: true)
            ),
            (
                ["--host", "h", "--realm", "", "--user", "a"],
                CredentialRecord(
                    name: .space(
                        SpaceRecord(
                            host: "h", port: 443, scheme: "https", realm: "", method: "default"),
                        user: "a"), kind: "password", user: "a", persistence: "permanent")
            ),
            (
                ["--host", "h", "--method", "NTLM", "--user", "a"],
                CredentialRecord(
                    name: .space(
                        SpaceRecord(
                            host: "h", port: 443, scheme: "https", realm: nil, method: "ntlm"),
                        user: "a"), kind: "password", user: "a", persistence: "permanent")
            ),
        ])
    func add(_ arguments: [String], _ expected: CredentialRecord) throws {
        #expect(try Self.checked(arguments) == expected)
    }

    @Test(
        "add refuses what does not go together before it asks for a secret",
        arguments: [
            [], ["x"], ["x", "--kind", "magic"], ["x", "--kind", "field"],
            ["x", "--kind", "bearer", "--user", "a"], ["x", "--user", "a", "--host", "h"],
            ["--host", "h"], ["--host", "h", "--user", "a", "--kind", "bearer"],
            ["--realm", "r", "--user", "a"], ["--host", "h", "--user", "a", "--scheme", "gopher"],
            ["x", "--user", "a", "--persistence", "none"], ["--host", "h", "--user", "a"],
            ["--host", "h", "--user", "a", "--method", "basic"],
            ["--host", "h", "--user", "a", "--method", "digest"],
            ["--host", "h", "--user", "a", "--realm", "r", "--method", "negotiate"],
            ["--host", "h", "--user", "a", "--realm", "r", "--method", "server-trust"],
            ["x", "--user", "a", "--secret-from", "f", "--secret-command", "c"],
        ])
    func refuse(_ arguments: [String]) throws {
        do {
            _ = try Self.checked(arguments)
            Issue.record("no failure")
        } catch let failure as CommandFailure {
            #expect(failure.status == .usage && failure.remedy != nil)
        }
    }

    @Test(
        "A secret on the command line is refused, and never repeated",
        arguments: [
            ["x", "--user", "a", "--password", "hunter2"],
            ["x", "--user", "a", "--secret=hunter2"], ["x", "--token", "hunter2"],
            ["x", "--value", "hunter2"], ["x", "hunter2"], ["x", "--user", "a:hunter2"],
            ["--host", "h", "--user", "a", "x", "hunter2"], ["x", "--api-key", "hunter2"],
        ])
    func exposed(_ arguments: [String]) throws {
        do {
            _ = try Self.checked(arguments)
            Issue.record("no failure")
        } catch let failure as CommandFailure {
            #expect(failure == CommandFailure.exposedSecret)
            #expect(!failure.lines.joined().contains("hunter2"))
        }
    }

    @Test(
        "A cookie's value on the command line likewise",
        arguments: [["n", "hunter2"], ["n", "--value", "hunter2"]])
    func exposedValue(_ arguments: [String]) async throws {
        let command = try CookiesSet.parse(arguments + ["--domain", "h"])
        await #expect(throws: CommandFailure.exposedSecret) { try await command.run() }
    }

    @Test(
        "A trial tells what came of it, by its status, too",
        arguments: [
            (
                CredentialTrial(verdict: .accepted, status: 200, scheme: "digest"),
                "accepted: 200, sent as digest", larder.ExitStatus.done
            ),
            (CredentialTrial(verdict: .refused, status: 401), "refused: 401", .notPermitted),
            (CredentialTrial(verdict: .unasked, status: 200), "not asked for: 200", .nothingFound),
            (CredentialTrial(verdict: .unanswered), "not shown", .notPermitted),
            (
                CredentialTrial(verdict: .failed, detail: "connection\nrefused"),
                "no answer: connection\\u{a}refused", .unavailable
            ),
        ])
    func trial(_ trial: CredentialTrial, _ text: String, _ status: larder.ExitStatus) {
        #expect(CredentialsTest.text(trial) == text)
        #expect(CredentialsTest.status(of: trial.verdict) == status)
    }

    @Test("A list shows where a credential is good")
    func table() {
        let rows = [
            CredentialRow(
                CredentialRecord(name: .named("x"), kind: "bearer", persistence: "permanent")),
            CredentialRow(
                CredentialRecord(
                    name: .space(Self.space, user: "alice"), kind: "password", user: "alice",
                    persistence: "for-session", isDefault: true)),
        ]
        let expected = [
            "NAME  KIND      USER OR FIELD  SPACE"
                + "                                                 KEPT",
            "x     bearer    -                      "
                + "                                               permanent",
            "-     password  alice          "
                + "https://h.example:8443, realm \"r\", digest, default  for-session",
        ]
        let words = CredentialRow.table(rows, width: nil).map {
            $0.split(separator: " ").joined(separator: " ")
        }
        #expect(words == expected.map { $0.split(separator: " ").joined(separator: " ") })
    }

    @Test(
        "--principal has an address or a number in the one form that sessions have",
        arguments: [
            ("address:::ffff:10.1.2.3", "address:10.1.2.3"),
            ("address:2001:DB8:0::1", "address:2001:db8::1"), ("user:::1", "user:::1"),
            ("uid:0", "uid:0"), ("uid:007", "uid:7"), ("uid:4294967294", "uid:4294967294"),
            ("user:uid:7", "user:uid:7"),
        ])
    func principalAddress(_ given: String, _ principal: String) throws {
        #expect(try PrincipalOption.parse(["--principal", given]).principal == principal)
    }

    @Test(
        "--principal names a kind and who",
        arguments: [
            "alice", "user:", "role:x", "address:here", "", "uid:-1", "uid:+7", "uid:alice",
            "uid:4294967295", "none:x", "none:", "uid:",
        ])
    func principal(_ text: String) {
        #expect(throws: (any Error).self) { try PrincipalOption.parse(["--principal", text]) }
        #expect(throws: Never.self) { try PrincipalOption.parse(["--principal", "user:alice"]) }
    }

    @Test(
        "--principal names one that the session can have (exit status 65)",
        arguments: [
            (PrincipalsWord.user, "user:a", true), (.user, "uid:7", false),
            (.uid, "uid:07", true), (.uid, "address:::1", false), (.address, "user:a", false),
            (.none, "user:a", true),
        ])
    func principalKind(_ split: PrincipalsWord, _ text: String, _ isKnown: Bool) throws {
        var session = SessionSettings(name: .default, kind: .default)
        session.principals = split
        let option = try PrincipalOption.parse(["--principal", text])
        if isKnown {
            #expect(try option.principal(in: session) == option.principal)
            return
        }
        do {
            _ = try option.principal(in: session)
            Issue.record("no failure")
        } catch {
            #expect(error.status == .data)
            #expect(error.causes.joined().contains("split by \(split.rawValue)"))
            #expect(error.remedy?.contains("\(split.rawValue):") == true)
        }
    }
}
