import LarderPolicy

/// How often each rule decided.
///
/// Any thread may add.
struct ReasonCounters: Sendable {
    /// A cell of its own for each number: a `~Copyable` counter has no place in an array.
    private final class Cell: Sendable {
        let counter = Counter()
    }

    private let cells = PolicyReason.allCases.map { _ in Cell() }

    func add(_ reason: PolicyReason) {
        guard self.cells.indices.contains(reason.place) else { return }
        self.cells[reason.place].counter.add()
    }

    /// Uncounts what was decided too early.
    func takeBack(_ reason: PolicyReason) {
        guard self.cells.indices.contains(reason.place) else { return }
        self.cells[reason.place].counter.subtract()
    }

    /// How often each has decided that has at least once.
    func snapshot() -> [PolicyReason: UInt64] {
        var counts: [PolicyReason: UInt64] = [:]
        for (reason, cell) in zip(PolicyReason.allCases, self.cells)
        where cell.counter.current > 0 {
            counts[reason] = cell.counter.current
        }
        return counts
    }
}
