/// Which bytes of a representation are stored (RFC 9111 §3.3, §3.4).
package struct StoredExtent: Sendable, Hashable {
    /// The length of the whole representation; nil where no `Content-Range` has told it yet.
    package private(set) var completeLength: UInt64?
    /// The bytes that are there: in order, none empty, none touching the next.
    package private(set) var ranges: [Range<UInt64>]

    /// - Parameter ranges: in any order, also overlapping; what lies beyond `completeLength` is
    ///   left out.
    package init(completeLength: UInt64?, ranges: [Range<UInt64>] = []) {
        self.completeLength = completeLength
        self.ranges = []
        for range in ranges { self.insert(range) }
    }

    /// Whether nothing is missing.
    package var isComplete: Bool {
        guard let length = self.completeLength else { return false }
        return length == 0 || self.ranges == [0..<length]
    }

    /// How many bytes are there.
    package var storedBytes: UInt64 {
        self.ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
    }

    /// Where the stored bytes end.
    package var end: UInt64 { self.ranges.last?.upperBound ?? 0 }

    /// Whether all of `range` is there.
    package func contains(_ range: Range<UInt64>) -> Bool {
        if range.isEmpty { return true }
        return self.ranges.contains {
            $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound
        }
    }

    /// The parts of `range` that are missing, in order.
    package func gaps(in range: Range<UInt64>) -> [Range<UInt64>] {
        var gaps: [Range<UInt64>] = []
        var position = range.lowerBound
        for stored in self.ranges where stored.upperBound > position {
            guard stored.lowerBound < range.upperBound else { break }
            if stored.lowerBound > position { gaps.append(position..<stored.lowerBound) }
            position = stored.upperBound
        }
        if position < range.upperBound { gaps.append(position..<range.upperBound) }
        return gaps
    }

    /// Adds bytes; what lies beyond the known length is left out.
    package mutating func insert(_ range: Range<UInt64>) {
        let bounded = range.clamped(to: 0..<(self.completeLength ?? .max))
        guard !bounded.isEmpty else { return }
        var merged = bounded
        var kept: [Range<UInt64>] = []
        for stored in self.ranges {
            if stored.upperBound < merged.lowerBound || merged.upperBound < stored.lowerBound {
                kept.append(stored)
            } else {
                merged =
                    min(
                        stored.lowerBound, merged.lowerBound)..<max(
                        stored.upperBound, merged.upperBound)
            }
        }
        let place = kept.firstIndex { $0.lowerBound > merged.lowerBound } ?? kept.endIndex
        kept.insert(merged, at: place)
        self.ranges = kept
    }

    /// Learns the length of the whole.
    ///
    /// Returns false, and changes nothing, where another one is known already or bytes beyond it
    /// are stored.
    package mutating func learn(completeLength: UInt64) -> Bool {
        if let known = self.completeLength { return known == completeLength }
        guard self.end <= completeLength else { return false }
        self.completeLength = completeLength
        return true
    }
}
