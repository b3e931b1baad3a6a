/// The responses of one key that are about to be committed, and the lookups that wait for them: a value.
///
/// A lookup waits for those that had come when it came, and for no others: of a key that is stored again
/// and again, something lands at any time.
struct KeyLandings: Sendable {
    typealias Lookup = @Sendable () -> Void

    private struct Waiting {
        /// The last that had come.
        let last: UInt64
        let lookup: Lookup
    }

    /// How many there ever were: the number of the last one.
    private var last: UInt64 = 0
    /// The numbers of those under way, the oldest first.
    private var underway: [UInt64] = []
    /// The first to come first.
    private var waiting: [Waiting] = []

    /// Whether none is under way.
    var isOver: Bool { self.underway.isEmpty }
    /// Whether any lookup waits.
    var isAwaited: Bool { !self.waiting.isEmpty }

    /// Another one is about to be committed.
    ///
    /// - Returns: its number.
    mutating func begin() -> UInt64 {
        self.last += 1
        self.underway.append(self.last)
        return self.last
    }

    /// Has a lookup wait for what is under way.
    mutating func wait(_ lookup: @escaping Lookup) {
        self.waiting.append(Waiting(last: self.last, lookup: lookup))
    }

    /// One is committed, or will not be.
    ///
    /// - Returns: the lookups that wait for nothing any more.
    mutating func end(_ number: UInt64) -> [Lookup] {
        self.underway.removeAll { $0 == number }
        guard let oldest = self.underway.first else { return self.takeAll() }
        let ready = self.waiting.prefix { $0.last < oldest }
        self.waiting.removeFirst(ready.count)
        return ready.map(\.lookup)
    }

    /// Takes out all lookups, whatever they wait for.
    mutating func takeAll() -> [Lookup] {
        defer { self.waiting = [] }
        return self.waiting.map(\.lookup)
    }
}
