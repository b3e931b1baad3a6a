import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon
import LarderHTTP
import LarderPolicy

/// The verb `larder explain …`.
struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell why a request is answered as it is, and what would make it a hit.",
        discussion: """
            Asks the running proxy what happened on the last requests for a URL and what would \
            happen to the next one; without a proxy, tells the latter from what is on disk. Nothing \
            is fetched, stored or changed.

            With --response it judges the head of a response, as "curl -sI" writes it: whether it \
            may be stored, for how long it would be fresh, and why.

            --reasons lists the words for the rules that decide, as they stand in the detail of \
            Cache-Status and in the log: where each is written, and what would make it a hit, or \
            makes it one.

            --header "Larder-Cache-Policy: WORD" asks for a request with another cache policy than \
            the session's, as a listener or a trusted client may have it.
            """)

    @Argument(help: "The URL.", transform: urlArgument)
    var url: String?

    @Option(help: ArgumentHelp("The method of the request.", valueName: "method"))
    var method = "GET"

    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            "A field of the request, \"Name: value\"; may be given again.", valueName: "field"))
    var headers: [String] = []

    @Option(
        name: .customLong("response"),
        help: ArgumentHelp(
            "Judge the response head in this file; - is standard input. Of several heads, as after "
                + "redirects, the last.", valueName: "file"),
        completion: .file())
    var responseFile: String?

    @Flag(help: "List the words for all reasons.")
    var reasons = false

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption
    @OptionGroup var principal: PrincipalOption

    @Flag(help: "Print one JSON object; with --reasons one a line.")
    var json = false

    func run() async throws {
        if self.reasons { return try self.listReasons() }
        if let file = self.responseFile { return try self.judge(file) }
        guard let url = self.url else {
            throw CommandFailure(
                .usage, "nothing to explain is named",
                remedy: "give a URL, --response FILE, or --reasons")
        }
        let question = try self.question(about: url)
        // What is wrong with it is said before anybody is asked.
        let request = try question.request()
        _ = try question.cachePolicy()
        let view = try CacheView(self.options, self.session, principal: self.principal)
        var record: ExplanationRecord?
        try view.askIfServed(.explain(question)) { reply in
            if case .explanation(let explanation) = reply { record = explanation }
            return true
        }
        let told = try record ?? view.explain(question)
        if self.json { return try Output.line(try JSONLine.of(told)) }
        for line in ExplainText.lines(told) { try Output.line(line) }
        let access = view.loaded.settings.access
        let host = request.uri.host.leadingBack(access).map(ExplainText.ownAddress)
        let denial = access.denial(of: request).map(ExplainText.denial)
        for line in [denial, host].compactMap(\.self) {
            try Output.line("")
            try Output.line(line)
        }
    }

    private func listReasons() throws {
        for reason in PolicyReason.allCases {
            if self.json {
                try Output.line(try JSONLine.of(ReasonText.Row(reason)))
                continue
            }
            for line in ReasonText.lines(reason, width: min(Output.width ?? 100, 100)) {
                try Output.line(line)
            }
        }
    }

    private func question(about url: String) throws(CommandFailure) -> ExplainQuestion {
        var fields: [ControlField] = []
        for header in self.headers {
            guard let colon = header.firstIndex(of: ":"), colon > header.startIndex else {
                throw CommandFailure(
                    .usage, "\"\(header)\" is no field", remedy: "write --header \"Name: value\"")
            }
            let value = header[header.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append(
                ControlField(name: String(header[..<colon]), value: String(value)))
        }
        return ExplainQuestion(
            session: self.session.session, method: self.method, url: url, fields: fields,
            principal: self.principal.principal)
    }

    /// Judges a response head from a file.
    private func judge(_ file: String) throws {
        // Where it came from matters little: the scheme, and what Content-Location is held against.
        let question = try self.question(about: self.url ?? "http://response.invalid/")
        let request = try question.request()
        let loaded = try self.options.load()
        let settings = try self.session.find(in: loaded)
        let head = try ResponseFile.read(file)
        let now = Timestamp(microseconds: wallClockMicroseconds())
        let record = StorageRecord(
            StorageExplanation(
                request: request, response: head, bodyLength: ResponseFile.bodyLength(of: head),
                now: now, configuration: loaded.policy(of: settings).resolved(for: request.uri)),
            of: head, to: request, isNamed: self.url != nil)
        if self.json { return try Output.line(try JSONLine.of(record)) }
        for line in ExplainText.lines(record) { try Output.line(line) }
    }
}

extension String {
    /// This host, where it leads back to the proxy's machine and rules let clients of others in whom they
    /// name no destinations; nil otherwise.
    fileprivate func leadingBack(_ access: [AccessRule]) -> String? {
        // What a name leads to is found out when a connection is made; this one leads nowhere else.
        let question = AccessQuestion(
            client: ClientFacts(address: nil), method: "GET",
            host: self.isLocalhost ? "127.0.0.1" : self, port: 80)
        return question.leadsBack && access.contains(where: \.mayLeadBack) ? self : nil
    }
}

extension [AccessRule] {
    /// What denies a request to clients of this machine, whichever way they come; nil where they may ask.
    ///
    /// For a name: what it leads to is found out when a connection is made. nil, too, where rules let in who
    /// proves to be somebody, or is somebody on this machine: who asks here is neither.
    fileprivate func denial(of request: Request) -> String? {
        let letsInByName = self.contains { rule in
            rule.action == .allow
                && rule.clients.contains { client in
                    switch client {
                    case .user, .uid: true
                    case .anyone, .unix, .block: false
                    }
                }
        }
        if letsInByName { return nil }
        let judge = AccessJudge(self)
        var denial: String?
        for address in [IPAddress("127.0.0.1"), IPAddress("::1"), nil] {
            let decision = judge.judge(
                AccessQuestion(
                    client: ClientFacts(address: address), method: request.method.rawValue,
                    host: request.uri.host, port: request.uri.port))
            if decision.isAllowed { return nil }
            denial = denial ?? decision.rule.map { "access[\($0)] denies it to" }
        }
        return denial ?? "no access rule lets it be asked by"
    }
}

extension CacheView {
    /// Explains from what is on disk, without a proxy and so without what it would remember.
    fileprivate func explain(_ question: ExplainQuestion) throws -> ExplanationRecord {
        guard self.session.principals == .none || question.principal != nil else {
            throw CommandFailure(
                .data, "the session \(self.session.name.text) is split by its clients",
                remedy: "name one by --principal, as \"larder cache list\" shows them")
        }
        let request = try question.request()
        let cachePolicy = try question.cachePolicy()
        let stored =
            try self.disk?.heads(
                for: request.uri, principal: question.principal ?? "") ?? []
        let lengths = stored.map(\.bodyLength)
        return ExplanationRecord(
            Explanation(
                request: request, candidates: stored.map(\.head), bodyLengths: lengths,
                now: Timestamp(microseconds: wallClockMicroseconds()),
                configuration: self.loaded.policy(of: self.session).resolved(for: request.uri),
                policy: cachePolicy ?? RequestCachePolicy(self.session.cachePolicy)),
            of: request, session: self.session.name.text, bodyLengths: lengths, history: nil)
    }
}
