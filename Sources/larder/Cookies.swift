import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon

/// The verb `larder cookies …`.
struct Cookies: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look at and change the cookies that a session keeps itself.",
        discussion: """
            Of a session whose cookies are "jar"; one that passes them on has none but what it kept \
            before. Asks the running proxy; without one, opens the session's state file, which holds \
            the persistent cookies. Values are hidden unless --reveal is given.
            """,
        subcommands: [
            CookiesList.self, CookiesShow.self, CookiesSet.self, CookiesDelete.self,
            CookiesClear.self, CookiesImport.self, CookiesExport.self,
        ])
}

/// The verb `larder cookies list`.
struct CookiesList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the cookies of a session.")

    @Option(
        help: ArgumentHelp(
            "Only cookies of this domain and of names below it.", valueName: "domain"))
    var domain: String?

    @OptionGroup var state: StateOptions

    @Flag(help: "Show the values.")
    var reveal = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func run() async throws {
        let state = try self.state.open()
        let cookies = try await state.cookies(
            CookieFilter(domain: self.domain), reveals: self.reveal)
        if cookies.isEmpty, state.settings.cookies.mode == .pass {
            let reason = ControlRefusal.noJar(state.name).description
            Output.note("larder: \(Printable.text(reason))")
        }
        if self.json {
            let now = wallClockMicroseconds()
            for cookie in cookies { try Output.line(CookieText.json(cookie, now: now)) }
            return
        }
        for line in CookieText.table(
            cookies, now: wallClockMicroseconds(), width: Output.width)
        {
            try Output.line(line)
        }
    }
}

/// The cookies of a name, as a command line says them.
struct NamedCookies: ParsableArguments {
    @Argument(help: "The cookie's name.")
    var name: String

    @Option(
        help: ArgumentHelp(
            "Only cookies of this domain and of names below it.", valueName: "domain"))
    var domain: String?

    @Option(help: ArgumentHelp("Only cookies of this path.", valueName: "path"))
    var path: String?

    var filter: CookieFilter {
        CookieFilter(name: Array(self.name.utf8), domain: self.domain, path: self.path)
    }
}

/// The verb `larder cookies show NAME`.
struct CookiesShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show all that is known of the cookies of a name.")

    @OptionGroup var cookies: NamedCookies
    @OptionGroup var state: StateOptions

    @Flag(help: "Show the values.")
    var reveal = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func run() async throws {
        let cookies = try await self.state.open().cookies(
            self.cookies.filter,
            reveals: self.reveal)
        guard !cookies.isEmpty else { throw CommandFailure.noCookie(self.cookies.name) }
        let now = wallClockMicroseconds()
        for (index, cookie) in cookies.enumerated() {
            if self.json {
                try Output.line(CookieText.json(cookie, now: now))
                continue
            }
            if index > 0 { try Output.line("") }
            for line in CookieText.page(cookie, now: now) { try Output.line(line) }
        }
    }
}

/// The verb `larder cookies delete NAME`.
struct CookiesDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Remove the cookies of a name; prints how many.")

    @OptionGroup var cookies: NamedCookies
    @OptionGroup var state: StateOptions

    func run() async throws {
        let removed = try await self.state.open().removeCookies(
            self.cookies.filter)
        guard removed > 0 else { throw CommandFailure.noCookie(self.cookies.name) }
        try Output.line("\(removed)")
    }
}

/// The verb `larder cookies clear`.
struct CookiesClear: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove all cookies, or those of a domain; prints how many.")

    @Option(
        help: ArgumentHelp(
            "Only cookies of this domain and of names below it.", valueName: "domain"))
    var domain: String?

    @OptionGroup var state: StateOptions

    func run() async throws {
        let removed = try await self.state.open().removeCookies(CookieFilter(domain: self.domain))
        try Output.line("\(removed)")
    }
}

extension CommandFailure {
    static func noCookie(_ name: String) -> CommandFailure {
        CommandFailure(
            .nothingFound, "there is no cookie \"\(name)\"",
            remedy: "\"larder cookies list\" shows which there are")
    }
}

extension SessionState {
    /// All cookies that fit; where they are told and something is the matter with their storage, that
    /// is said, too.
    func cookies(_ filter: CookieFilter, reveals: Bool) async throws -> [CookieRecord] {
        let found = Gathered<[CookieRecord]>([])
        do {
            try await self.ask(.list(filter, reveals: reveals)) { reply in
                if case .cookies(let cookies) = reply { found.change { $0 += cookies } }
            }
        } catch let refusal as ControlRefusal where !found.value.isEmpty {
            Output.note("larder: \(Printable.text(refusal.description))")
        }
        return found.value
    }

    /// - Returns: how many were removed.
    func removeCookies(_ filter: CookieFilter) async throws -> UInt64 {
        let removed = Gathered<UInt64>(0)
        try await self.ask(.remove(filter)) { reply in
            if case .removed(let count) = reply { removed.change { $0 += count } }
        }
        return removed.value
    }

    /// Puts cookies in, as many at a time as go into a line of the control socket.
    ///
    /// - Returns: a verdict for each, in order.
    func put(_ cookies: [CookieRecord]) async throws -> [CookieVerdict] {
        let verdicts = Gathered<[CookieVerdict]>([])
        for batch in CookieBatch.cut(cookies) {
            let before = verdicts.value.count
            try await self.ask(.put(batch)) { reply in
                if case .cookieVerdicts(let some) = reply { verdicts.change { $0 += some } }
            }
            guard verdicts.value.count == before + batch.count else {
                throw CommandFailure(.unavailable, "the proxy did not tell what became of them")
            }
        }
        return verdicts.value
    }
}
