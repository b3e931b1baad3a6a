import CXXHash
import LarderHTTP
import LarderStore

/// XXH3 over what lies on the disk: finds damage and places, keeps no secret.
package enum Checksum {
    /// The checksum of a segment's payload, bound to its place: a sound segment in a wrong place
    /// fails, too.
    ///
    /// - Parameter start: where in its cell the payload begins.
    static func segment(
        _ payload: Span<UInt8>, id: ObjectID, index: UInt32, start: UInt16 = 0
    ) -> UInt32 {
        let seed =
            (id.rawValue &* 0x9E37_79B9_7F4A_7C15) ^ UInt64(index) ^ UInt64(start) << 32
        return UInt32(truncatingIfNeeded: Self.hash(payload, seed: seed))
    }

    static func record(_ bytes: Span<UInt8>) -> UInt32 {
        UInt32(truncatingIfNeeded: Self.whole(bytes))
    }

    /// The hash that the checksum of a record is a half of.
    static func whole(_ bytes: Span<UInt8>) -> UInt64 {
        Self.hash(bytes, seed: 0x4C61_7264_6572)
    }

    /// The hash of a cache key, seeded by the file's own number so that nobody can prepare
    /// collisions.
    static func key(_ bytes: [UInt8], seed: UInt64) -> KeyHash {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            let hash = unsafe larder_xxh3_128(buffer.baseAddress, buffer.count, seed)
            return KeyHash(high: hash.high, low: hash.low)
        }
    }

    /// By which a response that left is known when it comes back: its key and what it varies by.
    static func fingerprint(of key: KeyHash, _ varying: Fields) -> UInt64 {
        guard !varying.lines.isEmpty else { return key.high }
        return self.fingerprint(of: key, varying: varying.bytes.span)
    }

    /// - Parameter lines: those of the fields that it varies by.
    static func fingerprint(of key: KeyHash, varying lines: Span<UInt8>) -> UInt64 {
        lines.isEmpty ? key.high : key.high ^ Self.hash(lines, seed: key.low)
    }

    /// The checksum of a file that is read block by block, each bound to what stands before it.
    ///
    /// - Parameter before: of the blocks so far; 0 at the begin.
    package static func chain(_ block: Span<UInt8>, behind before: UInt64) -> UInt64 {
        Self.hash(block, seed: before)
    }

    private static func hash(_ bytes: Span<UInt8>, seed: UInt64) -> UInt64 {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe larder_xxh3_64(buffer.baseAddress, buffer.count, seed)
        }
    }
}
