package import LarderHTTP

/// What bounds the memory tier.
package struct MemoryConfiguration: Sendable, Equatable {
    /// The bytes that all entries may hold together, heads, keys and bookkeeping counted in; 0
    /// keeps nothing.
    ///
    /// Beyond it come responses that are just being stored, each up to `maximumObject`.
    package var capacity: ByteCount
    /// The largest body kept; larger ones are left to a lower tier.
    package var maximumObject: ByteCount
    /// The most variants of one key; the oldest leave.
    ///
    /// A key whose `Vary` names a field with endless values must not fill the tier, nor slow each
    /// lookup.
    package var variantsPerKey: Int

    package init(
        capacity: ByteCount, maximumObject: ByteCount = .mebibytes(1), variantsPerKey: Int = 32
    ) {
        self.capacity = capacity
        self.maximumObject = maximumObject
        self.variantsPerKey = max(1, variantsPerKey)
    }

    /// A store that keeps nothing: for a session without a cache.
    package static let none = MemoryConfiguration(capacity: .zero)

    /// How many parts, each with its own lock and its share of the capacity, the tier is cut into.
    ///
    /// At most 16; fewer where a part would not hold four of the largest objects, because a part
    /// cannot lend room to another.
    var shardCount: Int {
        let room = self.capacity.bytes / 4 / max(1, self.maximumObject.bytes)
        var count = 1
        while count < 16, UInt64(count) * 2 <= room { count *= 2 }
        return count
    }
}
