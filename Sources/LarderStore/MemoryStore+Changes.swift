package import LarderPolicy

/// What changes stored responses in memory: freshening and removal.
extension MemoryStore {
    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        self.update(id, of: HashedKey(key), head: head, begun: nil)
        written?()
    }

    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, begun: RemovalMark
    ) {
        self.update(id, of: HashedKey(key), head: head, begun: begun)
    }

    private func update(
        _ id: ObjectID, of key: HashedKey, head: StoredHead, begun: RemovalMark?
    ) {
        self.withShard(of: key) { shard in
            guard shard.notesUpdate(of: key, to: head, begun: begun, at: self.newMark()) else {
                return
            }
            _ = shard.update(id, of: key, head: head)
        }
    }

    package func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?
    ) {
        let key = HashedKey(key)
        let removed = self.withShard(of: key) { shard in
            guard let ids else { return self.removeAll(of: key, &shard).removed }
            shard.changes.note(key.hashed, at: self.newMark())
            return ids.count { shard.remove($0, of: key) != nil }
        }
        completion?(removed)
    }

    package func remove(
        _ key: CacheKey, begun: RemovalMark, _ completion: @escaping @Sendable (Int) -> Void
    ) -> RemovalMark {
        let key = HashedKey(key)
        let (removal, isFirst) = self.first(key, since: begun) { self.removeAll(of: key, &$0) }
        completion(removal.removed)
        return isFirst ? removal.mark : begun
    }

    private func removeAll(
        of key: HashedKey, _ shard: inout MemoryShard
    ) -> (mark: RemovalMark, removed: Int) {
        let mark = self.newMark()
        shard.changes.note(key.hashed, at: mark)
        shard.removals.note(key.hashed, at: mark)
        let removed = shard.objects(of: key).count { shard.remove($0.id, of: key) != nil }
        return (RemovalMark(rawValue: mark), removed)
    }

    /// Runs `body`, which removes all of a key, on its part, locked.
    ///
    /// - Returns: with what it gives, whether nothing else had removed the key after `begun`.
    func first<R: Sendable>(
        _ key: HashedKey, since begun: RemovalMark, _ body: (inout MemoryShard) -> R
    ) -> (R, isFirst: Bool) {
        switch self.admit(key, begun: begun, body) {
        case .admitted(let result): (result, true)
        case .refused: (self.withShard(of: key, body), false)
        }
    }

    package func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        let removal = PendingRemoval(completion)
        self.sweep(selection, removal)
        removal.settle()
    }
}
