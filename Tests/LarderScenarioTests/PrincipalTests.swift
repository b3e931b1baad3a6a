import Foundation
import Testing

@testable import LarderProcess

/// Clients that prove who they are, of whom there are two.
enum Clients {
    /// perl -e 'print crypt("opensesame", "\$2b\$05\$abcdefghijklmnopqrstuu")', and for bob
    /// yescrypt with the same password.
    static let passwordFile = """
        alice:$2b$05$abcdefghijklmnopqrstuuQbLfdQZSxZ9gjhA5V9o8Tyc6aQRO0Qi
        bob:$y$j9T$uHbKq5F1mTzWnqv0sVv9x1$HNeeHLZ029DcTMDAhNbXIAHinWtYoA.BJSqE0EvmDQ/

        """
    static let password = "opensesame"
    /// The field for `alice:opensesame`.
    static let alice = "Proxy-Authorization: Basic YWxpY2U6b3BlbnNlc2FtZQ=="
    static let bob = "Proxy-Authorization: Basic Ym9iOm9wZW5zZXNhbWU="

    /// A listener at which they must say who they are.
    static func listener(_ home: Home, session: String = "default") throws -> String {
        let file = try home.secretFile(Self.passwordFile, named: "passwords")
        return """
            listeners:
              - address: 127.0.0.1:0
                session: \(session)
                authentication: {password-file: \(file), realm: demo}

            """
    }
}

@Suite("A session that is split by its clients", .timeLimit(.minutes(10)))
struct PrincipalTests {
    private static let settings = """
        sessions: {default: {principals: user, cookies: {mode: jar}, cache: {memory: 0 B}}}
        """

    private static func answer(_ request: Message) -> String {
        switch request.target {
        case "/login":
            response(
                "200 OK", "Set-Cookie: who=\(request["X-Who"] ?? "-"); Max-Age=600", body: "in",
                cache: "no-store")
        case "/account" where request["Authorization"] == nil:
            response(
                "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", body: "who?", cache: nil)
        default:
            response("200 OK", body: "of \(request["X-Who"] ?? "-")", cache: "private, max-age=600")
        }
    }

    @Test(
        "What one stored, another never sees: responses, cookies, credentials, explanations, lists")
    func apart() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(try Clients.listener(home) + Self.settings)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = try await home.serve()
            let (page, account) = (origin.url("/page"), origin.url("/account"))
            for (who, proof) in [("alice", Clients.alice), ("bob", Clients.bob)] {
                _ = try await proxy.get(origin.url("/login"), proof, "X-Who: \(who)")
                // A private cache keeps what is private.
                for _ in 0..<200 {
                    let again = try await proxy.get(page, proof, "X-Who: \(who)")
                    #expect(again.text == "of \(who)")
                    if again["Cache-Status"]?.contains("; hit") == true { break }
                }
            }
            for (who, proof) in [("alice", Clients.alice), ("bob", Clients.bob)] {
                _ = try await proxy.get(origin.url("/cookies"), proof)
                #expect(origin.requests.value.last?.cookies == ["who=\(who)"])
                #expect(origin.requests.value.last?.has("Proxy-Authorization") == false)
                let hit = try await proxy.get(page, proof, "Cache-Control: only-if-cached")
                #expect(hit.status == 200 && hit.text == "of \(who)")
            }
            #expect(try await proxy.get(page).status == 407)

