package import LarderHTTP

/// When groups of stored responses were invalidated (RFC 9875 §3), bounded in number.
///
/// A value. `Name` is a hash of the group's name: where two collide, responses are needlessly taken
/// for invalid, nothing worse. When there are too many, the oldest are folded into one moment that
/// then counts for every group: what was invalidated is never taken for valid again.
package struct GroupInvalidations<Name: Hashable & Sendable>: Sendable {
    /// What a note changed, for whoever keeps the table where it outlives the process.
    package struct Change: Sendable {
        /// Groups that are no longer kept by name; the floor covers them.
        package var folded: [Name] = []
    }

    /// Enough for every group of a few hundred sites.
    package static var usualLimit: Int { 16_384 }

    private let limit: Int
    package private(set) var times: [Name: Timestamp] = [:]
    /// Counts for every group; nil while nothing had to be folded.
    package private(set) var floor: Timestamp?

    package init(limit: Int = Self.usualLimit) {
        self.limit = max(1, limit)
    }

    /// The moment up to which responses of the group count as invalidated; nil where it never was.
    package func time(of name: Name) -> Timestamp? {
        guard let time = self.times[name] else { return self.floor }
        return max(time, self.floor ?? time)
    }

    /// Notes an invalidation; an earlier one than is known changes nothing.
    @discardableResult
    package mutating func note(_ name: Name, at time: Timestamp) -> Change {
        if let known = self.time(of: name), known >= time { return Change() }
        self.times[name] = time
        return self.times.count > self.limit ? self.fold() : Change()
    }

    /// Lets a moment count for every group.
    package mutating func raiseFloor(to time: Timestamp) {
        self.floor = max(self.floor ?? time, time)
    }

    /// Folds the oldest eighth at once, so that a full table is not sorted at each note.
    private mutating func fold() -> Change {
        let oldest = self.times.sorted { $0.value < $1.value }.prefix(max(1, self.limit / 8))
        for (name, time) in oldest {
            self.times.removeValue(forKey: name)
            self.raiseFloor(to: time)
        }
        return Change(folded: oldest.map(\.key))
    }
}
