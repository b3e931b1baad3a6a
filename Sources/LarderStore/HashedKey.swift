import LarderPolicy

/// A key with its hash, computed once a call: it chooses the part of the store and the place there.
///
/// The hash is seeded anew by each process, so that strangers cannot make keys collide.
struct HashedKey: Hashable, Sendable {
    let key: CacheKey
    let hashed: Int

    init(_ key: CacheKey) {
        self.key = key
        self.hashed = key.digest
    }

    static func == (a: HashedKey, b: HashedKey) -> Bool {
        a.hashed == b.hashed && a.key == b.key
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.hashed)
    }
}
