import LarderPolicy
import LarderStore
import Synchronization

/// Which entries are to be found, and what is done with those that must not be.
extension DiskCore {
    /// One that held a body has let it go.
    func letGo(of id: ObjectID) {
        let (wasInTheWay, former) = self.entries.withLock { entries in
            (entries.release(id), entries.takeFormerFile(of: id))
        }
        if let former { self.closeLater(former) }
        // The writer has waited for this. Where it has not looked for room since, it need not be
        // woken: it looks after each batch.
        if wasInTheWay, self.hasReclaimed.exchange(false, ordering: .sequentiallyConsistent) {
            self.mailbox.nudge()
        }
    }

    /// The file in which a held body lies.
    func file(of id: ObjectID) -> CacheFile {
        // Before the other question: what lies in the file that is left is noted before it is left.
        let current = self.file
        return self.entries.withLock { $0.formerFile(of: id) } ?? current
    }

    /// Lets go of a file that has no name any more, perhaps as the last one.
    ///
    /// The kernel then takes its room back, which takes long where it is large. So not here, which may be
    /// an event loop.
    func closeLater(_ file: CacheFile) {
        _ = self.reads.submit(for: .body) { withExtendedLifetime(file) {} }
    }

    /// Whether a body is held, asked by the writer that wants its room: it is woken when that is let go
    /// of.
    func isInTheWay(_ id: ObjectID) -> Bool {
        self.entries.withLock { $0.isInTheWay(id) }
    }

    /// Whether anything that the writer came upon is still held.
    var hasBodiesInTheWay: Bool { self.entries.withLock { $0.hasInTheWay } }

    /// Whether a body may be deleted in the writer's transaction.
    func leaves(_ id: ObjectID) -> Bool {
        self.entries.withLock { $0.leaves(id) }
    }

    func isHidden(_ id: ObjectID, of key: CacheKey) -> Bool {
        self.entries.withLock { $0.isHidden(id, of: key) }
    }

    /// Drops an entry that is not what was written, counts it and says it.
    func dropDamaged(_ id: ObjectID, key: CacheKey, reason: String) {
        self.dropDamaged(self.objectKey(id, of: key), key: key, reason: reason)
    }

    /// Drops an entry that is not what was written and may not even give its key.
    func dropDamaged(_ objectKey: ObjectKey, key: CacheKey? = nil, reason: String) {
        // It will be found again, should it not be removed.
        guard self.drop(objectKey, isPromise: false) else { return }
        self.damaged.wrappingAdd(1, ordering: .relaxed)
        self.report(.damaged(key: key, reason: reason))
    }

    /// Drops an entry whose new head is too much for a disk that is too slow: it is not to be used
    /// with the old one.
    func dropOutdated(_ key: ObjectKey, isPromised: Bool) {
        _ = self.drop(key, isPromise: isPromised)
    }

    /// Hides an entry, and has it removed; false where that was done before.
    private func drop(_ key: ObjectKey, isPromise: Bool) -> Bool {
        guard self.entries.withLock({ $0.hide(key.id) }) else { return false }
        self.mailbox.post(.removeExactly([key], isPromise: isPromise, nil))
        return true
    }
}
