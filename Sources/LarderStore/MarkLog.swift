/// For each of the last keys that something happened to: when, in the order of removals.
///
/// Keeps hashes, not keys: when two collide, a response is needlessly refused, nothing worse. It is
/// bounded; what it has forgotten counts as having happened to every key.
struct MarkLog: Sendable {
    private struct Note {
        var hash: Int
        var mark: UInt64
    }

    private let limit: Int
    private var notes: [Note] = []
    private var first = 0
    private var latest: [Int: UInt64] = [:]
    /// The latest mark forgotten.
    private var floor: UInt64 = 0

    init(limit: Int = 1024) {
        self.limit = limit
    }

    mutating func note(_ hash: Int, at mark: UInt64) {
        self.latest[hash] = mark
        self.notes.append(Note(hash: hash, mark: mark))
        guard self.notes.count - self.first > self.limit else { return }
        let oldest = self.notes[self.first]
        self.first += 1
        if self.latest[oldest.hash] == oldest.mark {
            self.latest.removeValue(forKey: oldest.hash)
            self.floor = max(self.floor, oldest.mark)
        }
        if self.first > self.limit {
            self.notes.removeFirst(self.first)
            self.first = 0
        }
    }

    /// Whether certainly nothing happened to the key after `mark`.
    func isUntouched(_ hash: Int, since mark: UInt64) -> Bool {
        mark >= self.floor && (self.latest[hash] ?? 0) <= mark
    }
}