            let mine = ["--principal", "user:alice"]
            let kept = try await home.addCredential(
                "alices-2Bq7",
                [
                    "--host", "127.0.0.1", "--port", "\(origin.port)", "--scheme", "http",
                    "--realm", "r", "--method", "basic", "--user", "al",
                ] + mine)
            #expect(kept.status == 0, "\(kept.errText)")
            #expect(try await proxy.get(account, Clients.alice).status == 200)
            #expect(try await proxy.get(account, Clients.bob).status == 401)
            try await self.lists(home, page, isRunning: true)
            #expect(try await proxy.stop().status == 0)
            try await self.lists(home, page, isRunning: false)
            await origin.stop()
        }
    }

    @Test(
        "Commands show and remove one's responses and leave the other's, also without a proxy",
        arguments: [true, false])
    func removal(_ isRunning: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(
                try Clients.listener(home) + "sessions: {default: {principals: user}}")
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = try await home.serve()
            let page = origin.url("/page")
            for (who, proof) in [("alice", Clients.alice), ("bob", Clients.bob)] {
                for _ in 0..<200 {
                    let again = try await proxy.get(page, proof, "X-Who: \(who)")
                    if again["Cache-Status"]?.contains("; hit") == true { break }
                }
            }
            if !isRunning { #expect(try await proxy.stop().status == 0) }
            func cache(_ verb: String, _ who: String?) async throws -> Program.Output {
                try await home.larder(
                    ["cache", verb, page] + (who.map { ["--principal", "user:\($0)"] } ?? []))
            }
            for who in ["alice", "bob"] {
                let shown = try await cache("show", who)
                #expect(shown.outText.contains("user:\(who)"), "\(shown.outText)\(shown.errText)")
                let body = try await home.larder(
                    "cache", "show", page, "--body", "--principal", "user:\(who)")
                #expect(body.outText == "of \(who)", "\(body.errText)")
            }
            #expect(try await cache("show", "carol").status == 1)
            #expect(try await cache("purge", "carol").outText == "0\n")
            #expect(try await cache("purge", "alice").outText == "1\n")
            #expect(try await cache("show", "alice").status == 1)
            #expect(try await cache("show", "bob").status == 0)
            if isRunning {
                let onlyStored = "Cache-Control: only-if-cached"
                #expect(try await proxy.get(page, Clients.alice, onlyStored).status == 504)
                #expect(try await proxy.get(page, Clients.bob, onlyStored).text == "of bob")
            }
            // Without a name, everybody's go.
            #expect(try await cache("purge", nil).outText == "1\n")
            #expect(try await cache("show", "bob").status == 1)
            if isRunning { #expect(try await proxy.stop().status == 0) }
            await origin.stop()
        }
    }

    @Test("What was missing offline is told with who asked")
    func missing() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(
                try Clients.listener(home)
                    + "sessions: {default: {principals: user, cache-policy: return-cache-dont-load}}"
            )
            let proxy = try await home.serve()
            let url = "http://a.example/page"
            #expect(try await proxy.get(url, Clients.alice).status == 504)
            #expect(try await proxy.get(url, Clients.bob).status == 504)
            let table = try await home.larder("cache", "missing")
            #expect(table.lines.first?.hasSuffix("PRINCIPAL") == true, "\(table.outText)")
            let ends = table.lines.dropFirst().compactMap { $0.split(separator: " ").last }
            #expect(ends.sorted() == ["user:alice", "user:bob"], "\(table.outText)")
            let json = try await home.larder("cache", "missing", "--json")
            #expect(json.lines.allSatisfy { $0.contains("\"principal\":\"user:") })
            #expect(json.lines.count == 2)
            #expect(try await proxy.stop().status == 0)
        }
    }

    @Test(
        "What was theirs is not imported where nobody could reach it, which is said",
        arguments: [true, false])
    func imports(_ isRunning: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(try Clients.listener(home) + Self.settings)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = try await home.serve()
            for proof in [Clients.alice, Clients.bob] {
                for _ in 0..<200 {
                    let again = try await proxy.get(origin.url("/page"), proof)
                    if again["Cache-Status"]?.contains("; hit") == true { break }
                }
            }
            let (split, whole) = (home.path + "/split.warc", home.path + "/whole.warc")
            #expect(try await home.larder("cache", "export", split).status == 0)
            #expect(try await proxy.stop().status == 0)

            let other = try Home()
            try other.configure("sessions: {default: {cache: {shared: false}}}")
            let shared = try await other.serve()
            _ = try await shared.getStored(origin.url("/page"))
            #expect(try await other.larder("cache", "export", whole).status == 0)
            if !isRunning { #expect(try await shared.stop().status == 0) }
            let refused = try await other.larder("cache", "import", split)
            #expect(refused.status == 0, "\(refused.errText)")
            let reason = "not stored: 2 of principals, which this session does not have"
            #expect(
                refused.lines.prefix(2) == ["stored 0 responses, 0 B", reason], "\(refused.outText)"
            )
            if isRunning { #expect(try await shared.stop().status == 0) }

            let again = isRunning ? try await home.serve() : nil
            #expect(try await home.larder("cache", "purge", "--all").status == 0)
            let none = try await home.larder("cache", "import", whole)
            #expect(
                none.lines.contains { $0.hasPrefix("not stored: 1 of no principal") },
                "\(none.outText)")
            let back = try await home.larder("cache", "import", split)
            #expect(back.lines.first?.hasPrefix("stored 2 responses") == true, "\(back.outText)")
            if let again { #expect(try await again.stop().status == 0) }
            await origin.stop()
        }
    }

    @Test(
        "--principal is in the help of every command that can tell principals apart",
        arguments: [
            ["cache", "list"], ["cache", "show"], ["cache", "purge"], ["explain"],
            ["cookies", "list"], ["cookies", "clear"], ["credentials", "list"],
        ])
    func help(_ command: [String]) async throws {
        let home = try Home()
        let help = try await home.start(command + ["--help"]).ended()
        #expect(help.outText.contains("--principal <principal>"), "\(help.outText)")
    }

    /// What the commands show of each, and of a third that there is not.
    private func lists(_ home: Home, _ url: String, isRunning: Bool) async throws {
        for (who, other) in [("alice", "bob"), ("bob", "alice"), ("carol", "alice")] {
            let principal = "user:\(who)"
            let cookies = try await home.larder(
                "cookies", "list", "--reveal", "--principal", principal)
            #expect(cookies.outText.contains(who) == (who != "carol"), "\(cookies.errText)")
            #expect(!cookies.outText.contains(other))
            let credentials = try await home.larder("credentials", "list", "--principal", principal)
            #expect(credentials.lines.count == (who == "alice" ? 2 : 0), "\(credentials.outText)")
            let told = try await home.larder("explain", url, "--json", "--principal", principal)
            let verdict = who == "carol" ? "fetch" : "hit"
            #expect(told.outText.contains("\"verdict\":\"\(verdict)\""), "\(told.outText)")
            let cache = try await home.larder("cache", "list", "--json", "--principal", principal)
            // Other responses may have found their way to the disk or not.
            let pages = cache.lines.filter { $0.contains("/page\"") }
            #expect(pages.count == (who == "carol" ? 0 : 1), "\(cache.outText)")
            #expect(cache.lines.allSatisfy { $0.contains("\"partition\":\"\(principal)\"") })
        }
    }

    @Test("A command's own proxy has no part of a session that is split by users")
    func run() async throws {
        let home = try Home()
        try home.configure(
            try Clients.listener(home)
                + "sessions: {default: {principals: none}, split: {kind: ephemeral, principals: user}}\n"
                + "routes: [{users: [alice], session: split}]\n")
        let ended = try await home.start([
            "run", "--config", home.configuration, "--session", "split", "--", "true",
        ]).ended()
        #expect(ended.status == 78)
        #expect(ended.errText.contains("session split is split by user,"), "\(ended.errText)")
    }
}

