import LarderPolicy

/// The heads last given to responses of the lower tier.
///
/// The lower tier writes them behind its callers' backs: until it has, its lookups give the old
/// ones, and a response that was just invalidated must not be taken for valid. Bounded to 32 a
/// part: far more than a tier that writes at least once a second has under way.
struct LatestHeads: Sendable {
    private static let limit = 32
    private var heads: [(id: ObjectID, head: StoredHead)] = []
    private var next = 0

    subscript(id: ObjectID) -> StoredHead? {
        self.heads.first { $0.id == id }?.head
    }

    mutating func note(_ id: ObjectID, _ head: StoredHead) {
        if let i = self.heads.firstIndex(where: { $0.id == id }) {
            self.heads[i].head = head
        } else if self.heads.count < Self.limit {
            self.heads.append((id, head))
        } else {
            self.heads[self.next] = (id, head)
            self.next = (self.next + 1) % Self.limit
        }
    }
}
