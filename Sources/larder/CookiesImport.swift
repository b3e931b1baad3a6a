import ArgumentParser
import LarderControl

/// The verb `larder cookies import FILE`.
struct CookiesImport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Put the cookies of a file into the jar of a session.",
        discussion: """
            A Netscape cookie file, as curl -c and wget --save-cookies write it, or JSON. Each \
            cookie is judged by itself: one that is not taken does not keep the others out, and is \
            told with its line (in JSON, its place in the list) and the reason.

            Exit status: 0 when all were taken but those whose date is past; 2 when some were not.
            """)

    @Argument(help: "The file; - is standard input.", completion: .file())
    var file: String

    @Option(
        help: ArgumentHelp(
            "The file's format: netscape or json; else by the end of its name.", valueName: "format"
        ))
    var format: CookieFormat?

    @OptionGroup var state: StateOptions

    @Flag(help: "Print the summary as one JSON object.")
    var json = false

    /// What an import came to.
    struct Summary: Encodable, Equatable {
        struct Problem: Encodable, Equatable {
            var line: Int
            var reason: String
        }

        var taken = 0
        /// How many were past their date: no fault of the file's.
        var expired = 0
        var refused: [String: Int] = [:]
        var problems: [Problem] = []

        /// - Parameter token: of the rule; `malformed` for what could not be read.
        mutating func refuse(_ token: String, at line: Int, because reason: String) {
            self.refused[token, default: 0] += 1
            self.problems.append(Problem(line: line, reason: reason))
        }
    }

    func run() async throws {
        let state = try self.state.open()
        let now = wallClockMicroseconds()
        let name = self.file == "-" ? "standard input" : self.file
        let bytes = try InputFile.read(self.file, largest: CookieFile.largest)
        let file = try CookieFile(
            bytes, self.format ?? .of(self.file), name: name, now: now)
        let verdicts = try await state.put(file.entries.map(\.cookie))
        let summary = Self.summary(of: file, verdicts)
        try self.tell(summary, name)
        if !summary.refused.isEmpty { throw ExitCode(ExitStatus.damageFound.rawValue) }
    }

    static func summary(of file: CookieFile, _ verdicts: [CookieVerdict]) -> Summary {
        var summary = Summary()
        for problem in file.problems {
            summary.refuse("malformed", at: problem.place, because: problem.cause)
        }
        for (entry, verdict) in zip(file.entries, verdicts) {
            guard let token = verdict.refusal else {
                summary.taken += 1
                continue
            }
            if verdict == .expired {
                summary.expired += 1
            } else {
                summary.refuse(token, at: entry.place, because: CookieText.reason(token))
            }
        }
        summary.problems.sort { $0.line < $1.line }
        return summary
    }

    /// Lines about cookies that were not taken, before it is said how many more there are.
    private static let mostLines = 50

    private func tell(_ summary: Summary, _ name: String) throws {
        for problem in summary.problems.prefix(Self.mostLines) {
            Output.note("larder: \(Printable.text(name)):\(problem.line): \(problem.reason)")
        }
        let more = summary.problems.count - Self.mostLines
        if more > 0 { Output.note("larder: and \(more) more") }
        if self.json { return try Output.line(try JSONLine.of(summary)) }
        try Output.line("taken: \(summary.taken)")
        if summary.expired > 0 { try Output.line("past their date: \(summary.expired)") }
        for (token, count) in summary.refused.sorted(by: { $0.key < $1.key }) {
            try Output.line("not taken: \(count) \(token)")
        }
    }
}
