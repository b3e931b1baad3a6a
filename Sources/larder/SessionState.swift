import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon
import LarderState

/// `--session` and `--principal`: whose cookies and credentials.
struct StateOptions: ParsableArguments {
    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption
    @OptionGroup var principal: PrincipalOption

    func open() throws -> SessionState {
        let loaded = try self.options.load()
        let settings = try self.session.find(in: loaded)
        return SessionState(
            loaded: loaded, settings: settings,
            principal: try self.principal.principal(in: settings))
    }
}

/// A client's part of a session that is split.
struct PrincipalOption: ParsableArguments {
    @Option(
        name: .customLong("principal"),
        help: ArgumentHelp(
            "Whose, in a session that is split: user:alice, uid:1000, address:192.0.2.1.",
            valueName: "principal"))
    var text: String?

    /// Its name as sessions have it: an address has many spellings, a number may begin with zeros, and
    /// principals have one form.
    var principal: String? { self.text.flatMap { try? Self.named(by: $0) } }

    /// The same, for a session.
    ///
    /// - Throws: where the session is split by something else, and so can have none of that name. One
    ///   that is not split (any more) may have parts left.
    func principal(in session: SessionSettings) throws(CommandFailure) -> String? {
        guard let principal = self.principal, session.principals != .none else {
            return self.principal
        }
        let kind = session.principals.rawValue
        guard principal.hasPrefix("\(kind):") else {
            throw CommandFailure(
                .data,
                "session \(session.name.text) is split by \(kind), and has no "
                    + Printable.text(principal),
                remedy: "write --principal \(kind):…, as \"larder cache list\" shows them")
        }
        return principal
    }

    func validate() throws {
        if let text = self.text { _ = try Self.named(by: text) }
    }

    private static func named(by text: String) throws(ValidationError) -> String {
        let shown = Printable.text(text)
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[1].isEmpty,
            let kind = PrincipalsWord(rawValue: String(parts[0])), kind != .none
        else {
            throw ValidationError(
                "--principal \(shown): write user:NAME, uid:NUMBER or address:ADDRESS")
        }
        switch kind {
        case .none, .user: return text
        case .uid:
            guard let user = try? UserID(settingText: String(parts[1])) else {
                throw ValidationError("--principal \(shown): write uid: and \(UserID.expectation)")
            }
            return "uid:\(user.number)"
        case .address:
            guard let address = IPAddress(parts[1]) else {
                throw ValidationError("--principal \(shown): that is no address")
            }
            return "address:\(address)"
        }
    }
}

/// The cookies and credentials of a session, as a command has them: asked of the running proxy, or
/// read from the session's state file where none runs.
struct SessionState {
    var loaded: LoadedSettings
    var settings: SessionSettings
    var principal: String?

    var name: String { self.settings.name.text }

    /// Hears each line of the answer to a command about cookies.
    func ask(
        _ command: CookieCommand, _ body: @escaping @Sendable (ControlReply) throws -> Void
    ) async throws {
        try await self.ask(
            .cookies(session: self.name, principal: self.principal, command), body)
    }

    /// Likewise about credentials.
    func ask(
        _ command: CredentialCommand, patience: Duration = .seconds(30),
        _ body: @escaping @Sendable (ControlReply) throws -> Void
    ) async throws {
        try await self.ask(
            .credentials(session: self.name, principal: self.principal, command),
            patience: patience, body)
    }

    private func ask(
        _ request: ControlRequest, patience: Duration = .seconds(30),
        _ body: @escaping @Sendable (ControlReply) throws -> Void
    ) async throws {
        if try self.isAnswered(request, patience, body) { return }
        try await StateAnswers(
            self.loaded, self.settings, environment: ProcessEnvironment.variables
        ) { event in
            if let text = StateText.line(event) { Output.note("larder: \(Printable.text(text))") }
        }.answer(request) { try body($0) }
    }

    /// Asks the running proxy; false where none runs, or none for this session.
    private func isAnswered(
        _ request: ControlRequest, _ patience: Duration, _ body: (ControlReply) throws -> Void
    ) throws -> Bool {
        guard var client = try self.loaded.runningProxy(patience: patience) else { return false }
        do {
            try client.send(request) {
                try body($0)
                return true
            }
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {
            return false
        }
        return true
    }
}

/// What a person should know of a state file.
enum StateText {
    /// nil for what went as it should.
    static func line(_ event: StateEvent) -> String? {
        switch event {
        case .keyMade(let path): "a key was made: \(path); without it nothing can be read again"
        case .begunAnew: "there was a key, and no state for it: a new one was made"
        case .missing(let path):
            "\(path) is gone; a new one is made when it is needed (where you moved it away, move "
                + "state.mdb-lock away, too)"
        case .setAside(let name, let reason):
            "the state could not be used (\(reason)) and lies under \(name) now; a new one was made"
        case .rotationFinished, .rotationUndone: nil
        case .rotationUnfinished(let key, let path, let cause):
            "the key that opens the state is \(key): put it in the place of \(path) (\(cause))"
        case .unreadable(let records):
            "\(Human.count(UInt64(clamping: records), "record")) cannot be opened, as they were "
                + "changed on the disk, and are left out"
        }
    }
}
