import ArgumentParser
import Glibc

/// The command: one verb a file.
struct Larder: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder",
        abstract: "A caching HTTP proxy, and a look into its cache.",
        discussion: """
            Programs use the proxy through http_proxy and https_proxy. "larder serve" runs it; \
            "larder run -- COMMAND" runs one for a single command.

            Exit status: 0 done, 1 nothing was found, 2 damage was found, 64 wrong usage, \
            65 wrong input, 66 no input, 69 not available (no proxy runs, a port is in use), 70 a fault of Larder's, 73 cannot \
            be made, 74 input or output failed, 77 not permitted, 78 a configuration with mistakes. \
            "run" passes on the command's own status, and 126, 127 or 128+SIGNAL as shells do.
            """,
        version: Release.line,
        subcommands: [
            Serve.self, Status.self, Reload.self, Run.self, Cache.self, Fetches.self,
            Transfers.self, Cookies.self, Credentials.self, Explain.self, Config.self, Version.self,
        ])
}

@main
enum Main {
    static func main() async {
        StandardDescriptors.fill()
        do {
            var command = try Larder.parseAsRoot(OwnStart.words)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            try Output.flush()
        } catch {
            try? Output.flush()
            Self.end(error)
        }
    }

    /// Says what went wrong in one line, and exits with its status.
    private static func end(_ error: any Error) -> Never {
        let failure = CommandFailure(error)
        if let failure {
            Output.failure(failure)
            exit(failure.status.rawValue)
        }
        let code = Larder.exitCode(for: error)
        // Help and the version are asked for by throwing, too; an ExitCode has nothing to say.
        guard code != .success, !(error is ExitCode) else { Larder.exit(withError: error) }
        Output.failure(
            NearestVerb.failure(of: OwnStart.words)
                ?? CommandFailure(
                    .usage, Self.line(Larder.message(for: error)), remedy: "see \"larder help\""))
        exit(ExitStatus.usage.rawValue)
    }

    /// A message of the argument parser's in one line: it lists values below each other.
    static func line(_ message: String) -> String {
        let lines = message.split(separator: "\n").map { $0.drop { $0 == " " || $0 == "-" } }
        guard let first = lines.first, lines.count > 1 else { return message }
        return "\(first) \(lines.dropFirst().joined(separator: ", "))"
    }
}
