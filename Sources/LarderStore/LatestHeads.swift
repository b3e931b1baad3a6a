import LarderPolicy

/// The heads last given to responses of the lower tier.
///
/// The lower tier writes them behind its callers' backs: until it has, its lookups give the old
/// ones, and a response that was just invalidated must not be taken for valid. So each is kept until
/// the lower tier has it, which bounds what it takes. Of those that it has, the last 32 are kept for
/// lookups that are under way.
struct LatestHeads: Sendable {
    /// A head that the lower tier is to be told.
    struct Noted: Sendable {
        var head: StoredHead
        /// Another one for each head.
        fileprivate var number: UInt64
    }

    private struct Awaited {
        var latest: Noted
        /// How many heads the lower tier has not written yet, and how many it may not have been told.
        var count: Int
    }

    private static let limit = 32
    private var written: [(id: ObjectID, head: StoredHead)] = []
    private var next = 0
    private var awaited: [ObjectID: Awaited] = [:]
    private var number: UInt64 = 0

    var isEmpty: Bool { self.awaited.isEmpty && self.written.isEmpty }

    subscript(id: ObjectID) -> StoredHead? {
        if !self.awaited.isEmpty, let head = self.awaited[id]?.latest.head { return head }
        return self.written.first { $0.id == id }?.head
    }

    /// `told` is to be called once the lower tier has been told of it, `wrote` once it has it.
    mutating func note(_ id: ObjectID, _ head: StoredHead) -> Noted {
        self.number += 1
        let latest = Noted(head: head, number: self.number)
        self.awaited[id] = Awaited(latest: latest, count: (self.awaited[id]?.count ?? 0) + 2)
        return latest
    }

    /// The lower tier has been told of a head; what it is to be told after that, as it may have heard of
    /// that before.
    ///
    /// Heads are noted in one order and told, without a lock, in another where they meet. Whoever was
    /// not the last to note one tells the last again; so the last that is told is the last noted.
    mutating func told(_ id: ObjectID, _ noted: Noted) -> Noted? {
        guard let latest = self.awaited[id]?.latest else { return nil }
        guard latest.number != noted.number else {
            self.settle(id)
            return nil
        }
        self.awaited[id]?.count += 1
        return latest
    }

    /// The lower tier has written a head, or never will.
    mutating func wrote(_ id: ObjectID) { self.settle(id) }

    private mutating func settle(_ id: ObjectID) {
        guard let awaited = self.awaited[id] else { return }
        self.awaited[id]?.count -= 1
        guard awaited.count <= 1 else { return }
        self.awaited[id] = nil
        // A lookup may have read the old one right before.
        self.remember(id, awaited.latest.head)
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
