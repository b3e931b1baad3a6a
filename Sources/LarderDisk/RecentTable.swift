import Synchronization

/// A fixed number of places, in each of which the entry lies that came last.
///
/// Any thread may use it. Nothing is promised of what is in it: whoever takes an entry out asks the
/// entry whether it is the one that was meant.
struct RecentTable<Entry: AnyObject & Sendable>: ~Copyable, Sendable {
    private let entries: Mutex<[Entry?]>
    private let count: UInt64

    /// - Parameter count: a power of two.
    init(count: Int) {
        self.entries = Mutex(Array(repeating: nil, count: count))
        self.count = UInt64(count)
    }

    /// What lies where the entry of this number would.
    subscript(number: UInt64) -> Entry? {
        let place = Int(number % self.count)
        return self.entries.withLock { $0[place] }
    }

    func put(_ entry: Entry, at number: UInt64) {
        let place = Int(number % self.count)
        // Freed when the lock is let go.
        let former = self.entries.withLock { entries in
            let former = entries[place]
            entries[place] = entry
            return former
        }
        withExtendedLifetime(former) {}
    }
}
