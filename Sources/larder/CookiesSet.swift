import ArgumentParser
import Glibc
import LarderArchive
import LarderConfig
import LarderControl
import LarderCookies
import LarderHTTP

/// The verb `larder cookies set NAME`.
struct CookiesSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Put a cookie into the jar of a session.",
        discussion: """
            The value is asked for at the terminal, or read from standard input or a file; never \
            from the command line. Without --expires the cookie ends with the session, and so is \
            for a running proxy only.
            """)

    @Argument(help: "The cookie's name.")
    var name: String

    @Option(
        help: ArgumentHelp(
            "The host that it is for; with a dot before it, for the names below, too.",
            valueName: "domain"))
    var domain: String

    @Option(help: ArgumentHelp("The path that it is for, and all below it.", valueName: "path"))
    var path = "/"

    @Flag(help: "Send over https only (Secure).")
    var secure = false

    @Flag(help: "Hide the cookie from scripts (HttpOnly).")
    var httpOnly = false

    @Option(
        help: ArgumentHelp(
            "With which requests of other sites it goes: strict, lax or none (SameSite).",
            valueName: "word"), completion: .list(["strict", "lax", "none"]))
    var sameSite: String?

    @Option(
        help: ArgumentHelp(
            "When the cookie ends: \"30 d\" from now, 2027-01-31, 2027-01-31T12:00:00Z, or a date as "
                + "HTTP has it.", valueName: "when"))
    var expires: String?

    @Option(
        name: .customLong("value-from"),
        help: ArgumentHelp(
            "Read the value from this file; - is standard input.", valueName: "file"),
        completion: .file())
    var valueFile: String?

    @Option(name: [.customLong("value")], help: .hidden)
    var exposed: String?

    @Argument(help: .hidden)
    var rest: [String] = []

    @OptionGroup var state: StateOptions

    func run() async throws {
        let now = wallClockMicroseconds()
        let cookie = try self.cookie(now: now)
        let state = try self.state.open()
        let verdict = try await state.put([cookie]).first
        guard let token = verdict?.refusal else { return }
        throw CommandFailure(
            .data, "not taken: \(token): \(CookieText.reason(token))",
            remedy: "\"larder cookies set --help\" tells what may be said")
    }

    private func cookie(now: Int64) throws(CommandFailure) -> CookieRecord {
        guard self.exposed == nil, self.rest.isEmpty else { throw CommandFailure.exposedSecret }
        let sameSite = self.sameSite.map { SameSite(rawValue: $0.lowercased()) } ?? .unspecified
        guard let sameSite else {
            throw CommandFailure(
                .usage, "there is no --same-site \"\(self.sameSite ?? "")\"",
                remedy: "there are: strict, lax, none")
        }
        let expiry = try self.expires.map { text throws(CommandFailure) in
            try Self.moment(text, now: now)
        }
        var input = SecretInput.standardInput
        if let file = self.valueFile, file != "-" { input = .file(file) }
        if self.valueFile == nil, isatty(STDIN_FILENO) == 1 {
            input = .prompt("Value of \(Printable.text(self.name)): ")
        }
        let value = try input.read()
        let domain = CookieFileDomain(Array(self.domain.utf8)[...])
        return CookieRecord(
            name: Array(self.name.utf8), value: ControlSecret(value), valueBytes: value.count,
            // What is no host's name the jar refuses, with the reason.
            domain: domain?.name ?? self.domain, isHostOnly: domain?.hasDot != true,
            path: self.path, isSecure: self.secure,
            isHTTPOnly: self.httpOnly, sameSite: sameSite.rawValue, createdMicroseconds: now,
            lastUsedMicroseconds: now, expiryMicroseconds: expiry)
    }

    /// A moment in microseconds, as people write one.
    static func moment(_ text: String, now: Int64) throws(CommandFailure) -> Int64 {
        if let span = try? TimeSpan(settingText: text) {
            let (microseconds, overflow) = Int64(clamping: span.milliseconds)
                .multipliedReportingOverflow(by: 1000)
            let sum = now.addingReportingOverflow(overflow ? .max : microseconds)
            return sum.overflow ? .max : sum.partialValue
        }
        let isDay = text.utf8.count == 10
        let bytes = Array((isDay ? "\(text)T00:00:00Z" : text).utf8)
        let moment = WARCDate.parse(bytes[...]) ?? CookieDate.parse(Array(text.utf8)[...])
        guard let moment else {
            throw CommandFailure(
                .usage, "--expires \"\(text)\" is no moment",
                remedy: "write \"30 d\", 2027-01-31 or 2027-01-31T12:00:00Z")
        }
        return moment.microseconds
    }
}
