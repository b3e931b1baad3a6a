import ArgumentParser
import Glibc
import LarderConfig
import LarderControl
import LarderDaemon
import LarderStore
import Testing

@testable import larder

@Suite("Verbs")
struct CommandTests {
    @Test(
        "Exactly one thing is purged",
        arguments: [
            (["http://h/"], PurgeSelection.url("http://h/")), (["--host", "h"], .host("h")),
            (["--pattern", "*.deb"], .pattern("*.deb")), (["--all"], .all), ([], nil),
            (["--all", "http://h/"], nil), (["--host", "h", "--pattern", "x"], nil),
        ] as [([String], PurgeSelection?)])
    func selection(_ arguments: [String], _ expected: PurgeSelection?) throws {
        let command = try CachePurge.parse(arguments)
        do throws(CommandFailure) {
            #expect(try command.selection.selection() == expected)
        } catch {
            #expect(expected == nil)
            #expect(error.status == .usage)
        }
    }

    @Test("What is wrong with an argument is one line, whatever values there are")
    func line() {
        #expect(Main.line("Unknown option '--x'") == "Unknown option '--x'")
        #expect(
            Main.line("'x' is no order. There are:\n  - url\n  - last-used")
                == "'x' is no order. There are: url, last-used")
    }

    @Test("run takes what follows the two dashes as it is")
    func passthrough() throws {
        let command = try Run.parse(["--session", "ephemeral", "--", "wget", "-q", "--all"])
        #expect(command.command == ["wget", "-q", "--all"])
        #expect(command.sessions.session == "ephemeral")
    }

    @Test("The environment leads every program to the proxy, but to the hosts that need none")
    func environment() {
        var proxy = TemporaryProxy(url: "http://127.0.0.1:9")
        let exceptions: [[UInt8]] = [Array("corp.example".utf8), [0x63, 0xE9]]
        proxy.exceptions = exceptions
        let before = ["PATH=/bin", "no_proxy=localhost", "HTTPS_PROXY=http://other", "odd"]
        // What is not UTF-8 stays as it is.
        let bytes: [UInt8] = [0x41, 0x3D, 0xFF, 0x3D]
        let entries = Run.environment(before.map { Array($0.utf8) } + [bytes], proxy: proxy)
        #expect(entries.contains(bytes))
        for name in ["no_proxy", "NO_PROXY"] {
            let entry: [UInt8] = Array("\(name)=corp.example,c".utf8) + [0xE9]
            #expect(entries.contains(entry))
        }
        let texts = entries.map { String(decoding: $0, as: UTF8.self) }
        var expected = ["PATH=/bin", "odd"]
        for name in ["http_proxy", "https_proxy", "ftp_proxy", "all_proxy"] {
            expected += ["\(name)=http://127.0.0.1:9", "\(name.uppercased())=http://127.0.0.1:9"]
        }
        #expect(texts.count == expected.count + 3)
        #expect(Set(texts).isSuperset(of: expected))
    }

    @Test(
        "run hands a command on as it was given, byte by byte",
        arguments: [
            ("larder run -- a b", ["a", "b"], ["a", "b"]),
            ("larder run --quiet -- a -- b", ["a", "--", "b"], ["a", "--", "b"]),
            ("larder run -- \u{FF} b", ["\u{FFFD}", "b"], ["\u{FF}", "b"]),
            // Of another process, as in this test.
            ("xctest", ["a"], ["a"]), ("xctest -- c", ["a"], ["a"]),
        ] as [(String, [String], [String])])
    func command(_ line: String, _ words: [String], _ expected: [String]) {
        func latin1(_ text: some StringProtocol) -> [UInt8] {
            text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        }
        let arguments = line.split(separator: " ").map { latin1($0) }
        #expect(Run.command(words, asIn: arguments) == expected.map { latin1($0) })
    }

    @Test("A reload says that rules wait, which else do not")
    func reload() {
        #expect(Reload.lines(ReloadOutcome(needingRestart: [])) == ["configuration reloaded"])
        let head = "configuration reloaded; these changed, too, and wait for a restart:"
        #expect(Reload.lines(ReloadOutcome(needingRestart: ["workers"])) == [head, "  workers"])
        let tail = "the old rules hold until listeners and sessions are as the file has them"
        for rules in [
            ["access"], ["connect-ports"], ["access", "connect-ports"], ["routes"], ["injections"],
            ["sessions.x.credentials.answer"], ["cache-rules"], ["presets"],
            ["sessions.x.cache.store-set-cookie"], ["sessions.x.cookies.show-set-cookie"],
            ["listeners[0].authentication.password-file"],
            ["listeners[0].authentication.token-file"],
        ] {
            let waiting = ["listeners[0].authentication"] + rules
            #expect(
                Reload.lines(ReloadOutcome(needingRestart: waiting))
                    == [head] + waiting.map { "  \($0)" } + [tail])
        }
    }

    @Test("The summary says what was saved")
    func summary() {
        var summary = ProxySummary()
        #expect(Run.text(summary) == "no requests")
        summary.refused = 2
        #expect(Run.text(summary) == "no requests but 2 that the access rules refused")
        summary.refused = 0
        summary.requests = 4
        summary.hits = 2
        summary.misses = 1
        summary.tunnels = 1
        summary.bytesSaved = 1024
        summary.bytesServed = 4096
        #expect(
            Run.text(summary)
                == "4 requests: 2 hits, 1 missed, 1 tunnel opened; 1 KiB of 4 KiB saved")
        summary.collapsed = 1
        #expect(Run.text(summary).contains(" 1 missed, 1 collapsed, 1 tunnel opened;"))
    }

    @Test(
        "A misspelt verb is told the nearest one, wherever it stands",
        arguments: [
            (
                ["cache", "lsit"],
                "larder: \"larder cache\" has no verb \"lsit\"; did you mean \"larder cache list\"?"
            ),
            (["srve"], "larder: \"larder\" has no verb \"srve\"; did you mean \"larder serve\"?"),
            (["cache", "list", "lsit"], nil), (["cache", "--lsit"], nil), ([], nil),
            (["cache"], nil), (["help"], nil), (["cache", "help"], nil),
            (["run", "--", "srve"], nil),
        ] as [([String], String?)])
    func verb(_ arguments: [String], _ expected: String?) {
        #expect(NearestVerb.failure(of: arguments)?.lines.first == expected)
    }

    @Test("A verb that is near to none is told which there are")
    func strangeVerb() {
        let failure = NearestVerb.failure(of: ["cache", "frobnicate"])
        #expect(failure?.status == .usage)
        #expect(failure?.remedy?.hasPrefix("there are: list, show, ") == true)
    }

    @Test("A misspelt session is told its nearest name")
    func session() throws {
        let option = try SessionOption.parse(["--session", "ephemral"])
        let loaded = LoadedSettings(settings: Settings(), file: nil, places: .system)
        #expect(
            throws: CommandFailure(
                .usage, "there is no session \"ephemral\"", remedy: "did you mean \"ephemeral\"?")
        ) { try option.find(in: loaded) }
    }

    @Test("Failures are one line with a remedy, and a configuration's mistakes a line each")
    func failures() {
        let one = CommandFailure(ControlError(.notRunning, "no proxy is running"))
        #expect(
            one?.lines == [
                "larder: no proxy is running; \"larder serve\" starts one; one that runs is found by the "
                    + "--config or --system that it was started with, and after a change of "
                    + "control.socket by a restart"
            ])
        #expect(one?.status == .unavailable)
        let mistakes = ConfigurationError(problems: [
            ConfigurationProblem(file: "f", line: 1, column: 2, message: "a"),
            ConfigurationProblem(file: "f", message: "b"),
        ])
        let several = CommandFailure(mistakes)
        #expect(several?.lines == ["larder: f:1:2: a", "larder: f: b"])
        #expect(several?.status == .configuration)
    }

    @Test(
        "A removal that does not last fails, with its cause and remedy in a line",
        arguments: [
            (UnkeptRemoval.Code.notWritten, larder.ExitStatus.inputOutput),
            (.unavailable, .unavailable),
        ])
    func unkept(_ code: UnkeptRemoval.Code, _ status: larder.ExitStatus) {
        let unkept = UnkeptRemoval(code, path: "/c/cache.lock", cause: "full", remedy: "free some")
        let failure = CommandFailure(unkept)
        #expect(failure?.status == status)
        #expect(
            failure?.lines == [
                "larder: /c/cache.lock: full: what was removed may come back at the next start; "
                    + "free some"
            ])
    }

    @Test(
        "What a proxy refuses has the status that it would have without one",
        arguments: [
            (ControlFailure.Code.invalid, larder.ExitStatus.data), (.notFound, .nothingFound),
            (.noInput, .noInput), (.noSpace, .cannotCreate), (.unavailable, .unavailable),
            (.inputOutput, .inputOutput), (.failed, .software),
        ])
    func refusal(_ code: ControlFailure.Code, _ status: larder.ExitStatus) {
        let refusal = ControlRefusal(failure: ControlFailure(code, "x"))
        #expect(CommandFailure(refusal)?.status == status)
    }
}

