import Foundation
import Glibc
import Testing

@testable import larder

@Suite("Secrets come in", .timeLimit(.minutes(10)))
struct SecretInputTests {
    private static func words(_ text: String) -> [String]? {
        do throws(CommandFailure) {
            return try CommandWords.split(text)
        } catch {
            return nil
        }
    }

    @Test(
        "A command is cut as a shell would, and nothing in it is expanded",
        arguments: [
            ("pass show x", ["pass", "show", "x"]), ("  a\t b  ", ["a", "b"]),
            ("a 'b c' d", ["a", "b c", "d"]), ("a \"b 'c'\" ''", ["a", "b 'c'", ""]),
            ("a \"\\\"\\\\\\n\"", ["a", "\"\\\\n"]), ("a b\\ c", ["a", "b c"]),
            ("echo $HOME `id` *;x", ["echo", "$HOME", "`id`", "*;x"]), ("a'b'\"c\"", ["abc"]),
            ("a 'b", nil), ("a \"b", nil), ("a \\", nil), ("", nil), ("  ", nil), ("''", nil),
        ] as [(String, [String]?)])
    func split(_ text: String, _ expected: [String]?) {
        #expect(Self.words(text) == expected)
    }

    @Test(
        "What a command prints is the secret, without the end of its line",
        arguments: [
            ("printf s3cret", "s3cret"), ("printf 's3cret\\n'", "s3cret"),
            ("printf 's3cret\\r\\n'", "s3cret"), ("printf 'a\\n\\n'", "a\n"),
            ("printf ''", ""), ("printf $HOME", "$HOME"),
        ])
    func command(_ command: String, _ expected: String) throws {
        let input = SecretInput.command(try CommandWords.split(command))
        #expect(try input.read() == Array(expected.utf8))
    }

    @Test(
        "A command that fails, is not there or prints without end gives none, and is not repeated",
        arguments: [
            ("sh -c 'echo s3cret; exit 3'", larder.ExitStatus.noInput), ("/nowhere/x", .noInput),
            ("sh -c 'while :; do echo s3cret; done'", .data),
            ("sh -c 'echo s3cret; kill -9 $$'", .noInput),
        ])
    func failing(_ command: String, _ status: larder.ExitStatus) throws {
        let input = SecretInput.command(try CommandWords.split(command))
        do throws(CommandFailure) {
            _ = try input.read()
            Issue.record("no failure")
        } catch {
            #expect(error.status == status)
            #expect(!error.lines.joined().contains("s3cret;") && error.remedy != "s3cret")
        }
    }

    @Test("A file is read without the end of its last line, and not beyond the limit")
    func file() throws {
        let path = "/tmp/larder-secret-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("s3cret\n".utf8).write(to: URL(fileURLWithPath: path))
        #expect(try SecretInput.file(path).read() == Array("s3cret".utf8))
        try Data(count: SecretInput.largest + 1).write(to: URL(fileURLWithPath: path))
        #expect(throws: CommandFailure.self) { try SecretInput.file(path).read() }
        #expect(throws: CommandFailure.self) { try SecretInput.file(path + "-none").read() }
    }

    /// A terminal without a shell: what is typed goes in at one end.
    private final class Terminal {
        let master: CInt
        let path: String

        init() throws {
            self.master = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            try #require(self.master >= 0)
            // TIOCSPTLCK and TIOCGPTN of ioctl_tty(2), which are not imported.
            var number: CInt = 0
            try #require(unsafe ioctl(self.master, 0x4004_5431, &number) == 0)
            try #require(unsafe ioctl(self.master, 0x8004_5430, &number) == 0)
            self.path = "/dev/pts/\(number)"
        }

        deinit { close(self.master) }

        /// What the terminal shows, up to and with `mark`.
        func read(through mark: String) -> String {
            var shown: [UInt8] = []
            while !String(decoding: shown, as: UTF8.self).contains(mark) {
                var piece = [UInt8](repeating: 0, count: 256)
                let count = unsafe Glibc.read(self.master, &piece, piece.count)
                guard count > 0 else { break }
                shown += piece.prefix(count)
            }
            return String(decoding: shown, as: UTF8.self)
        }

        func type(_ text: String) {
            let bytes = Array(text.utf8)
            _ = unsafe write(self.master, bytes, bytes.count)
        }

        var isEchoing: Bool {
            var state = termios()
            return unsafe tcgetattr(self.master, &state) == 0
                && state.c_lflag & tcflag_t(ECHO) != 0
        }
    }

    @Test("A prompt hides what is typed, and leaves the terminal as it was")
    func prompt() async throws {
        let terminal = try Terminal()
        #expect(terminal.isEchoing)
        let path = terminal.path
        async let typed = Task.detached { () throws -> [UInt8] in
            try SecretPrompt.ask("Secret of x: ", terminal: path)
        }.value
        var shown = terminal.read(through: "Secret of x: ")
        #expect(!terminal.isEchoing)
        terminal.type("s3crét\n")
        let secret = try await typed
        #expect(secret == Array("s3crét\n".utf8))
        shown += terminal.read(through: "\n")
        #expect(!shown.contains("s3cr"), "\(shown)")
        #expect(terminal.isEchoing)
    }

    @Test("Without a terminal nobody is asked")
    func noTerminal() {
        do throws(CommandFailure) {
            _ = try SecretPrompt.ask("Secret: ", terminal: "/dev/null/none")
            Issue.record("no failure")
        } catch {
            #expect(error.status == .noInput)
        }
    }
}
