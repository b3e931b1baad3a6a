import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("A session's credentials", .timeLimit(.minutes(10)))
struct SessionCredentialTests {
    private static let password = "open-4Vn8sQ"
    private static let token = "token-6Jr2kP"
    private static let secrets = Secrets(Self.password, Self.token)
    /// The field for `alice:open-4Vn8sQ`.
    private static let basic = "Basic YWxpY2U6b3Blbi00Vm44c1E="

    /// Behind Basic at `/account`, behind a token at `/api`; else open.
    private static func answer(_ request: Message) -> String {
        let authorization = request["Authorization"]
        switch request.target {
        case "/account" where authorization != Self.basic:
            return response(
                "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", body: "who?", cache: nil)
        case "/api" where authorization != "Bearer \(Self.token)":
            return response(
                "401 Unauthorized", "WWW-Authenticate: Bearer", body: "who?", cache: nil)
        case "/echo":
            // An origin that gives back all that it was told.
            return response(
                "200 OK", "Vary: Authorization", body: "nothing", cache: "public, max-age=600")
        default:
            return response("200 OK", body: "hello", cache: "no-store")
        }
    }

    private func add(
        _ secret: String, to home: Home, _ arguments: String...
    ) async throws {
        let added = try await home.addCredential(secret, arguments)
        #expect(added.status == 0, "\(added.errText)")
        #expect(Self.secrets.found(in: added.outText + added.errText).isEmpty)
    }

    private func space(_ origin: ScriptedOrigin) -> [String] {
        [
            "--host", "127.0.0.1", "--port", "\(origin.port)", "--scheme", "http", "--realm", "r",
            "--method", "basic", "--user", "alice",
        ]
    }

    @Test("A challenge is answered by what is kept for its space, also after the proxy's death")
    func answering() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = try await home.serve()
            #expect(try await proxy.get(origin.url("/account")).status == 401)
            let added = try await home.addCredential(Self.password, self.space(origin))
            #expect(added.status == 0, "\(added.errText)")
            let answered = try await proxy.get(origin.url("/account"))
            #expect(answered.status == 200 && answered.text == "hello")
            let list = try await home.larder("credentials", "list")
            #expect(list.outText.contains("alice") && list.outText.contains("realm \"r\""))
            #expect(Self.secrets.found(in: list.outText).isEmpty)
            try await proxy.crash()
            #expect(try Self.secrets.found(below: home.path).isEmpty)

