import Foundation

/// Which cases are to be played: all, or those of the sections that the environment names.
enum Selection {
    /// `LARDER_CONFORMANCE_SECTIONS`: beginnings of sections, between commas.
    private static let sections: [String] = {
        let named = ProcessInfo.processInfo.environment["LARDER_CONFORMANCE_SECTIONS"] ?? ""
        return named.split(separator: ",").map(String.init)
    }()

    static func isSelected(_ played: Case) -> Bool {
        self.sections.isEmpty || self.sections.contains { self.names($0, played.section) }
    }

    /// Whether a section is the named one or lies in it: 4.2 is not in 4.20.
    private static func names(_ named: String, _ section: String) -> Bool {
        guard section.hasPrefix(named) else { return false }
        guard let next = section.dropFirst(named.count).first else { return true }
        return !next.isNumber || !(named.last?.isNumber ?? false)
    }
}

/// What came of each case, a line each, for `scripts/conformance`.
///
/// Fields are separated by tabs: section, obligation, verdict (`passed`, `failed`, `known`,
/// `unexpected`), title, and the reason or what was otherwise than expected.
struct Report {
    private var lines: [String] = []

    mutating func add(_ played: Case, _ findings: [String]) {
        let verdict =
            switch (played.knownFailure, findings.isEmpty) {
            case (nil, true): "passed"
            case (nil, false): "failed"
            case (_?, false): "known"
            case (_?, true): "unexpected"
            }
        let reasons = (played.knownFailure.map { ["\($0):"] } ?? []) + findings
        let words = [
            played.section, played.obligation.rawValue, verdict, played.title,
            reasons.joined(separator: " "),
        ]
        let line = words.map { $0.filter { $0 != "\t" && !$0.isNewline } }.joined(separator: "\t")
        self.lines.append(line + "\n")
    }

    /// Writes the report where `LARDER_CONFORMANCE_REPORT` says.
    func write() throws {
        guard let path = ProcessInfo.processInfo.environment["LARDER_CONFORMANCE_REPORT"] else {
            return
        }
        let text = self.lines.sorted().joined()
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }
}
