import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder reload`.
struct Reload: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have the running proxy read its configuration again, and say what came of it.",
        discussion: """
            The same as SIGHUP, which only the proxy's log tells about: settings marked "reload" are put \
            into force, log files are opened anew, and no connection is dropped. It names the settings \
            that changed and wait for a restart, and warns of what "larder config check" warns of. \
            Where the file is wrong or gone, everything stays as it was, and the exit status is 78.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        var client = try ControlClient(
            paths: try self.options.load().likelyControlSockets, patience: .seconds(60))
        var outcome: ReloadOutcome?
        do {
            try client.send(.reload) { reply in
                if case .reloaded(let told) = reply { outcome = told }
                return true
            }
        } catch let refusal as ControlRefusal where refusal.failure.code == .invalid {
            throw Self.failure(refusal)
        }
        for warning in outcome?.warnings ?? [] { try Output.line("\(warning) (warning)") }
        for line in Self.lines(outcome) { try Output.line(line) }
    }

    /// A line for each mistake of the file, as `larder config check` has them.
    static func failure(_ refusal: ControlRefusal) -> CommandFailure {
        var failure = CommandFailure(.configuration, "")
        failure.causes = refusal.description.split(separator: "\n").map(String.init)
        failure.remedy = "everything stays as it was"
        return failure
    }

    static func lines(_ outcome: ReloadOutcome?) -> [String] {
        guard let waiting = outcome?.needingRestart, !waiting.isEmpty else {
            return ["configuration reloaded"]
        }
        var lines = ["configuration reloaded; these changed, too, and wait for a restart:"]
        lines += waiting.map { "  \($0)" }
        if waiting.contains(where: Self.isRule) {
            lines.append(
                "the old rules hold until listeners and sessions are as the file has them")
        }
        return lines
    }

    /// Whether a setting is one that a reload puts into force otherwise.
    private static func isRule(_ path: String) -> Bool {
        ["access", "connect-ports", "routes", "injections", "cache-rules", "presets"].contains(path)
            || [
                ".credentials.answer", ".cache.store-set-cookie", ".cookies.show-set-cookie",
                ".authentication.password-file", ".authentication.token-file",
            ].contains { path.hasSuffix($0) }
    }
}
