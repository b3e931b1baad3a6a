import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("larder run", .timeLimit(.minutes(10)))
struct RunCommandTests {
    /// A client in shell: bash speaks TCP by itself, so nothing else needs to be installed.
    private static func client(_ urls: [String], exit status: Int = 0) -> [String] {
        let script = """
            hop=${http_proxy#http://}
            for url in "$@"; do
              host=${url#http://}; host=${host%%/*}
              exec 3<>/dev/tcp/${hop%:*}/${hop#*:}
              printf 'GET %s HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' "$url" "$host" >&3
              cat <&3
              exec 3>&-
            done
            exit \(status)
            """
        return ["bash", "-c", script, "client"] + urls
    }

    @Test(
        "The command's output and exit status are passed on, with a summary of what was saved",
        arguments: [0, 7])
    func passesOn(_ status: Int) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let origin = try await ScriptedOrigin.answering { _ in
                response("200 OK", body: String(repeating: "x", count: 1_024))
            }
            let url = origin.url("/a")
            let first = try await home.start(["run", "--"] + Self.client([url], exit: status))
                .ended()
            #expect(first.status == Int32(status))
            #expect(first.outText.contains("HTTP/1.1 200 OK"))
            #expect(
                first.errText.contains("larder: 1 request: 0 hits, 1 missed; 0 B of 1 KiB saved"))
            let second = try await home.start(["run", "--"] + Self.client([url], exit: status))
                .ended()
            #expect(second.status == Int32(status))
            #expect(second.outText.contains("Cache-Status: larder; hit; ttl="))
            #expect(
                second.errText.contains("larder: 1 request: 1 hit, 0 missed; 1 KiB of 1 KiB saved"))
            let quiet = try await home.start(["run", "--quiet", "--", "true"]).ended()
            #expect(quiet.status == 0)
            #expect(quiet.err.isEmpty)
            #expect(origin.count == 1)
            await origin.stop()
        }
    }

    @Test("Access rules for others do not keep the command out, but from what is denied to all")
    func access() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let origin = try await ScriptedOrigin.answering { _ in response("200 OK", body: "x") }
            try home.configure(
                """
                access:
                  - { action: deny, destinations: [denied.example] }
                  - { action: allow, clients: [10.0.0.0/8] }
                """)
            let run = try await home.start(
                ["run", "--config", home.configuration, "--"]
                    + Self.client([origin.url("/a"), "http://denied.example/"])
            ).ended()
            #expect(run.outText.contains("HTTP/1.1 200 OK"), "\(run.outText)")
            #expect(run.outText.contains("HTTP/1.1 403 Forbidden"))
            #expect(run.errText.contains("larder: 1 request: 0 hits, 1 missed, 1 refused; "))
            await origin.stop()
        }
    }

    @Test("The proxies of the environment are its parents, and its exceptions theirs")
    func parents() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let origin = try await ScriptedOrigin.answering { _ in response("200 OK", body: "own") }
            let parent = try await ScriptedOrigin.answering { _ in response("200 OK", body: "up") }
            let variables = [
                "http_proxy": "http://u:p@\(parent.authority)",
                "no_proxy": "localhost,127.0.0.1,direct.example",
            ]
            let urls = [origin.url("/a"), "http://far.example/b"]
            let run = try await home.start(
                ["run", "--"] + Self.client(urls), variables: variables
            ).ended()
            #expect(run.outText.contains("own"), "\(run.errText)")
            #expect(run.outText.contains("up"))
            #expect(parent.requests.value.map(\.target) == ["http://far.example/b"])
            #expect(parent.requests.value.first?["Proxy-Authorization"] == "Basic dTpw")
            try home.configure("parents: [{ via: direct }]")
            let configured = try await home.start(
                ["run", "--config", home.configuration, "--"] + Self.client([origin.url("/c")]),
                variables: ["http_proxy": parent.url("")]
            ).ended()
            #expect(configured.outText.contains("own"))
            #expect(parent.count == 1)
            let script = "echo $no_proxy $NO_PROXY"
            let told = try await home.start(
                ["run", "--quiet", "--", "sh", "-c", script], variables: variables
            ).ended()
            #expect(told.lines == ["direct.example direct.example"])
            await origin.stop()
            await parent.stop()
        }
    }

    @Test("A proxy of the environment that cannot be used is told at the start, unless none counts")
    func unusableParent() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let variables = ["http_proxy": "garbage://user:hush@x"]
            let run = try await home.start(["run", "--", "true"], variables: variables).ended()
            #expect(run.status == 78)
            #expect(run.errText.contains("the environment's http_proxy names no proxy"))
            #expect(!run.errText.contains("hush"))
            try home.configure("parents: [{ via: direct }]")
            let configured = try await home.start(
                ["run", "--config", home.configuration, "--", "true"], variables: variables
            ).ended()
            #expect(configured.status == 0, "\(configured.errText)")
        }
    }

    @Test("Exceptions that are not UTF-8 come to the command as they were given")
    func exceptionBytes() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let script =
                "export no_proxy=\"$(printf 'localhost,\\351\\377.b')\"; "
                + "exec \(Program.larder) run --quiet -- "
                + "sh -c 'printf %s \"$no_proxy\" | od -An -tx1'"
            let run = try await Program("/bin/sh", ["-c", script], environment: home.environment)
                .ended()
            #expect(run.status == 0)
            #expect(run.lines == [" e9 ff 2e 62"], "\(run.errText)")
        }
    }

    @Test("The environment leads to the proxy in both cases, without exceptions")
    func environment() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let script =
                "test \"$http_proxy\" = \"$HTTPS_PROXY\" -a -z \"$NO_PROXY$no_proxy\" && echo $ftp_proxy"
            let run = try await home.start(["run", "--quiet", "--", "sh", "-c", script]).ended()
            #expect(run.status == 0)
            #expect(run.outText.hasPrefix("http://127.0.0.1:"))
        }
    }

    @Test("The command has what it was given, and nothing of the proxy's")
    func descriptors() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let script =
                "exec 3</dev/null; exec \(Program.larder) run --quiet -- ls -l /proc/self/fd"
            let run = try await Program("/bin/sh", ["-c", script], environment: home.environment)
                .ended()
            #expect(run.status == 0)
            #expect(!run.outText.contains("socket:"))
            #expect(!run.outText.contains("cache.mdb"))
            #expect(run.lines.contains { $0.hasSuffix(" 3 -> /dev/null") })
        }
    }

    @Test(
        "The command ends by SIGPIPE as it would without larder, unless that was ignored before",
        arguments: [false, true])
    func brokenPipes(_ isIgnored: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let script =
                "\(isIgnored ? "trap '' PIPE; " : "")exec \(Program.larder) run --quiet -- "
                + "grep SigIgn: /proc/self/status"
            let run = try await Program("/bin/sh", ["-c", script], environment: home.environment)
                .ended()
            #expect(run.status == 0)
            let mask = run.outText.split(whereSeparator: \.isWhitespace).last ?? ""
            let ignored = try #require(UInt64(mask, radix: 16))
            #expect((ignored & 1 << UInt64(SIGPIPE - 1) != 0) == isIgnored)
        }
    }

    @Test(
        "A command that is not there is 127, one that a signal ends 128 and its number",
        arguments: [
            (["/nowhere/command"], 127), (["sh", "-c", "kill -TERM $$"], 143), ([], 64),
        ] as [([String], Int32)])
    func endings(_ command: [String], _ status: Int32) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let run = try await home.start(["run", "--"] + command).ended()
            #expect(run.status == status)
        }
    }

    @Test("An ephemeral session leaves no file made or changed anywhere")
    func ephemeral() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let origin = try await ScriptedOrigin.answering { _ in response(body: "secret") }
            let before = home.tree
            let url = origin.url("/a")
            let run = try await home.start(
                ["run", "--session", "ephemeral", "--"] + Self.client([url, url])
            ).ended()
            #expect(run.status == 0)
            #expect(run.errText.contains("larder: 2 requests: 1 hit, 1 missed;"))
            #expect(origin.count == 1)
            #expect(home.tree == before)
            await origin.stop()
        }
    }

    @Test(
        "An ephemeral session opens nothing for writing",
        .enabled(if: WriteTrace.isPossible))
    func ephemeralTraced() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let origin = try await ScriptedOrigin.answering { _ in response(body: "secret") }
            // The trace itself lies outside of what is looked at.
            let outside = try Home()
            let trace = WriteTrace(file: outside.path + "/trace")
            let client = Self.client([origin.url("/a")])
            let run = try await home.start(
                trace.arguments + [
                    Program.larder, "run", "--session", "ephemeral", "--",
                ] + client, path: WriteTrace.strace
            ).ended()
            guard run.status == 0 else {
                return withKnownIssue(
                    "strace is not permitted here: \(run.errText)", isIntermittent: true
                ) {}
            }
            #expect(run.outText.contains("secret"))
            let writes = try trace.writes()
            #expect(writes.isEmpty, "\(writes.prefix(5))")
            await origin.stop()
        }
    }
}
