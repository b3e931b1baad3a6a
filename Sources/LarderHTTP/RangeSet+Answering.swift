extension RangeSet {
    /// About what a part of `multipart/byteranges` costs beside its bytes (RFC 9110 §15.3.7.2:
    /// "around 80 bytes, depending on the resource's media type and the chosen boundary length").
    private static let partOverhead: UInt64 = 80
    /// From so many parts on, parts that are smaller than their overhead are refused.
    private static let manyParts = 8

    /// What a server should give for the set: one part a range, in the order asked for, those that
    /// overlap or touch made one (RFC 9110 §15.3.7.2).
    ///
    /// nil: answer with the whole, which the RFC always allows (§14.2). So it is for a set that costs
    /// more than it saves or is an attack (§17.15): too many ranges, several that overlap, many
    /// tiny ones, or as many bytes as the whole has. Empty: none can be satisfied.
    package func parts(length: UInt64) -> [Range<UInt64>]? {
        guard let resolved = self.resolve(length: length) else { return [] }
        guard !self.isExcessive(length: length), resolved.allSatisfy({ !$0.isEmpty }) else {
            return nil
        }
        if resolved.count == 1 { return resolved }
        let parts = Self.coalesced(resolved)
        // Disjoint and below `length`: the sum cannot overflow.
        let bytes = parts.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
        let isTiny =
            parts.count >= Self.manyParts && bytes / UInt64(parts.count) < Self.partOverhead
        return isTiny || bytes >= length ? nil : parts
    }

    /// Joins ranges that overlap or touch; each group stands where its first member stood.
    private static func coalesced(_ ranges: [Range<UInt64>]) -> [Range<UInt64>] {
        var parts: [Range<UInt64>] = []
        for range in ranges {
            var merged = range
            var place: Int?
            var kept: [Range<UInt64>] = []
            for part in parts {
                if part.upperBound < merged.lowerBound || merged.upperBound < part.lowerBound {
                    kept.append(part)
                } else {
                    place = place ?? kept.count
                    merged =
                        min(
                            part.lowerBound, merged.lowerBound)..<max(
                            part.upperBound, merged.upperBound)
                }
            }
            kept.insert(merged, at: place ?? kept.count)
            parts = kept
        }
        return parts
    }
}
