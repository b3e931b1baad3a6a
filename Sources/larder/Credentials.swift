import ArgumentParser
import LarderControl
import LarderHTTP

/// The verb `larder credentials …`.
struct Credentials: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keep, list, try and remove the credentials of a session.",
        discussion: """
            By name, as rules of injection and parent proxies speak of them, or by protection \
            space (host, port, scheme, realm, method), as challenges ask for them. A secret is \
            asked for at the terminal, or read from standard input, a file or a command; it is \
            never shown again, and what is permanent lies encrypted in the session's state file.

            In a session that is split by principal each has credentials of its own, under \
            --principal. Without it they are those of all: rules of injection use them where a \
            principal has none of that name, and parent proxies use them alone.
            """,
        subcommands: [
            CredentialsAdd.self, CredentialsList.self, CredentialsTest.self,
            CredentialsRemove.self, CredentialsRotateKey.self,
        ])
}

/// The arguments that name a credential: a name, or a protection space and a user.
struct CredentialArguments: ParsableArguments {
    @Argument(help: "The name, by which rules speak of it.")
    var name: String?

    @Option(
        help: ArgumentHelp("The protection space's host, the one that asks.", valueName: "host"))
    var host: String?

    @Option(help: ArgumentHelp("The host's port; else that of the scheme.", valueName: "port"))
    var port: UInt16?

    @Option(help: ArgumentHelp("The host's scheme: https or http.", valueName: "scheme"))
    var scheme: String?

    @Option(
        help: ArgumentHelp(
            "The realm that the host names, as Basic and Digest do; \"\" where it names none.",
            valueName: "realm"))
    var realm: String?

    @Option(
        help: ArgumentHelp(
            "The method of authentication: basic, digest, ntlm, negotiate, or default, the one that "
                + "the host asks for (the default).", valueName: "method"),
        completion: .list(SpaceRecord.methods))
    var method: String?

    @Option(help: ArgumentHelp("The user's name.", valueName: "user"))
    var user: String?

    /// nil where a name is meant.
    var space: SpaceRecord? {
        get throws(CommandFailure) {
            guard let host = self.host else {
                guard self.port == nil, self.scheme == nil, self.realm == nil, self.method == nil
                else {
                    throw CommandFailure(
                        .usage, "a protection space without a host", remedy: "give --host, too")
                }
                return nil
            }
            guard self.name == nil else {
                throw CommandFailure(
                    .usage, "both a name and a protection space are given",
                    remedy: "give NAME, or --host and what belongs to it")
            }
            let scheme = (self.scheme ?? "https").lowercased()
            guard let usual = ["https": 443, "http": 80][scheme] as UInt16? else {
                throw CommandFailure(
                    .usage, "there is no --scheme \"\(scheme)\"", remedy: "there are: https, http")
            }
            return SpaceRecord(
                host: host.lowercased(), port: self.port ?? usual, scheme: scheme,
                realm: self.realm, method: try self.knownMethod)
        }
    }

    private var knownMethod: String {
        get throws(CommandFailure) {
            let method = (self.method ?? "default").lowercased()
            guard SpaceRecord.methods.contains(method) else {
                throw CommandFailure(
                    .usage, "there is no --method \"\(Printable.text(method))\"",
                    remedy: "there are: \(SpaceRecord.methods.joined(separator: ", "))")
            }
            return method
        }
    }

    func credential() throws(CommandFailure) -> CredentialReference {
        if let space = try self.space {
            guard let user = self.user else {
                throw CommandFailure(
                    .usage, "no user of \(space.host) is named", remedy: "give --user")
            }
            return .space(space, user: user)
        }
        guard let name = self.name else {
            throw CommandFailure(
                .usage, "no credential is named",
                remedy: "give NAME, or --host and what belongs to it")
        }
        return .named(name)
    }
}

