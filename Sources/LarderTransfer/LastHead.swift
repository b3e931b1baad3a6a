import Glibc
import LarderHTTP

/// The last head that an origin sent on a loop, which the next one mostly repeats where a client asks for
/// the same again and again.
///
/// To see that takes some twenty instructions a line, to read it anew a thousand. A head is read for this
/// once it has come twice: until then its bytes alone are kept, and who gets it can change it in place.
/// Heads with `Set-Cookie`, and those of more than 4 KiB, are not kept.
///
/// A class, as `Outbox`. Confined to its loop.
final class LastHead {
    struct Reading {
        let head: ResponseHead
        /// What `length` answers.
        let method: Method
        let length: BodyLength
    }

    private static let limit = 4096

    /// A whole head with its empty line, as a parser takes it.
    private(set) var block: [UInt8] = []
    private var reading: Reading?

    /// What `block` was read as for a request with such a method; nil where it is another head by now.
    func reading(of block: [UInt8], for method: Method) -> Reading? {
        guard let reading = self.reading, reading.method == method,
            Self.isSame(block, self.block)
        else { return nil }
        return reading
    }

    /// Takes note of a head.
    ///
    /// - Parameter isRepeated: it is the one that was kept.
    func note(_ block: [UInt8], _ reading: Reading, isRepeated: Bool) {
        let isKept =
            block.count <= Self.limit && !reading.head.fields.contains(FieldName(.setCookie))
        self.block = isKept ? block : []
        self.reading = isKept && isRepeated ? reading : nil
    }

    /// Whether two blocks are one: not by their bytes, as who has one in hand took it from here.
    private static func isSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard one.count == other.count else { return false }
        return unsafe one.withUnsafeBufferPointer { one in
            unsafe other.withUnsafeBufferPointer { unsafe $0.baseAddress == one.baseAddress }
        }
    }
}

extension [UInt8] {
    /// Whether `bytes` lie here from `offset` on.
    func contain(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        guard let start = bytes.baseAddress, bytes.count <= self.count - offset else {
            return false
        }
        return unsafe self.withUnsafeBytes { own in
            guard let base = own.baseAddress else { return false }
            return unsafe memcmp(base + offset, start, bytes.count) == 0
        }
    }
}
