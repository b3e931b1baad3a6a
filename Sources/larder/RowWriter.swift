import Synchronization

/// Writes the rows of a listing to standard output, in one of its forms.
struct RowWriter {
    enum Form {
        case columns, json, urls
    }

    private let form: Form
    private let isTerminal: Bool
    private var text: CacheListText
    private var isBegun = false
    /// When the first row came that may not be written yet.
    private var waitsSince: ContinuousClock.Instant?

    /// Rows wait for others, to be aligned with or to be written together, but not for longer.
    private static let patience = Duration.milliseconds(500)

    /// - Parameter width: of the terminal; nil where standard output is none.
    init(_ form: Form, width: Int?) {
        self.form = form
        self.isTerminal = width != nil
        self.text = CacheListText(width: width)
    }

    /// - Parameter prepare: called before anything is written to a terminal.
    mutating func write(_ row: CacheRow, after prepare: () -> Void) throws {
        if self.waitsSince == nil { self.waitsSince = .now }
        switch self.form {
        case .json:
            if self.isTerminal { prepare() }
            try Output.bytes(RowJSON.line(row) + [0x0A])
        case .urls:
            if self.isTerminal { prepare() }
            try Output.bytes(Array(row.url.utf8) + [0])
        case .columns:
            if !self.isTerminal, !self.isBegun { try Output.line(CacheListText.header) }
            self.isBegun = true
            try self.write(self.text.add(row), after: prepare)
        }
    }

    /// Whether rows have waited for too long for others.
    func isWaiting(at now: ContinuousClock.Instant) -> Bool {
        self.waitsSince.map { now - $0 >= Self.patience } ?? false
    }

    /// Writes those that wait.
    mutating func settle(after prepare: () -> Void) throws {
        try self.write(self.text.settle(), after: prepare)
        try Output.flush()
        self.waitsSince = nil
    }

    mutating func finish() throws {
        try self.write(self.text.finish(), after: {})
    }

    private mutating func write(_ lines: [String], after prepare: () -> Void) throws {
        guard !lines.isEmpty else { return }
        if self.isTerminal { prepare() }
        for line in lines { try Output.line(line) }
    }
}

/// Shows how far a listing has come, on the terminal behind standard error.
struct ListProgress {
    private var line: ProgressLine
    private var done: UInt64 = 0
    private var sinceLook = 0
    private var total: UInt64

    /// How many rows go by between two looks at the clock.
    private static let rowsPerLook = 256

    init(total: UInt64) {
        self.line = ProgressLine("reading", at: .now)
        self.total = total
    }

    /// Another piece of work begins; it does not have to take long again to be shown.
    mutating func begin(_ verb: String, total: UInt64) {
        self.line.verb = verb
        self.done = 0
        self.total = total
    }

    mutating func step(_ count: Int) {
        self.done += UInt64(count)
        self.sinceLook += count
        guard Output.isErrorTerminal, self.sinceLook >= Self.rowsPerLook else { return }
        self.sinceLook = 0
        let text = self.line.update(
            self.done, of: self.total, width: Output.errorWidth, at: .now)
        if let text {
            Interruption.hasLine.store(true, ordering: .sequentiallyConsistent)
            Output.sketch(text)
        }
    }

    mutating func hide() {
        guard let text = self.line.hide() else { return }
        Output.sketch(text)
        Interruption.hasLine.store(false, ordering: .sequentiallyConsistent)
    }
}