@Suite("Clients prove who they are", .timeLimit(.minutes(10)))
struct ProxyAuthenticationTests {
    private func play(
        _ body: (Home, ScriptedOrigin, ProxyProcess) async throws -> Void
    ) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(try Clients.listener(home))
            let origin = try await ScriptedOrigin.answering { _ in
                response(body: "hello", cache: "no-store")
            }
            let proxy = try await home.serve()
            try await body(home, origin, proxy)
            // Whoever came through, the origin has not seen by what.
            #expect(origin.requests.value.allSatisfy { !$0.has("Proxy-Authorization") })
            let end = try await proxy.stop()
            #expect(end.status == 0)
            #expect(Secrets(Clients.password).found(in: end.errText + end.outText).isEmpty)
            await origin.stop()
        }
    }

    @Test("curl, wget and Python do, and a wrong password is a 407 with the realm")
    func programs() async throws {
        try await self.play { home, origin, proxy in
            let address = "http://127.0.0.1:\(proxy.port)"
            let url = origin.url("/a")
            let bare = try await proxy.get(url)
            #expect(bare.status == 407)
            #expect(bare["Proxy-Authenticate"]?.contains("realm=\"demo\"") == true)
            for (user, expected) in [
                ("alice:opensesame", "200"), ("bob:opensesame", "200"), ("alice:wrong", "407"),
                ("carol:opensesame", "407"),
            ] {
                let curl = try Program(
                    "/usr/bin/curl",
                    [
                        "-s", "-o", "/dev/null", "-w", "%{http_code}", "--noproxy", "", "-x",
                        address, "-U", user, url,
                    ], environment: home.environment)
                #expect(try await curl.ended().outText == expected, "\(user)")
            }
            let wget = try Program(
                "/usr/bin/wget",
                [
                    "-q", "-O", "-", "-e", "http_proxy=\(address)", "--proxy-user=alice",
                    "--proxy-password=opensesame", url,
                ], environment: home.environment)
            #expect(try await wget.ended().outText == "hello")
            let script = """
                import sys, urllib.request
                proxy = urllib.request.ProxyHandler({"http": sys.argv[1]})
                opener = urllib.request.build_opener(proxy)
                print(opener.open(sys.argv[2], timeout=20).read().decode())
                """
            let python = try Program(
                "/usr/bin/env",
                [
                    "python3", "-c", script, "http://alice:opensesame@127.0.0.1:\(proxy.port)", url,
                ],
                environment: home.environment.merging(
                    ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""]) { $1 })
            let said = try await python.ended()
            #expect(said.outText == "hello\n", "\(said.errText)")
        }
    }

    @Test("A larder is another's parent proxy, with a password")
    func chain() async throws {
        try await self.play { _, origin, parent in
            let child = try Home()
            try child.configure(
                """
                parents:
                  - {via: 'http://127.0.0.1:\(parent.port)', authentication: basic, credential: up}
                """)
            let added = try await child.addCredential(
                Clients.password, ["up", "--user", "alice"])
            #expect(added.status == 0, "\(added.errText)")
            let other = try await child.addCredential(
                "0123456789abcdef", ["api", "--kind", "bearer"])
            #expect(other.status == 0, "\(other.errText)")
            // Without a proxy the trial goes by the parent, too.
            let trial = try await child.larder(
                "credentials", "test", "api", origin.url("/a"), "--insecure")
            #expect(trial.status == 0, "\(trial.outText)\(trial.errText)")
            let proxy = try await child.serve()
            let answer = try await proxy.get(origin.url("/a"))
            #expect(answer.status == 200 && answer.text == "hello", "\(answer.text)")
            let via = origin.requests.value.last?.list("Via") ?? ""
            #expect(via.components(separatedBy: ", ").count == 2, "\(via)")
            let end = try await proxy.stop()
            #expect(end.status == 0)
            #expect(Secrets(Clients.password).found(in: end.errText + end.outText).isEmpty)
            #expect(try Secrets(Clients.password).found(below: child.path).isEmpty)
        }
    }
}
