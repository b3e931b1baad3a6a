/// What is known of a stored response when its turn in the queue has come.
struct EvictionCandidate: Sendable, Equatable {
    /// What of its body is stored.
    var bodyLength: UInt64
    var hits: UInt64
    /// Whether it was used since it came to its place in the queue.
    var wasUsed: Bool
    /// Whether someone reads it now.
    var isBeingRead: Bool
}

/// Which stored responses must go, and when: a value that decides and touches nothing.
///
/// First in, first out with a second chance: what was used since it came to its place goes to the
/// end of the queue once more, its mark taken away. A scan passes through without driving out what
/// is used, and a hit changes no order.
struct SecondChance: Sendable, Equatable {
    enum Verdict: Sendable, Equatable { case evict, keep }

    /// Pages that the capacity has room for.
    var capacityPages: UInt64
    /// Above this eviction begins.
    var highPages: UInt64 { self.capacityPages - self.capacityPages / 10 }
    /// At or below this it ends.
    var lowPages: UInt64 { self.capacityPages - self.capacityPages / 25 * 3 }
    /// Above this it goes before all other work.
    var criticalPages: UInt64 { self.capacityPages - self.capacityPages / 20 }

    /// - Parameter isUrgent: there is no room at all; nobody gets a second chance.
    func judge(_ candidate: EvictionCandidate, isUrgent: Bool) -> Verdict {
        if candidate.isBeingRead { return .keep }
        return candidate.wasUsed && !isUrgent ? .keep : .evict
    }
}
