package import LarderPolicy

// The rules of partial content that both tiers keep.
extension StoredExtent {
    /// The most ranges of one response: origins and clients choose them, and each costs room in its
    /// record and time in each lookup.
    package static let rangeLimit = 64

    /// The length that a stored response of this extent shows: that of the whole, or where the last
    /// stored byte ends.
    package var bodyLength: UInt64 { self.completeLength ?? self.end }

    /// The extent with `range` added, or why that cannot be.
    ///
    /// - Parameters:
    ///   - completeLength: of the whole representation, where the bytes came with it.
    ///   - limit: the largest body that is stored.
    package func adding(
        _ range: Range<UInt64>, completeLength: UInt64?, limit: UInt64
    ) throws(SinkAbandonment) -> StoredExtent {
        var grown = self
        if let completeLength, !grown.learn(completeLength: completeLength) {
            throw .contradictory
        }
        if !range.isEmpty, range.upperBound > grown.completeLength ?? .max { throw .contradictory }
        grown.insert(range)
        if grown.bodyLength > limit { throw .tooLarge }
        if grown.ranges.count > Self.rangeLimit { throw .tooScattered }
        return grown
    }
}

extension StoredObject {
    /// What of the representation is stored; all of it where the response is complete.
    package var extent: StoredExtent {
        self.head.extent
            ?? StoredExtent(completeLength: self.bodyLength, ranges: [0..<self.bodyLength])
    }
}

extension StoredHead {
    /// This head, of a response of which just this is stored.
    package func with(extent: StoredExtent) -> StoredHead {
        var head = self
        head.extent = extent.isComplete ? nil : extent
        return head
    }
}
