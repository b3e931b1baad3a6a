import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("A session's own cookies", .timeLimit(.minutes(10)))
struct SessionCookieTests {
    private static let jar = "sessions: {default: {cookies: {mode: jar}}}"
    private static let secrets = Secrets("persist-8Qd2xT", "session-5Lw9zR")

    /// Sets a persistent cookie and one of the session at `/login`.
    private static func answer(_ request: Message) -> String {
        switch request.target {
        case "/login":
            response(
                "200 OK", "Set-Cookie: keep=persist-8Qd2xT; Max-Age=86400",
                "Set-Cookie: sid=session-5Lw9zR", body: "welcome", cache: "no-store")
        default: response("200 OK", body: "ok", cache: "no-store")
        }
    }

    /// The cookies of the last request that came.
    private func cookies(_ origin: ScriptedOrigin) -> [String] {
        origin.requests.value.last?.cookies ?? []
    }

    @Test(
        "Persistent ones outlive the proxy, also its death; the others, and plain values, do not",
        arguments: [false, true])
    func restart(_ crashes: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(Self.jar)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = try await home.serve()
            let login = try await proxy.get(origin.url("/login"))
            #expect(login.status == 200 && !login.has("Set-Cookie"))
            _ = try await proxy.get(origin.url("/a"))
            #expect(self.cookies(origin) == ["keep=persist-8Qd2xT", "sid=session-5Lw9zR"])
            // A change that a person makes is kept when the command ends, and with it those before.
            let deleted = try await home.larder("cookies", "clear", "--domain", "none.example")
            #expect(deleted.outText == "0\n", "\(deleted.errText)")
            var said = ""
            if crashes {
                try await proxy.crash()
            } else {
                let end = try await proxy.stop()
                #expect(end.status == 0)
                said = end.errText
            }
            #expect(Self.secrets.found(in: said).isEmpty)
            #expect(try Self.secrets.found(below: home.path).isEmpty)
            let again = try await home.serve()
            _ = try await again.get(origin.url("/b"))
            #expect(self.cookies(origin) == ["keep=persist-8Qd2xT"])
            #expect(try await again.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("A session with nothing to keep leaves no key and no file; the first cookie makes both")
    func nothingToKeep() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let all = "\(home.path)/state"
            for settings in ["", Self.jar] {
                try home.configure(settings)
                let proxy = try await home.serve()
                _ = try await proxy.get(origin.url("/a"))
                let rotated = try await home.larder("credentials", "rotate-key")
                #expect(rotated.status != 0 && rotated.errText.contains("no state on disk"))
                #expect(try FileManager.default.subpathsOfDirectory(atPath: all).isEmpty)
                if !settings.isEmpty {
                    _ = try await proxy.get(origin.url("/login"))
                    let listed = try await home.larder("cookies", "list")
                    #expect(listed.lines.count == 3)
                }
                let end = try await proxy.stop()
                #expect(end.status == 0)
                #expect(end.errText.contains("key made") == !settings.isEmpty, "\(end.errText)")
            }
            let found = try FileManager.default.subpathsOfDirectory(atPath: all)
            #expect(
                Set(found).isSuperset(of: ["larder/default.key", "larder/default/state.mdb"]))
            await origin.stop()
        }
    }

    @Test("The commands say the same of a running proxy's jar and of the file it leaves")
    func commands() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(Self.jar)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let proxy = try await home.serve()
            _ = try await proxy.get(origin.url("/login"))
            let running = try await home.larder("cookies", "list")
            #expect(running.lines.count == 3, "\(running.outText)\(running.errText)")
            #expect(Self.secrets.found(in: running.outText).isEmpty)
            let shown = try await home.larder("cookies", "show", "keep", "--reveal")
            #expect(shown.outText.contains("persist-8Qd2xT"))
            let value = try home.secretFile("by-hand-3Xc7\n", named: "value")
            let set = try await home.larder(
                "cookies", "set", "own", "--domain", "127.0.0.1", "--expires", "2 d",
                "--value-from",
                value)
            #expect(set.status == 0, "\(set.errText)")
            _ = try await proxy.get(origin.url("/a"))
            #expect(self.cookies(origin).contains("own=by-hand-3Xc7"))
            let refused = try await home.larder(
                "cookies", "set", "__Host-x", "--domain", "127.0.0.1", "--value-from", value)
            #expect(refused.status == 65 && refused.errText.contains("host-prefix"))
            #expect(try await proxy.stop().status == 0)

            let offline = try await home.larder("cookies", "list", "--json")
            #expect(offline.lines.count == 2, "\(offline.outText)\(offline.errText)")
            #expect(Secrets("persist-8Qd2xT", "by-hand-3Xc7").found(in: offline.outText).isEmpty)
            let gone = try await home.larder("cookies", "delete", "own")
            #expect(gone.outText == "1\n")
            let none = try await home.larder("cookies", "delete", "own")
            #expect(none.status == 1)
            let brief = try await home.larder(
                "cookies", "set", "brief", "--domain", "127.0.0.1", "--value-from", value)
            #expect(brief.status == 69, "\(brief.errText)")
            let cleared = try await home.larder("cookies", "clear")
            #expect(cleared.outText == "1\n")
            await origin.stop()
        }
    }

    @Test("Of a session without a jar they say the same with a proxy and without, and what it kept")
    func withoutJar() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            try await self.look(home, kept: 0)
            let bare = try await home.serve()
            try await self.look(home, kept: 0)
            #expect(try await bare.stop().status == 0)

            try home.configure(Self.jar)
            let keeping = try await home.serve()
            _ = try await keeping.get(origin.url("/login"))
            #expect(try await keeping.stop().status == 0)

            try home.configure("")
            try await self.look(home, kept: 1)
            let proxy = try await home.serve()
            try await self.look(home, kept: 1)
            let deleted = try await home.larder("cookies", "delete", "keep")
            #expect(deleted.outText == "1\n", "\(deleted.errText)")
            try await self.look(home, kept: 0)
            #expect(try await proxy.stop().status == 0)
            try await self.look(home, kept: 0)
            await origin.stop()
        }
    }

    /// What the commands say of a session without a jar, whose file holds so many cookies.
    private func look(_ home: Home, kept: Int) async throws {
        let listed = try await home.larder("cookies", "list", "--json")
        #expect(listed.status == 0 && listed.lines.count == kept, "\(listed.errText)")
        #expect(listed.errText.contains("it passes them on") == (kept == 0))
        let shown = try await home.larder("cookies", "show", "keep")
        #expect(shown.status == (kept == 0 ? 1 : 0), "\(shown.errText)")
        let none = try await home.larder("cookies", "delete", "none")
        #expect(none.status == 1, "\(none.errText)")
        let cleared = try await home.larder("cookies", "clear", "--domain", "none.example")
        #expect(cleared.status == 0 && cleared.outText == "0\n", "\(cleared.errText)")
        let value = try home.secretFile("by-hand-3Xc7\n", named: "value")
        let set = try await home.larder(
            "cookies", "set", "own", "--domain", "127.0.0.1", "--expires", "2 d", "--value-from",
            value)
        #expect(set.status == 65 && set.errText.contains("it passes them on"), "\(set.errText)")
    }

    @Test("Where what a session kept cannot be had, the proxy runs on, and commands say so")
    func unopened() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(Self.jar)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let keeping = try await home.serve()
            _ = try await keeping.get(origin.url("/login"))
            #expect(try await keeping.stop().status == 0)

            let (state, files) = ("\(home.state)/default/state.mdb", FileManager.default)
            try files.moveItem(atPath: state, toPath: "\(state).moved")
            // Damaged, and not to be set aside any more.
            for number in 1...16 {
                _ = files.createFile(atPath: "\(state).damaged-\(number)", contents: nil)
            }
            try Data(repeating: 0x21, count: 65536).write(to: URL(fileURLWithPath: state))
            try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: state)
            for configuration in [Self.jar, ""] {
                try home.configure(configuration)
                let proxy = try await home.serve()
                for command in [["list"], ["clear"], ["delete", "keep"], ["show", "keep"]] {
                    let told = try await home.larder(["cookies"] + command)
                    #expect(told.status == 69, "\(command): \(told.errText)")
                    #expect(told.errText.contains("state could not be opened"), "\(told.errText)")
                }
                let credentials = try await home.larder("credentials", "list")
                #expect(credentials.status == 69, "\(credentials.errText)")
                #expect(try await proxy.stop().status == 0)
            }
            try files.removeItem(atPath: state)
            try files.moveItem(atPath: "\(state).moved", toPath: state)
            #expect(try await home.larder("cookies", "list").lines.count == 2)
            await origin.stop()
        }
    }

    @Test("curl reads what is exported, and what curl saved is imported")
    func curl() async throws {
        try await self.exchange { home, origin, file in
            // Not by the proxy.
            try Program(
                "/usr/bin/curl", ["-s", "--noproxy", "*", "-b", file, origin.url("/from")],
                environment: home.environment)
        } saves: { home, origin, file in
            try Program(
                "/usr/bin/curl", ["-s", "--noproxy", "*", "-c", file, origin.url("/login")],
                environment: home.environment)
        }
    }

    @Test("wget likewise")
    func wget() async throws {
        try await self.exchange { home, origin, file in
            try Program(
                "/usr/bin/wget",
                [
                    "-q", "--no-proxy", "-O", "/dev/null", "--load-cookies", file,
                    origin.url("/from"),
                ],
                environment: home.environment)
        } saves: { home, origin, file in
            try Program(
                "/usr/bin/wget",
                [
                    "-q", "--no-proxy", "-O", "/dev/null", "--keep-session-cookies",
                    "--save-cookies", file, origin.url("/login"),
                ], environment: home.environment)
        }
    }

    private func exchange(
        loads: (Home, ScriptedOrigin, String) throws -> Program,
        saves: (Home, ScriptedOrigin, String) throws -> Program
    ) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(Self.jar)
            let origin = try await ScriptedOrigin.answering { Self.answer($0) }
            let (out, back) = ("\(home.path)/out.txt", "\(home.path)/back.txt")
            let proxy = try await home.serve()
            _ = try await proxy.get(origin.url("/login"))
            let exported = try await home.larder("cookies", "export", out)
            #expect(exported.status == 0, "\(exported.errText)")
            let mode = try FileManager.default.attributesOfItem(atPath: out)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            #expect(try await home.larder("cookies", "export", out).status == 73)
            #expect(try await home.larder("cookies", "export", out, "--force").status == 0)
            #expect(try await loads(home, origin, out).ended().status == 0)
            #expect(
                Set(self.cookies(origin)) == ["keep=persist-8Qd2xT", "sid=session-5Lw9zR"])

            #expect(try await home.larder("cookies", "clear").outText == "2\n")
            #expect(try await saves(home, origin, back).ended().status == 0)
            let imported = try await home.larder("cookies", "import", back)
            #expect(imported.outText == "taken: 2\n", "\(imported.errText)")
            _ = try await proxy.get(origin.url("/after"))
            #expect(
                Set(self.cookies(origin)) == ["keep=persist-8Qd2xT", "sid=session-5Lw9zR"])
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }
}
