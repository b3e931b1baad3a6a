import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// Removes all entries in a selection that were there before, a bounded part at a time.
///
/// Reads keys in a short transaction on a reader thread, asks for each whether it is selected outside of
/// it, hands what is to the writer, and goes on when that is committed. Where all is to go, the writer is
/// asked for an empty file first.
///
/// As the store closes, what is left of a selection stays, and who asked is told so
/// (``DiskCore/unkeptRemoval``): it may be a few of very many. Where all is to go, there is nothing to
/// lose, and it goes with the next opening at the latest (``WalksUnderWay``).
struct RemovalWalk: Sendable {
    private let core: DiskCore
    private let selection: KeySelection
    private let completion: @Sendable (Int) -> Void
    /// No response that began to be stored before it had this id, or one above.
    let bound: UInt64

    init(
        core: DiskCore, _ selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        self.core = core
        self.selection = selection
        self.completion = completion
        self.bound = core.nextID
    }

    private static let stepSize = 512

    /// Begins; once.
    func start() {
        guard self.isAll else { return self.walk() }
        self.core.walks.withLock { $0.began() }
        if self.core.mailbox.post(.removeAll(self)) != .accepted { self.cutShort(0) }
    }

    /// Goes from one entry to the next.
    func walk() { self.step(after: nil, removed: 0) }

    private var isAll: Bool {
        if case .all = self.selection { true } else { false }
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

    /// Tells that all is done; once.
    func end(_ removed: Int) {
        if self.isAll { self.core.walks.withLock { $0.ended() } }
        self.completion(removed)
    }

    private func cutShort(_ removed: Int) {
        if self.isAll { return self.core.walkCutShort { self.completion(removed) } }
        self.core.walks.withLock { $0.lost() }
        self.completion(removed)
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
            name.id.rawValue < self.bound && (key.map(self.selection.contains) ?? true)
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
