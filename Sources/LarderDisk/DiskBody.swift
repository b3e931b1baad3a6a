import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// A body, or parts of one, that lies in the segments of a cache file.
struct DiskBody: StoredBody {
    let core: DiskCore
    let id: ObjectID
    let key: CacheKey
    let bodyLength: UInt64
    /// What of it was stored when it was looked up; nil where that was all of it.
    let extent: StoredExtent?
    let trailers: Fields
    /// Set where it was read, and found sound, together with the head.
    let resident: ByteBuffer?
    /// Set where it was not: what is read later must be there then.
    let hold: BodyHold?

    func letGo() { self.hold?.letGo() }

    func reader(range: Range<UInt64>) -> any BodySource {
        if let extent, !extent.contains(range) {
            return FailedSource(.store("range outside of what is stored"))
        }
        guard self.hold != nil else {
            return MemoryBody(self.resident ?? ByteBuffer(), trailers: self.trailers)
                .reader(range: range.clamped(to: 0..<self.bodyLength))
        }
        return DiskReader(
            core: self.core, id: self.id, key: self.key,
            hold: BodyHold(core: self.core, id: self.id),
            range: range.clamped(to: 0..<self.bodyLength),
            trailers: self.extent == nil ? self.trailers : Fields())
    }
}
