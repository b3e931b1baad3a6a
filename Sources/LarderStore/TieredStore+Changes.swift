package import LarderPolicy

/// What changes stored responses in both tiers: freshening and removal.
extension TieredStore {
    /// Which calls the lower tier gets, found with the part's lock held and made without it.
    private enum LowerWork: Sendable {
        case none
        case update(ObjectID, LatestHeads.Noted)
        case remove([ObjectID])
        /// Which of them it has is no longer known: all of the key go, and are fetched anew.
        case removeKey
        /// What is to be removed is about to come to it.
        case hurry
    }

    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        guard self.disk != nil else {
            return self.memory.update(id, of: key, head: head, written: written)
        }
        self.update(id, of: HashedKey(key), head: head, begun: nil, written)
    }

    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, begun: RemovalMark
    ) {
        guard self.disk != nil else {
            return self.memory.update(id, of: key, head: head, begun: begun)
        }
        self.update(id, of: HashedKey(key), head: head, begun: begun, nil)
    }

    private func update(
        _ id: ObjectID, of hashed: HashedKey, head: StoredHead, begun: RemovalMark?,
        _ written: (@Sendable () -> Void)?
    ) {
        let work: LowerWork = self.memory.withShard(of: hashed) { shard in
            let mark = self.memory.newMark()
            guard shard.notesUpdate(of: hashed, to: head, begun: begun, at: mark) else {
                return .none
            }
            let lowerID = Self.lowerID(id, hashed, shard)
            let ticket = shard.entry(id, of: hashed)?.object.id ?? id
            let old = shard.update(id, of: hashed, head: head)
            if let lowerID {
                return .update(lowerID, shard.lower.heads.note(lowerID, head))
            }
            if shard.lower.landings.setNewHead(head, ticket: ticket) || old != nil { return .none }
            return shard.lower.aliases.meaning(of: id) == .forgotten ? .removeKey : .none
        }
        switch work {
        case .none, .remove, .hurry: written?()
        case .update(let lowerID, let noted):
            self.updateBelow(lowerID, of: hashed, noted, written)
        case .removeKey: self.removeBelow(hashed) { _ in written?() }
        }
    }

    /// Gives the lower tier a head that is noted among the latest, and after it any that was noted
    /// later and may have come there before.
    func updateBelow(
        _ id: ObjectID, of key: HashedKey, _ noted: LatestHeads.Noted,
        _ written: (@Sendable () -> Void)? = nil
    ) {
        var (next, written) = (Optional(noted), written)
        while let noted = next {
            self.disk?.update(id, of: key.key, head: noted.head) { [written] in
                self.memory.withShard(of: key) { $0.lower.heads.wrote(id) }
                written?()
            }
            written = nil
            next = self.memory.withShard(of: key) { $0.lower.heads.told(id, noted) }
        }
    }

    package func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?
    ) {
        guard self.disk != nil else {
            return self.memory.remove(key, ids: ids, completion)
        }
        let completion = completion ?? { _ in }
        guard let ids else {
            _ = self.remove(key, begun: self.removalMark(), completion)
            return
        }
        // The lower tier is not told of what it is not known to have.
        self.remove(ids, of: HashedKey(key), self.afterNoting(completion))
    }

    private func remove(
        _ ids: [ObjectID], of key: HashedKey, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        let removal = PendingRemoval(completion)
        let work: LowerWork = self.memory.withShard(of: key) { shard in
            shard.changes.note(key.hashed, at: self.memory.newMark())
            var lowerIDs: [ObjectID] = []
            var isForgotten = false
            var isLanding = false
            for id in ids {
                let lowerID = Self.lowerID(id, key, shard)
                let entry = shard.remove(id, of: key)
                let ticket = entry?.object.id ?? id
                shard.lower.landings.doom([ticket], for: removal)
                if shard.lower.landings.isAwaited(ticket) { isLanding = true }
                if let lowerID {
                    lowerIDs.append(lowerID)
                } else if let entry {
                    // What is landing is counted when it has landed.
                    if !entry.isLanding { removal.add(1) }
                } else if shard.lower.aliases.meaning(of: id) == .forgotten {
                    isForgotten = true
                }
            }
            // Nothing of the key is shown until all of it is gone.
            if isForgotten { return .removeKey }
            shard.lower.hide(lowerIDs)
            return lowerIDs.isEmpty ? (isLanding ? .hurry : .none) : .remove(lowerIDs)
        }
        switch work {
        case .none, .update: break
        case .hurry: self.disk?.flush {}
        case .removeKey:
            removal.expectOneMore()
            self.removeBelow(key) { removal.settle(adding: $0) }
        case .remove(let lowerIDs):
            removal.expectOneMore()
            self.removeHidden(lowerIDs, of: key) { removal.settle(adding: $0) }
        }
        removal.settle()
    }

    /// Removes ids, hidden already, from the lower tier.
    func removeHidden(
        _ ids: [ObjectID], of key: HashedKey,
        _ completion: @escaping @Sendable (Int) -> Void
    ) {
        guard let disk = self.disk else { return completion(0) }
        disk.remove(key.key, ids: ids) { removed in
            self.memory.withShard(of: key) { $0.lower.unhide(ids) }
            completion(removed)
        }
    }

    package func remove(
        _ key: CacheKey, begun: RemovalMark, _ completion: @escaping @Sendable (Int) -> Void
    ) -> RemovalMark {
        guard self.disk != nil else {
            return self.memory.remove(key, begun: begun, completion)
        }
        let hashed = HashedKey(key)
        let removal = self.purging(hashed, completion)
        let (mark, isFirst) = self.memory.first(hashed, since: begun) {
            self.purge(hashed, removal, &$0)
        }
        self.purgeBelow(hashed, removal)
        return isFirst ? mark : begun
    }

    /// Removes the whole key from its part of memory, and dooms what is about to land.
    private func purge(
        _ key: HashedKey, _ removal: PendingRemoval, _ shard: inout MemoryShard
    ) -> RemovalMark {
        let mark = self.memory.newMark()
        shard.removals.note(key.hashed, at: mark)
        shard.changes.note(key.hashed, at: mark)
        shard.lower.beganPurging(key.hashed)
        shard.lower.landings.doom(key, for: removal)
        for object in shard.objects(of: key) {
            let entry = shard.remove(object.id, of: key)
            // What is landing is counted when it has landed.
            if let entry, entry.lowerID == nil, !entry.isLanding { removal.add(1) }
        }
        return RemovalMark(rawValue: mark)
    }

    /// Removes all that the lower tier has of a key, and leaves memory as it is.
    private func removeBelow(
        _ key: HashedKey, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        let removal = self.purging(key, completion)
        self.memory.withShard(of: key) { $0.lower.beganPurging(key.hashed) }
        self.purgeBelow(key, removal)
    }

    /// What ends once nothing is left of a key that is noted as being purged.
    private func purging(
        _ key: HashedKey, _ completion: @escaping @Sendable (Int) -> Void
    ) -> PendingRemoval {
        PendingRemoval { removed in
            self.memory.withShard(of: key) { $0.lower.endedPurging(key.hashed) }
            completion(removed)
        }
    }

    private func purgeBelow(_ key: HashedKey, _ removal: PendingRemoval) {
        guard let disk = self.disk else { return removal.settle() }
        disk.remove(key.key, ids: nil) { removal.settle(adding: $0) }
    }

    package func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        guard let disk = self.disk else {
            return self.memory.removeAll(in: selection, completion)
        }
        let sweep = self.memory.beganSweepBelow(selection)
        let removal = PendingRemoval { removed in
            self.memory.endedSweepBelow(sweep)
            completion(removed)
        }
        self.memory.sweep(selection, removal)
        disk.removeAll(in: selection) { removal.settle(adding: $0) }
    }
}
