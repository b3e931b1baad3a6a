import ArgumentParser
import Glibc
import LarderControl

/// The verb `larder cookies export FILE`.
struct CookiesExport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the cookies of a session to a file, values and all.",
        discussion: """
            A Netscape cookie file, which curl -b and wget --load-cookies read, or JSON. The file \
            is readable by its owner alone, and has no name until it is whole. Nothing is written \
            to a terminal unless --reveal is given.
            """)

    @Argument(help: "The file; - is standard output.", completion: .file())
    var file: String

    @Option(
        help: ArgumentHelp(
            "Only cookies of this domain and of names below it.", valueName: "domain"))
    var domain: String?

    @Option(
        help: ArgumentHelp(
            "The file's format: netscape or json; else by the end of its name.", valueName: "format"
        ))
    var format: CookieFormat?

    @OptionGroup var state: StateOptions

    @Flag(help: "Write over a file of that name.")
    var force = false

    @Flag(help: "Write to a terminal, where the values are seen.")
    var reveal = false

    func run() async throws {
        if !self.reveal, Self.isTerminal(self.file) {
            throw CommandFailure(
                .usage, "the values would be seen on the terminal",
                remedy: "name a file, or give --reveal")
        }
        let state = try self.state.open()
        // A file that is in the way is told of before anybody is asked for secrets.
        let output = try ArchiveFile(name: self.file, replaces: self.force)
        let cookies = try await state.cookies(CookieFilter(domain: self.domain), reveals: true)
        let (bytes, leftOut) = CookieFile.write(
            cookies, self.format ?? .of(self.file), now: wallClockMicroseconds())
        try output.write(bytes)
        try output.finish()
        for name in leftOut {
            Output.note("larder: left out, as the format cannot hold it: \(Printable.text(name))")
        }
        let text = "exported: \(cookies.count - leftOut.count)"
        if self.file == "-" { Output.note(text) } else { try Output.line(text) }
        if !leftOut.isEmpty { throw ExitCode(ExitStatus.damageFound.rawValue) }
    }

    private static func isTerminal(_ file: String) -> Bool {
        if file == "-" { return isatty(STDOUT_FILENO) == 1 }
        let descriptor = unsafe open(file, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return isatty(descriptor) == 1
    }
}
