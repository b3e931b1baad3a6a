package import LarderHTTP
package import LarderPolicy

/// A stored response, found: its head and a way to its body.
///
/// A value that stays usable when the entry is evicted or replaced meanwhile: a memory body is
/// simply kept alive, a disk body fails its reader with `.failed(.store)` once its segments are gone.
/// All that does not change with a use lies behind one reference, so that a hit counts one.
package struct StoredObject: Sendable {
    private struct Parts: Sendable {
        var id: ObjectID
        var key: CacheKey
        var head: StoredHead
        var trailers: Fields
        var bodyLength: UInt64
        var tier: StoreTier
        var body: any StoredBody
    }

    private final class Content: Sendable {
        let parts: Parts

        init(_ parts: Parts) {
            self.parts = parts
        }
    }

    private var content: Content
    /// How often it was used to answer a client.
    package var hits: UInt64
    package var lastUsed: Timestamp

    package init(
        id: ObjectID, key: CacheKey, head: StoredHead, trailers: Fields = Fields(),
        bodyLength: UInt64, tier: StoreTier, hits: UInt64 = 0, lastUsed: Timestamp,
        body: any StoredBody
    ) {
        self.content = Content(
            Parts(
                id: id, key: key, head: head, trailers: trailers, bodyLength: bodyLength,
                tier: tier, body: body))
        self.hits = hits
        self.lastUsed = lastUsed
    }

    private mutating func change(_ change: (inout Parts) -> Void) {
        var parts = self.content.parts
        change(&parts)
        self.content = Content(parts)
    }
}

extension StoredObject {
    package var id: ObjectID {
        get { self.content.parts.id }
        set { self.change { $0.id = newValue } }
    }

    package var key: CacheKey {
        get { self.content.parts.key }
        set { self.change { $0.key = newValue } }
    }

    package var head: StoredHead {
        get { self.content.parts.head }
        set { self.change { $0.head = newValue } }
    }

    package var trailers: Fields {
        get { self.content.parts.trailers }
        set { self.change { $0.trailers = newValue } }
    }

    /// The length of the whole representation; for partial content of unknown length, where its
    /// last stored byte ends.
    package var bodyLength: UInt64 {
        get { self.content.parts.bodyLength }
        set { self.change { $0.bodyLength = newValue } }
    }

    package var tier: StoreTier {
        get { self.content.parts.tier }
        set { self.change { $0.tier = newValue } }
    }

    package var body: any StoredBody {
        get { self.content.parts.body }
        set { self.change { $0.body = newValue } }
    }
}