            let again = try await home.serve()
            #expect(try await again.get(origin.url("/account")).status == 200)
            #expect(
                try await home.start(
                    ["credentials", "remove"] + self.space(origin)
                        + ["--config", home.configuration]
                ).ended().status == 0)
            #expect(try await again.get(origin.url("/account")).status == 401)
            #expect(try await again.stop().status == 0)
            await origin.stop()
        }
    }

    @Test(
        "A trial tells what the origin made of it, with a proxy and without",
        arguments: [true, false])
    func trial(_ runs: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = runs ? try await home.serve() : nil
            try await self.add(Self.password, to: home, "site", "--user", "alice")
            try await self.add("wrong", to: home, "other", "--user", "alice")
            try await self.add(Self.token, to: home, "api", "--kind", "bearer")
            let cases: [(name: String, path: String, status: Int32, text: String)] = [
                ("site", "/account", 0, "site: accepted: 200, sent as basic"),
                ("other", "/account", 77, "other: refused: 401, sent as basic"),
                ("api", "/api", 0, "api: accepted: 200, sent as bearer"),
                ("site", "/open", 1, "site: not asked for: 200"),
            ]
            for one in cases {
                let told = try await home.larder(
                    "credentials", "test", one.name, origin.url(one.path), "--insecure")
                #expect(told.status == one.status, "\(one): \(told.outText)\(told.errText)")
                #expect(told.lines.first?.hasPrefix(one.text) == true, "\(told.outText)")
                #expect(Self.secrets.found(in: told.outText + told.errText).isEmpty)
            }
            let none = try await home.larder("credentials", "test", "none", origin.url("/"))
            #expect(none.status == 1, "\(none.errText)")
            let plain = try await home.larder("credentials", "test", "api", origin.url("/api"))
            #expect(plain.status == 77, "\(plain.outText)\(plain.errText)")
            if let proxy { #expect(try await proxy.stop().status == 0) }
            await origin.stop()
        }
    }

    @Test("A secret on the command line is refused, and nothing is kept")
    func exposed() async throws {
        let home = try Home()
        try home.configure("")
        for arguments in [
            ["x", "--user", "a", "--password", Self.password],
            ["x", "--kind", "bearer", Self.token],
            ["x", "--user", "a:\(Self.password)"],
        ] {
            let refused = try await home.start(
                ["credentials", "add"] + arguments + ["--config", home.configuration]
            ).ended()
            #expect(refused.status == 64)
            #expect(Self.secrets.found(in: refused.errText + refused.outText).isEmpty)
        }
        #expect(!FileManager.default.fileExists(atPath: home.state))
    }

    @Test("A command's output is a secret, and its failure is told without it")
    func command() async throws {
        let home = try Home()
        try home.configure("")
        let kept = try await home.larder(
            "credentials", "add", "x", "--kind", "bearer", "--secret-command",
            "printf \(Self.token)")
        #expect(kept.status == 0, "\(kept.errText)")
        let failed = try await home.larder(
            "credentials", "add", "y", "--kind", "bearer", "--secret-command",
            "sh -c 'echo \(Self.token); exit 4'")
        #expect(failed.status == 66 && failed.errText.contains("status 4"))
        let list = try await home.larder("credentials", "list", "--json")
        #expect(list.lines.count == 1 && list.outText.contains("\"name\":\"x\""))
        #expect(try Self.secrets.found(below: home.path).isEmpty)
    }

    @Test("The key is rotated with a proxy and without; everything is there afterwards")
    func rotation() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            try await self.add(Self.token, to: home, "api", "--kind", "bearer")
            let key = "\(home.state)/default.key"
            let first = try Data(contentsOf: URL(fileURLWithPath: key))
            let mode = try FileManager.default.attributesOfItem(atPath: key)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            let offline = try await home.larder("credentials", "rotate-key")
            #expect(offline.status == 0, "\(offline.errText)")
            let second = try Data(contentsOf: URL(fileURLWithPath: key))
            #expect(second != first)
            let proxy = try await home.serve()
            let running = try await home.larder("credentials", "rotate-key", "--json")
            #expect(running.status == 0 && running.outText.contains("\"records\":"))
            #expect(try Data(contentsOf: URL(fileURLWithPath: key)) != second)
            try await proxy.crash()
            let again = try await home.serve()
            let told = try await home.larder(
                "credentials", "test", "api", origin.url("/api"), "--insecure")
            #expect(told.status == 0, "\(told.outText)\(told.errText)")
            #expect(try await again.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("With a wrong, open or missing key nothing is overwritten, and it is said what to do")
    func wrongKey() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            try await self.add(Self.token, to: home, "api", "--kind", "bearer")
            let (key, files) = ("\(home.state)/default.key", FileManager.default)
            let right = try Data(contentsOf: URL(fileURLWithPath: key))
            let other = try Home()
            try other.configure("")
            try await self.add(Self.token, to: other, "api", "--kind", "bearer")
            let wrong = try Data(contentsOf: URL(fileURLWithPath: "\(other.state)/default.key"))
            let state = "\(home.state)/default/state.mdb"
            let before = try Data(contentsOf: URL(fileURLWithPath: state))

            func refused(_ what: String) async throws {
                let listed = try await home.larder("credentials", "list")
                #expect(listed.status != 0 && listed.out.isEmpty, "\(what)")
                #expect(listed.errText.contains("default"), "\(what): \(listed.errText)")
                #expect(listed.lines.isEmpty && listed.errText.contains("; "))
                #expect(try Data(contentsOf: URL(fileURLWithPath: state)) == before, "\(what)")
            }
            try wrong.write(to: URL(fileURLWithPath: key))
            try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
            try await refused("wrong")
            try right.write(to: URL(fileURLWithPath: key))
            try files.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
            try await refused("open")
            try files.removeItem(atPath: key)
            try await refused("missing")
            try right.write(to: URL(fileURLWithPath: key))
            try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
            #expect(try await home.larder("credentials", "list").lines.count == 2)
        }
    }

    @Test("An injected secret is in no answer, log, explanation, error or file")
    func injection() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(
                """
                sessions: {default: {cache: {memory: 0 B}}}
                log: {level: debug, access: {format: json, to: stdout}}
                injections:
                  - {hosts: [127.0.0.1], paths: ['/api*', '/echo*'], credential: api, insecure: true}
                  - {hosts: [127.0.0.1], paths: ['/none'], credential: absent, insecure: true}
                  - {hosts: [127.0.0.1], paths: ['/secure'], credential: api}
                """)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            try await self.add(Self.token, to: home, "api", "--kind", "bearer")
            let proxy = try await home.serve()
            var told: [String] = []
            for (path, fields) in [
                ("/api", [String]()), ("/api", ["Authorization: Bearer placeholder"]),
                ("/echo", []), ("/echo", []), ("/echo?x", ["Cookie: a=b"]), ("/none", []),
                ("/secure", []),
            ] {
                let answer = try await proxy.send("GET", origin.url(path), fields)
                told.append(([answer.line] + answer.fields + [answer.text]).joined(separator: "\n"))
                if path == "/api" { #expect(answer.status == 200, "\(answer.text)") }
                let page = try await home.larder("explain", origin.url(path))
                told.append(page.outText + page.errText)
            }
            let sent = origin.requests.value.filter { $0.target == "/api" }.map {
                $0["Authorization"]
            }
            #expect(sent == ["Bearer \(Self.token)", "Bearer \(Self.token)"])
            let plain = origin.requests.value.filter { $0.target == "/secure" }
            #expect(plain.allSatisfy { !$0.has("Authorization") })
            for arguments in [["list", "--json"], ["show", origin.url("/echo")], ["stats"]] {
                let output = try await home.start(
                    ["cache"] + arguments + ["--config", home.configuration]
                ).ended()
                told.append(output.outText + output.errText)
            }
            let end = try await proxy.stop()
            told += [end.outText, end.errText]
            for text in told { #expect(Self.secrets.found(in: text).isEmpty, "\(text)") }
            #expect(try Self.secrets.found(below: home.path).isEmpty)
            await origin.stop()
        }
    }

    @Test("Nothing is injected after a redirection to another origin that the session follows")
    func redirection() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let other = try await ScriptedOrigin.answering { _ in
                response(body: "elsewhere", cache: "no-store")
            }
            let target = other.url("/api")
            let origin = try await ScriptedOrigin.answering { _ in
                response("302 Found", "Location: \(target)", cache: "no-store")
            }
            try home.configure(
                """
                sessions: {default: {follow-redirects: true}}
                injections: [{hosts: [127.0.0.1], credential: api, insecure: true}]
                """)
            try await self.add(Self.token, to: home, "api", "--kind", "bearer")
            let proxy = try await home.serve()
            let answer = try await proxy.get(origin.url("/api"))
            #expect(answer.status == 200 && answer.text == "elsewhere")
            #expect(origin.requests.value.first?["Authorization"] == "Bearer \(Self.token)")
            #expect(other.requests.value.map { $0.has("Authorization") } == [false])
            #expect(try await proxy.stop().status == 0)
            for origin in [origin, other] { await origin.stop() }
        }
    }
}
