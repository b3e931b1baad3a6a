import LarderHTTP
import LarderPolicy
import NIOCore

/// The moment in which a response becomes visible, and the one in which the lower tier has it.
extension TieredStore {
    /// What came of placing a response.
    struct Placed: Sendable {
        /// Its id in memory; also names its landing.
        let ticket: ObjectID
        let isInMemory: Bool
    }

    /// Makes a whole response visible in memory, and notes that it goes to the lower tier.
    ///
    /// - Parameters:
    ///   - body: nil where memory does not take it.
    ///   - landing: whether the lower tier is about to be told to commit.
    func place(
        _ response: TieredSinkCore.Response, body: ByteBuffer?, trailers: Fields, landing: Bool
    ) -> Admission<Placed> {
        let key = response.key
        let object = StoredObject(
            id: self.memory.newID(), key: key.key, head: response.head, trailers: trailers,
            bodyLength: UInt64(body?.readableBytes ?? 0), tier: .memory,
            lastUsed: response.head.responseTime,
            body: MemoryBody(body ?? ByteBuffer(), trailers: trailers))
        let result = self.memory.admit(key, begun: response.begun) { shard in
            shard.changes.note(key.hashed, at: self.memory.newMark())
            let lowerIDs = response.replacing.compactMap { Self.lowerID($0, key, shard) }
            let tickets = response.replacing.map { shard.entry($0, of: key)?.object.id ?? $0 }
            let isInMemory =
                body != nil
                && shard.insert(
                    MemoryEntry(object: object, isLanding: landing), key,
                    replacing: response.replacing)
            if landing {
                shard.lower.taint(key.hashed)
                if !isInMemory { shard.setComplete(false, key) }
                shard.lower.landings.insert(
                    Landing(
                        ticket: object.id, key: key, isInMemory: isInMemory, object: object,
                        replaced: lowerIDs))
            }
            guard isInMemory else { return (false, [ObjectID]()) }
            // What it replaces may be landing itself.
            shard.lower.landings.doom(tickets, for: nil)
            if !landing { shard.lower.hide(lowerIDs) }
            return (true, landing ? [] : lowerIDs)
        }
        switch result {
        case .refused(let reason):
            return .refused(reason)
        case .admitted((let isInMemory, let replaced)):
            // No sink below replaces them.
            if !replaced.isEmpty { self.removeHidden(replaced, of: key) { _ in } }
            return .admitted(Placed(ticket: object.id, isInMemory: isInMemory))
        }
    }

    /// Whether a removal waits until a response has landed.
    func isAwaited(_ ticket: ObjectID, of key: HashedKey) -> Bool {
        self.memory.withShard(of: key) { $0.lower.landings.isAwaited(ticket) }
    }

    /// What is left to do below when a landing has ended.
    private struct Aftermath: Sendable {
        var isKept = true
        var remove: [ObjectID] = []
        var newHead: LatestHeads.Noted?
        var waiters: [PendingRemoval] = []
        /// Lookups have found it while it was landing.
        var wasShown = false
    }

    /// The lower tier shows a response as `lowerID`, or (nil) has given it up.
    ///
    /// Whether it stays.
    @discardableResult
    func landed(
        _ ticket: ObjectID, _ response: TieredSinkCore.Response, as lowerID: ObjectID?
    ) -> Bool {
        let key = response.key
        let after = self.memory.withShard(of: key) { shard in
            Self.settle(ticket, response, as: lowerID, &shard)
        }
        let waiters = after.waiters
        let wasShown = after.wasShown
        if after.remove.isEmpty {
            Self.settle(waiters, counting: wasShown)
        } else {
            self.removeHidden(after.remove, of: key) { removed in
                // Where a walk through the lower tier came first, it has counted the response.
                Self.settle(waiters, counting: wasShown && (lowerID == nil || removed > 0))
            }
        }
        if let lowerID, let head = after.newHead {
            self.updateBelow(lowerID, of: key, head)
        }
        return after.isKept
    }

    /// The first of several removals is the one that counts.
    private static func settle(_ waiters: [PendingRemoval], counting isCounted: Bool) {
        for (index, waiter) in waiters.enumerated() {
            waiter.settle(adding: index == 0 && isCounted ? 1 : 0)
        }
    }

    private static func settle(
        _ ticket: ObjectID, _ response: TieredSinkCore.Response, as lowerID: ObjectID?,
        _ shard: inout MemoryShard
    ) -> Aftermath {
        let key = response.key
        guard let landing = shard.lower.landings.end(ticket) else { return Aftermath() }
        var after = Aftermath(
            isKept: !landing.isDoomed, waiters: landing.waiters, wasShown: landing.isInMemory)
        shard.lower.taint(key.hashed)
        guard let lowerID else {
            shard.landed(ticket, of: key, as: nil)
            // Memory has replaced them, the lower tier has not.
            if landing.isInMemory { after.remove = landing.replaced }
            shard.lower.hide(after.remove)
            return after
        }
        if landing.isInMemory {
            after.remove = landing.replaced.filter { !response.passedOn.contains($0) }
        } else if !landing.isDoomed {
            // Visible only now: so is the replacement.
            shard.lower.landings.doom(response.replacing, for: nil)
            for id in response.replacing {
                guard let below = Self.lowerID(id, key, shard) else {
                    _ = shard.remove(id, of: key)
                    continue
                }
                _ = shard.remove(id, of: key)
                if !response.passedOn.contains(below) { after.remove.append(below) }
            }
        }
        if landing.isDoomed {
            after.remove.append(lowerID)
        } else {
            after.newHead = landing.newHead.map { shard.lower.heads.note(lowerID, $0) }
            if !shard.landed(ticket, of: key, as: lowerID) {
                // Evicted on its way, or never in memory.
                if landing.isInMemory { shard.lower.aliases.note(ticket, is: lowerID) }
                shard.setComplete(false, key)
            }
        }
        shard.lower.hide(after.remove)
        return after
    }
}
