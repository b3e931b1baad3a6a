import LarderPolicy

/// The heads last given to responses of the lower tier.
///
/// The lower tier writes them behind its callers' backs: until it has, its lookups give the old
/// ones, and a response that was just invalidated must not be taken for valid. So what invalidates is
/// kept until the lower tier has it. Of all else the last 32 a part are: an old head costs a
/// validation, no more.
struct LatestHeads: Sendable {
    private struct Awaited {
        var head: StoredHead
        /// How many heads that invalidate the lower tier has not written yet.
        var count = 0
    }

    private static let limit = 32
    private var heads: [(id: ObjectID, head: StoredHead)] = []
    private var next = 0
    private var awaited: [ObjectID: Awaited] = [:]

    subscript(id: ObjectID) -> StoredHead? {
        if !self.awaited.isEmpty, let head = self.awaited[id]?.head { return head }
        return self.heads.first { $0.id == id }?.head
    }

    /// Where the head invalidates, `wrote` is to be called once the lower tier has it.
    mutating func note(_ id: ObjectID, _ head: StoredHead) {
        if head.isInvalidated { self.awaited[id, default: Awaited(head: head)].count += 1 }
        guard self.awaited[id] == nil else {
            self.awaited[id]?.head = head
            return
        }
        self.remember(id, head)
    }

    /// The lower tier has written a head that invalidates, or never will.
    mutating func wrote(_ id: ObjectID) {
        guard let awaited = self.awaited[id] else { return }
        self.awaited[id]?.count -= 1
        guard awaited.count <= 1 else { return }
        self.awaited[id] = nil
        // A lookup may have read the old one right before.
        self.remember(id, awaited.head)
    }

    private mutating func remember(_ id: ObjectID, _ head: StoredHead) {
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