@Suite("A child process", .serialized, .timeLimit(.minutes(10)))
struct ChildProcessTests {
    @Test(
        "passes on how it ended",
        arguments: [
            (["sh", "-c", "exit 0"], ChildEnding.exited(0)), (["sh", "-c", "exit 7"], .exited(7)),
            (["sh", "-c", "kill -TERM $$"], .signalled(SIGTERM)),
            (["sh", "-c", "kill -INT $$"], .signalled(SIGINT)),
            (["sh", "-c", "test \"$A\" = \"b c\""], .exited(0)),
        ] as [([String], ChildEnding)])
    func ending(_ command: [String], _ expected: ChildEnding) async throws {
        #expect(try await Self.run(command) == expected)
    }

    private static func run(
        _ command: [String], _ environment: [String] = ["PATH=/usr/bin:/bin", "A=b c"]
    ) async throws -> ChildEnding {
        try await ChildProcess.run(
            command.map { Array($0.utf8) }, environment: environment.map { Array($0.utf8) })
    }

    @Test("gets arguments and variables that are not UTF-8 as they are")
    func bytes() async throws {
        let script = "test \"$(printf %s \"$0$A\" | od -An -tx1)\" = \" ff fe\""
        let command = ["sh", "-c", script].map { Array($0.utf8) } + [[0xFF]]
        let path = Array("PATH=/usr/bin:/bin".utf8)
        let ending = try await ChildProcess.run(
            command, environment: [path, [0x41, 0x3D, 0xFE]])
        #expect(ending == .exited(0))
    }

    @Test(
        "that cannot be started has the status that shells give",
        arguments: [
            ("/nowhere/x", ENOENT, 127), ("/etc/passwd", EACCES, 126), ("", ENOENT, 127),
        ] as [(String, CInt, Int32)])
    func start(_ command: String, _ code: CInt, _ status: Int32) async {
        let expected = StartFailure([Array(command.utf8)], code: code)
        await #expect(throws: expected) { try await Self.run([command], []) }
        #expect(expected.exitStatus == status)
    }

    @Test("gets the signals that come to us")
    func forwarding() async throws {
        // The child asks for the signal itself, once its trap is set.
        let script = "trap 'exit 42' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done"
        #expect(try await Self.run(["sh", "-c", script]) == .exited(42))
    }

    @Test(
        "Statuses are read as wait(2) has them",
        arguments: [
            (0x0700, ChildEnding.exited(7), 7), (0x0F, .signalled(15), 143),
            (0x8B, .signalled(11), 139),
        ] as [(CInt, ChildEnding, Int32)])
    func status(_ raw: CInt, _ ending: ChildEnding, _ expected: Int32) {
        #expect(ChildEnding(waitStatus: raw) == ending)
        #expect(ending.exitStatus == expected)
    }
}
