import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("An ephemeral session leaves nothing", .timeLimit(.minutes(10)))
struct EphemeralSessionTests {
    private static let secrets = Secrets("cookie-9Wf3hN", "password-1Ks7dM")
    /// The field for `alice:password-1Ks7dM`.
    private static let basic = "Basic YWxpY2U6cGFzc3dvcmQtMUtzN2RN"

    private static func answer(_ request: Message) -> String {
        if request.target == "/account", request["Authorization"] != Self.basic {
            return response(
                "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", body: "who?", cache: nil)
        }
        return response(
            "200 OK", "Set-Cookie: keep=cookie-9Wf3hN; Max-Age=86400", body: "hello")
    }

    @Test(
        "with a cache, cookies and credentials, from start to end, nor opens a file to write",
        .enabled(if: WriteTrace.isPossible))
    func traced() async throws {
        try await Scene.inTurn {
            let (home, outside) = (try Home(), try Home())
            try home.configure(
                """
                listeners: [{address: '127.0.0.1:0', session: ephemeral}]
                sessions: {ephemeral: {kind: ephemeral, cookies: {mode: jar}}}
                """)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let secret = try outside.secretFile("password-1Ks7dM", named: "secret")
            let before = home.tree.filter { !$0.key.hasPrefix("run") }
            let trace = WriteTrace(file: outside.path + "/trace")
            // -D: the proxy itself is the child, and gets the signals.
            let program = try home.start(
                ["-D"] + trace.arguments + [
                    Program.larder, "serve", "--config", home.configuration,
                ], path: WriteTrace.strace)
            let proxy = ProxyProcess(program)
            do {
                try await proxy.announced()
            } catch {
                program.signal(SIGKILL)
                return withKnownIssue(
                    "strace is not permitted here: \(error)", isIntermittent: true
                ) {}
            }
            let added = try await home.larder(
                "credentials", "add", "--session", "ephemeral", "--host", "127.0.0.1", "--port",
                "\(origin.port)", "--scheme", "http", "--realm", "r", "--user", "alice",
                "--secret-from", secret)
            #expect(added.status == 0, "\(added.errText)")
            #expect(added.errText.contains("kept until the proxy ends"))
            for path in ["/a", "/a", "/account"] {
                #expect(try await proxy.get(origin.url(path)).status == 200)
            }
            #expect(origin.requests.value.last?.cookies == ["keep=cookie-9Wf3hN"])
            let listed = try await home.larder("cookies", "list", "--session", "ephemeral")
            #expect(listed.lines.count == 2, "\(listed.errText)")
            let end = try await proxy.stop()
            #expect(end.status == 0)
            #expect(Self.secrets.found(in: end.errText).isEmpty)
            #expect(home.tree.filter { !$0.key.hasPrefix("run") } == before)
            #expect(try Self.secrets.found(below: home.path).isEmpty)
            // Directories for the control socket lie where the system keeps no file.
            let writes = try trace.writes(except: "\(home.path)/run")
            #expect(writes.isEmpty, "\(writes.prefix(5))")
            await origin.stop()
        }
    }

    @Test("Without its proxy it has no cookies and no credentials, and cannot be given any")
    func offline() async throws {
        let home = try Home()
        try home.configure("")
        for verb in ["cookies", "credentials"] {
            let list = try await home.larder(verb, "list", "--session", "ephemeral")
            #expect(list.status == 0 && list.out.isEmpty, "\(list.errText)")
        }
        let added = try await home.addCredential(
            "password-1Ks7dM", ["x", "--user", "alice", "--session", "ephemeral"])
        #expect(added.status == 69)
        #expect(added.errText.contains("larder serve"), "\(added.errText)")
        #expect(!FileManager.default.fileExists(atPath: home.state))
    }
}
