package import LarderPolicy

/// What is read of a record before it is certain that anybody wants the rest.
///
/// A listing with a filter passes by most of what it meets: fields are not read for that, nor is
/// anything copied but the key.
package struct ListingFacts: Sendable, Equatable {
    package var key: CacheKey
    package var status: UInt16
    /// The length of the whole representation, where that is known.
    package var bodyLength: UInt64

    package init(key: CacheKey, status: UInt16, bodyLength: UInt64) {
        self.key = key
        self.status = status
        self.bodyLength = bodyLength
    }
}

extension ObjectRecord {
    /// The facts of the record in `bytes`, once its mark, version and checksum are found right.
    static func listingFacts(_ bytes: Span<UInt8>) throws(RecordDamage) -> ListingFacts {
        let key = try Self.checkedKey(bytes)
        guard let bodyLength: UInt64 = bytes.littleEndian(32),
            let status: UInt16 = bytes.littleEndian(64)
        else { throw .tooShort }
        return ListingFacts(key: key, status: status, bodyLength: bodyLength)
    }
}