/// The verb `larder credentials add`.
struct CredentialsAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Keep a credential, in place of the one of that name.",
        discussion: """
            larder credentials add NAME --kind password --user USER
            larder credentials add NAME --kind bearer --secret-command "pass show token"
            larder credentials add NAME --kind field --field X-Api-Key --secret-from FILE
            larder credentials add --host HOST --realm REALM --method digest --user USER
            """)

    private static let kinds = ["password", "bearer", "field"]
    private static let persistences = ["permanent", "for-session"]

    @OptionGroup var which: CredentialArguments

    @Option(
        help: ArgumentHelp(
            "What the secret is: password (the default), bearer or field.", valueName: "kind"),
        completion: .list(CredentialsAdd.kinds))
    var kind: String?

    @Option(help: ArgumentHelp("The name of the field that it is sent in.", valueName: "name"))
    var field: String?

    @Option(
        help: ArgumentHelp(
            "How long it is kept: permanent, or for-session: in memory, until the proxy ends.",
            valueName: "how"), completion: .list(CredentialsAdd.persistences))
    var persistence = "permanent"

    @Flag(name: .customLong("default"), help: "Offer it first in its protection space.")
    var isDefault = false

    @OptionGroup var secret: SecretArguments
    @OptionGroup var state: StateOptions

    @Argument(help: .hidden)
    var rest: [String] = []

    func run() async throws {
        let (record, input) = try self.checked()
        let state = try self.state.open()
        var octets = try input.read()
        defer { octets.wipe() }
        guard !octets.isEmpty else {
            throw CommandFailure(.noInput, "the secret is empty", remedy: "give one")
        }
        let kept = Gathered<[CredentialRecord]>([])
        try await state.ask(.put(record, secret: ControlSecret(octets))) { reply in
            if case .credentials(let records) = reply { kept.change { $0 += records } }
        }
        guard let found = kept.value.first else {
            throw CommandFailure(.unavailable, "the proxy did not tell what it keeps")
        }
        if found.persistence != record.persistence {
            Output.note("larder: kept until the proxy ends: the session keeps nothing on disk")
        }
    }

    /// What is wrong is said before anybody is asked for a secret.
    func checked() throws(CommandFailure) -> (CredentialRecord, SecretInput) {
        let asked = "Secret of \(Printable.text(self.which.name ?? self.which.user ?? "")): "
        let input = try self.secret.input(asking: asked, rest: self.rest)
        if let user = self.which.user, user.contains(":") {
            // Most likely a password follows it: it is not repeated.
            throw CommandFailure.exposedSecret
        }
        guard Self.persistences.contains(self.persistence) else {
            throw CommandFailure(
                .usage, "there is no --persistence \"\(self.persistence)\"",
                remedy: "there are: \(Self.persistences.joined(separator: ", "))")
        }
        try self.checkHost()
        let name = try self.which.credential()
        if case .space(let space, _) = name { try self.checkRealm(of: space) }
        let kind = try self.checkedKind(name)
        return (
            CredentialRecord(
                name: name, kind: kind, user: kind == "password" ? self.which.user : nil,
                field: self.field, persistence: self.persistence, isDefault: self.isDefault), input
        )
    }

    /// No challenge comes from a host whose name holds a port or anything else.
    private func checkHost() throws(CommandFailure) {
        guard let host = self.which.host else { return }
        let bytes = Array(host.utf8)
        guard let authority = try? Authority(parsing: bytes.span), authority.port == nil else {
            throw CommandFailure(
                .data, "\"\(Printable.text(host))\" is no host",
                remedy: "write h.example, 192.0.2.1 or [2001:db8::1], and a port as --port")
        }
    }

    /// A challenge of Basic or Digest names a realm, one of the others none: what is kept for another
    /// space is never asked for.
    private func checkRealm(of space: SpaceRecord) throws(CommandFailure) {
        let hasNone = ["ntlm", "negotiate"].contains(space.method)
        if hasNone, space.realm != nil {
            throw CommandFailure(
                .usage, "\(space.method) knows no realm", remedy: "leave --realm out")
        }
        if !hasNone, space.realm == nil {
            throw CommandFailure(
                .usage, "no realm of \(Printable.text(space.host)) is named",
                remedy: "give --realm, as its WWW-Authenticate has it (\"\" for none), or --method "
                    + "ntlm or negotiate")
        }
    }

    private func checkedKind(_ name: CredentialReference) throws(CommandFailure) -> String {
        let kind = self.kind ?? (self.field == nil ? "password" : "field")
        guard Self.kinds.contains(kind) else {
            throw CommandFailure(
                .usage, "there is no --kind \"\(kind)\"",
                remedy: "there are: \(Self.kinds.joined(separator: ", "))")
        }
        if case .space = name, kind != "password" {
            throw CommandFailure(
                .usage, "a protection space is answered by user and password",
                remedy: "give a \(kind) a name, and a rule of injection")
        }
        if kind == "password", self.which.user == nil {
            throw CommandFailure(.usage, "a password needs a user", remedy: "give --user")
        }
        if (kind == "field") != (self.field != nil) {
            throw CommandFailure(
                .usage, "--field belongs to --kind field, and that to it",
                remedy: "give both or none")
        }
        if kind != "password", self.which.user != nil {
            throw CommandFailure(
                .usage, "a \(kind) has no user", remedy: "leave --user out")
        }
        return kind
    }
}

/// The verb `larder credentials list`.
struct CredentialsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the credentials of a session, without their secrets.")

    @OptionGroup var state: StateOptions

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func run() async throws {
        let found = Gathered<[CredentialRecord]>([])
        try await self.state.open().ask(CredentialCommand.list) { reply in
            if case .credentials(let records) = reply { found.change { $0 += records } }
        }
        let rows = found.value.map { CredentialRow($0) }
        if self.json {
            for row in rows { try Output.line(try JSONLine.of(row)) }
            return
        }
        for line in CredentialRow.table(rows, width: Output.width) { try Output.line(line) }
    }
}

/// The verb `larder credentials remove`.
struct CredentialsRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Forget a credential.")

    @OptionGroup var which: CredentialArguments
    @OptionGroup var state: StateOptions

    func run() async throws {
        let name = try self.which.credential()
        let removed = Gathered<UInt64>(0)
        try await self.state.open().ask(CredentialCommand.remove(name)) { reply in
            if case .removed(let count) = reply { removed.change { $0 += count } }
        }
        guard removed.value > 0 else {
            throw CommandFailure(
                .nothingFound, "there is no such credential",
                remedy: "\"larder credentials list\" shows which there are")
        }
    }
}
