import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// Removes all entries whose key matches and that were there before, a bounded part at a time.
///
/// Reads keys in a short transaction on a reader thread, asks the predicate outside of it, hands
/// what matches to the writer, and goes on when that is committed.
struct RemovalWalk: Sendable {
    let core: DiskCore
    let matches: @Sendable (CacheKey) -> Bool
    let completion: @Sendable (Int) -> Void
    /// No response that began to be stored before it had this id, or one above.
    private let bound: UInt64

    init(
        core: DiskCore, matches: @escaping @Sendable (CacheKey) -> Bool,
        completion: @escaping @Sendable (Int) -> Void
    ) {
        self.core = core
        self.matches = matches
        self.completion = completion
        self.bound = core.nextID
    }

    private static let stepSize = 512

    /// Begins; once.
    func start() {
        self.core.walks.withLock { $0.began() }
        self.step(after: nil, removed: 0)
    }

    /// Goes on with the entries behind `place`, `removed` having gone before.
    private func step(
        after place: ObjectKey?, removed: Int, _ tries: WalkTries = WalkTries()
    ) {
        let isTaken = self.core.reads.submit(for: .body) {
            self.run(after: place, removed, tries)
        }
        if !isTaken { self.cutShort(removed) }
    }

    private func end(_ removed: Int) {
        self.core.walks.withLock { $0.ended() }
        self.completion(removed)
    }

    private func cutShort(_ removed: Int) {
        self.core.walkCutShort { self.completion(removed) }
    }

    private func run(after place: ObjectKey?, _ removed: Int, _ tries: WalkTries) {
        let part: [(ObjectKey, CacheKey?)]
        let file = self.core.file
        do throws(LMDBError) {
            part = try file.schema.objectKeys(
                in: file.environment, after: place, limit: Self.stepSize)
        } catch {
            switch self.core.walkFailed(error, with: file, tries) {
            case .again: return self.step(after: place, removed: removed, tries.again)
            case .later:
                return self.core.later { self.step(after: place, removed: removed, tries.later) }
            case .giveUp: break
            }
            // What is left cannot be looked at, and is not to be served.
            let command = WriteCommand.giveUp(file) { isGone in
                if isGone {
                    self.end(removed)
                } else {
                    self.step(after: place, removed: removed)
                }
            }
            if self.core.mailbox.post(command) != .accepted { self.cutShort(removed) }
            return
        }
        guard let last = part.last else { return self.end(removed) }
        // What is damaged is no loss, and may be what was meant.
        let doomed = part.filter { name, key in
            name.id.rawValue < self.bound && (key.map(self.matches) ?? true)
        }.map { $0.0 }
        guard !doomed.isEmpty else { return self.step(after: last.0, removed: removed) }
        let command = WriteCommand.removeExactly(doomed, isPromise: true) { count in
            self.step(after: last.0, removed: removed + count)
        }
        if self.core.mailbox.post(command) != .accepted { self.cutShort(removed) }
    }
}

extension Schema {
    /// Up to `limit` keys behind `place` in the order of hashes; no cache key where a record is
    /// damaged.
    func objectKeys(
        in environment: Environment, after place: ObjectKey?, limit: Int
    ) throws(LMDBError) -> [(ObjectKey, CacheKey?)] {
        try environment.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(self.objects) { (cursor) throws(LMDBError) in
                var keys: [(ObjectKey, CacheKey?)] = []
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    if let objectKey = ObjectKey(key), objectKey != place {
                        keys.append((objectKey, try? ObjectRecord.checkedKey(value)))
                    }
                    return keys.count < limit
                }
                let start = place?.bytes.span.copied ?? []
                var goesOn = try cursor.seek(atOrAfter: start.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return keys
            }
        }
    }
}
