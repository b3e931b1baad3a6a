import Foundation

/// What may be counted at most, by row: checked in beside the sources.
struct Thresholds {
    /// What is written above a figure that was counted, so that the next run passes elsewhere, too: a
    /// miss made 86.3 allocations in two runs and 89.8 in a third, as threads met in another way.
    private static let room = (allocations: 1.10, instructions: 1.10)

    let file: URL
    private(set) var rows: [String: Figures]

    /// An empty table where there is no file yet.
    init(_ file: URL) throws {
        self.file = file
        guard FileManager.default.fileExists(atPath: file.path) else {
            self.rows = [:]
            return
        }
        self.rows = try JSONDecoder().decode([String: Figures].self, from: Data(contentsOf: file))
    }

    func allowed(_ row: Row) -> Figures { self.rows[row.rawValue] ?? Figures() }

    /// Takes what was counted, with some room, as what is allowed; what was not counted stays.
    mutating func update(_ row: Row, by figures: Figures) {
        var allowed = self.allowed(row)
        // Half a call: a figure near zero has room, too.
        if let counted = figures.allocations {
            allowed.allocations = (counted * Self.room.allocations * 10 + 5).rounded(.up) / 10
        }
        if let counted = figures.instructions {
            allowed.instructions = (counted * Self.room.instructions / 100).rounded(.up) * 100
        }
        self.rows[row.rawValue] = allowed
    }

    func write() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        var data = try encoder.encode(self.rows)
        data.append(UInt8(ascii: "\n"))
        try data.write(to: self.file)
    }

    /// A line for each figure that is above what is allowed.
    func complaints(_ row: Row, _ figures: Figures) -> [String] {
        let allowed = self.allowed(row)
        let pairs = [
            ("allocations", figures.allocations, allowed.allocations),
            ("instructions", figures.instructions, allowed.instructions),
        ]
        return pairs.compactMap { name, counted, allowed in
            guard let counted else { return nil }
            guard let allowed else {
                return
                    "\(row.rawValue): nothing is said of \(name): scripts/bench-requests --update"
            }
            guard counted > allowed else { return nil }
            return "\(row.rawValue): \(Self.text(counted)) \(name) a request, allowed are "
                + "\(Self.text(allowed)): take back what adds them, or, if it is meant, allow it by "
                + "scripts/bench-requests --update and say in the commit why"
        }
    }

    static func text(_ value: Double?) -> String {
        guard let value else { return "–" }
        return value < 1000 ? String(format: "%.1f", value) : String(format: "%.0f", value)
    }
}
