import LarderPolicy

/// The heads last given to responses of the lower tier.
///
/// The lower tier writes them behind its callers' backs: until it has, its lookups give the old
/// ones, and a response that was just invalidated must not be taken for valid. So each is kept until
/// the lower tier has it, which bounds what it takes. Of those that it has, the last 32 are kept for
/// lookups that are under way.
struct LatestHeads: Sendable {
    private struct Awaited {
        var head: StoredHead
        /// How many heads the lower tier has not written yet.
        var count: Int
    }

    private static let limit = 32
    private var written: [(id: ObjectID, head: StoredHead)] = []
    private var next = 0
    private var awaited: [ObjectID: Awaited] = [:]

    subscript(id: ObjectID) -> StoredHead? {
        if !self.awaited.isEmpty, let head = self.awaited[id]?.head { return head }
        return self.written.first { $0.id == id }?.head
    }

    /// `wrote` is to be called once the lower tier has it.
    mutating func note(_ id: ObjectID, _ head: StoredHead) {
        let count = self.awaited[id]?.count ?? 0
        self.awaited[id] = Awaited(head: head, count: count + 1)
    }

    /// The lower tier has written a head, or never will.
    mutating func wrote(_ id: ObjectID) {
        guard let awaited = self.awaited[id] else { return }
        self.awaited[id]?.count -= 1
        guard awaited.count <= 1 else { return }
        self.awaited[id] = nil
        // A lookup may have read the old one right before.
        self.remember(id, awaited.head)
    }

    private mutating func remember(_ id: ObjectID, _ head: StoredHead) {
        if let i = self.written.firstIndex(where: { $0.id == id }) {
            self.written[i].head = head
        } else if self.written.count < Self.limit {
            self.written.append((id, head))
        } else {
            self.written[self.next] = (id, head)
            self.next = (self.next + 1) % Self.limit
        }
    }
}
