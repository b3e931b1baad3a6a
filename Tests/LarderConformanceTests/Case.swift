import Testing

/// How a specification binds a cache to what a case expects.
enum Obligation: String, Sendable {
    /// A MUST: a cache that does otherwise breaks the protocol.
    case required
    /// A MAY or SHOULD, or a better use of what the rules allow.
    case optimal
    /// Left open by the rules: the case says what Larder does, so that a change is noticed.
    case informative
}

/// One rule, played through a whole proxy: requests one after the other, and what must come of each.
struct Case: Sendable, CustomTestStringConvertible {
    let title: String
    /// RFC number and section: `9111 §4.2.1`.
    let section: String
    let obligation: Obligation
    let steps: [Step]
    /// Settings of the proxy, beside the defaults.
    let settings: String
    /// Why it fails today; nil where it must pass.
    let knownFailure: String?

    var testDescription: String { "\(self.section): \(self.title)" }
}

/// The cases of one topic, written one after the other.
///
/// Section and settings hold for the cases that follow.
struct Table {
    private(set) var cases: [Case] = []
    private var section: String
    private var settings = ""

    /// - Parameter section: of the first cases.
    static func cases(_ section: String, _ write: (inout Table) -> Void) -> [Case] {
        var table = Table(section: section)
        write(&table)
        return table.cases.filter(Selection.isSelected)
    }

    private init(section: String) {
        self.section = section
    }

    mutating func section(_ section: String) { self.section = section }

    mutating func settings(_ settings: String) { self.settings = settings }

    mutating func must(_ title: String, known: String? = nil, _ steps: [Step]) {
        self.add(title, .required, known, steps)
    }

    mutating func optimal(_ title: String, known: String? = nil, _ steps: [Step]) {
        self.add(title, .optimal, known, steps)
    }

    mutating func note(_ title: String, known: String? = nil, _ steps: [Step]) {
        self.add(title, .informative, known, steps)
    }

    private mutating func add(
        _ title: String, _ obligation: Obligation, _ known: String?, _ steps: [Step]
    ) {
        self.cases.append(
            Case(
                title: title, section: self.section, obligation: obligation, steps: steps,
                settings: self.settings, knownFailure: known))
    }
}

/// All cases, a table a topic; each topic's file adds its own.
enum Tables {}
