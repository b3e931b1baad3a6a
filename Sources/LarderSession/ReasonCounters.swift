import LarderPolicy

/// How often each rule decided.
///
/// Any thread may add.
struct ReasonCounters: Sendable {
    /// A cell of its own for each number: a `~Copyable` counter has no place in an array.
    private final class Cell: Sendable {
        let counter = Counter()
    }

    private static let places: [PolicyReason: Int] = Dictionary(
        uniqueKeysWithValues: zip(PolicyReason.allCases, PolicyReason.allCases.indices))

    private let cells: [Cell]
    /// What is counted with every hit, without a search for its place.
    private let fresh: Cell

    init() {
        let cells = PolicyReason.allCases.map { _ in Cell() }
        self.cells = cells
        let place = Self.places[.fresh].flatMap { cells.indices.contains($0) ? cells[$0] : nil }
        self.fresh = place ?? Cell()
    }

    func addFresh() { self.fresh.counter.add() }

    func add(_ reason: PolicyReason) {
        guard let place = Self.places[reason], self.cells.indices.contains(place) else { return }
        self.cells[place].counter.add()
    }

    /// Uncounts what was decided too early.
    func takeBack(_ reason: PolicyReason) {
        guard let place = Self.places[reason], self.cells.indices.contains(place) else { return }
        self.cells[place].counter.subtract()
    }

    /// Those that have decided at least once.
    func snapshot() -> [PolicyReason: UInt64] {
        var counts: [PolicyReason: UInt64] = [:]
        for (reason, cell) in zip(PolicyReason.allCases, self.cells)
        where cell.counter.current > 0 {
            counts[reason] = cell.counter.current
        }
        return counts
    }
}
