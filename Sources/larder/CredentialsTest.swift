import ArgumentParser
import LarderControl

/// The verb `larder credentials test NAME URL`.
struct CredentialsTest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Ask for a URL with a credential, and tell what came of it.",
        discussion: """
            One request as a client of the session would make it, with this credential and no other; \
            nothing is stored. Over plain http nothing is shown to the origin unless --insecure is given.

            Exit status: 0 when the origin accepted it, 77 when it refused it or was not answered, \
            1 when it never asked for one, 69 when no answer came.
            """)

    @Argument(help: "The credential's name.")
    var name: String

    @Argument(help: "The URL.")
    var url: String

    @OptionGroup var state: StateOptions

    @Flag(help: "Show it to the origin over plain http, too.")
    var insecure = false

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() async throws {
        let state = try self.state.open()
        let told = Gathered<CredentialTrial?>(nil)
        // As long as the slowest of origins may take.
        try await state.ask(
            .test(.named(self.name), url: self.url, isInsecure: self.insecure),
            patience: .seconds(300)
        ) { reply in
            if case .credentialTrial(let trial) = reply { told.change { $0 = trial } }
        }
        guard let trial = told.value else {
            throw CommandFailure(.unavailable, "the proxy did not tell what came of it")
        }
        if self.json {
            try Output.line(try JSONLine.of(trial))
        } else {
            try Output.line("\(self.name): \(Self.text(trial))")
        }
        let status = Self.status(of: trial.verdict)
        if status != .done { throw ExitCode(status.rawValue) }
    }

    static func status(of verdict: CredentialTrial.Verdict) -> ExitStatus {
        switch verdict {
        case .accepted: .done
        case .refused, .unanswered: .notPermitted
        case .unasked: .nothingFound
        case .failed: .unavailable
        }
    }

    /// Reads as `accepted: 200, sent as digest`.
    static func text(_ trial: CredentialTrial) -> String {
        let verdict =
            switch trial.verdict {
            case .accepted: "accepted"
            case .refused: "refused"
            case .unasked: "not asked for"
            case .unanswered: "not shown"
            case .failed: "no answer"
            }
        var facts: [String] = []
        if let status = trial.status { facts.append("\(status)") }
        if let scheme = trial.scheme { facts.append("sent as \(scheme)") }
        if let detail = trial.detail { facts.append(detail) }
        return Printable.text(
            facts.isEmpty ? verdict : "\(verdict): \(facts.joined(separator: ", "))")
    }
}

/// The verb `larder credentials rotate-key`.
struct CredentialsRotateKey: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate-key",
        abstract: "Encrypt the cookies and credentials of a session under a new key.",
        discussion: """
            The old key is gone when this ends; broken off, either the old key or the new one \
            opens everything.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() async throws {
        let loaded = try self.options.load()
        let state = SessionState(
            loaded: loaded, settings: try self.session.find(in: loaded), principal: nil)
        let activity = ActivityLine()
        defer { activity.clear() }
        let told = Gathered<KeyRotation?>(nil)
        try await state.ask(CredentialCommand.rotateKey, patience: .seconds(60)) { reply in
            switch reply {
            case .progress(let count):
                activity.show(at: wallClockMicroseconds()) { "\(Human.count(count, "record"))" }
            case .keyRotated(let rotation): told.change { $0 = rotation }
            default: break
            }
        }
        activity.clear()
        guard let rotation = told.value else {
            throw CommandFailure(.unavailable, "the proxy did not tell what it had done")
        }
        if self.json { return try Output.line(try JSONLine.of(rotation)) }
        try Output.line(
            "\(Human.count(rotation.records, "record")) under a new key, which is in "
                + Printable.text(rotation.keyFile))
    }
}
