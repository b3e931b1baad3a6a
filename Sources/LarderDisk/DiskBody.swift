import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// A body that lies in the segments of a cache file.
struct DiskBody: StoredBody {
    let core: DiskCore
    let id: ObjectID
    let key: CacheKey
    let bodyLength: UInt64
    let trailers: Fields
    /// Set where it was read, and found sound, together with the head.
    let resident: ByteBuffer?

    func reader(range: Range<UInt64>) -> any BodySource {
        DiskReader(
            core: self.core, id: self.id, key: self.key, bodyLength: self.bodyLength,
            range: range.clamped(to: 0..<self.bodyLength), trailers: self.trailers)
    }
}
