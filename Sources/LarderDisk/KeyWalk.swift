import LarderLMDB
import LarderStore

/// Adds the hashes of all keys that are stored to a filter, a bounded part of the file at a time.
///
/// It reads the queues of eviction, which say of each response whose it is in a tenth of the room that
/// its record takes. Only where there are more records than places, as damage may leave them, it reads
/// the records, too.
struct KeyWalk: Sendable {
    private enum Tree: Sendable {
        case queue(EvictionRules.Queue)
        case objects
    }

    let core: DiskCore
    let filter: KeyFilter
    /// Entries that one transaction reads: some fifty pages of a queue.
    var stepSize = 4_096
    /// Hears whether all were added; not where the store closes before.
    let ended: @Sendable (Bool) -> Void

    /// Begins; once.
    func start() {
        self.step(.queue(.small), after: nil, of: self.core.file)
    }

    private func step(
        _ tree: Tree, after place: [UInt8]?, of file: CacheFile, _ tries: WalkTries = WalkTries()
    ) {
        // Behind what clients wait for, a turn at a time.
        _ = self.core.reads.submit(for: .body) { self.run(tree, after: place, of: file, tries) }
    }

    private func run(
        _ tree: Tree, after place: [UInt8]?, of file: CacheFile, _ tries: WalkTries
    ) {
        // Where another took its place, what is stored lies elsewhere.
        guard file === self.core.file else { return self.start() }
        let part: (last: [UInt8]?, next: Tree?)
        do throws(LMDBError) {
            part = try self.read(tree, after: place, of: file)
        } catch {
            switch self.core.walkFailed(error, with: file, tries) {
            case .again: self.step(tree, after: place, of: file, tries.again)
            case .later:
                self.core.later { self.step(tree, after: place, of: file, tries.later) }
            case .giveUp: self.ended(false)
            }
            return
        }
        if let last = part.last {
            self.step(tree, after: last, of: file)
        } else if let next = part.next {
            self.step(next, after: nil, of: file)
        } else {
            self.ended(true)
        }
    }

    /// Adds a part of a tree: where to go on in it, or which comes next.
    private func read(
        _ tree: Tree, after place: [UInt8]?, of file: CacheFile
    ) throws(LMDBError) -> (last: [UInt8]?, next: Tree?) {
        let schema = file.schema
        return try file.environment.read { (transaction) throws(LMDBError) in
            let last = try self.add(
                tree, after: place, transaction,
                in: {
                    switch tree {
                    case .queue(let queue): schema.database(of: queue)
                    case .objects: schema.objects
                    }
                }())
            if last != nil { return (last, nil) }
            switch tree {
            case .queue(.small): return (nil, .queue(.main))
            case .queue(.main):
                let records = try transaction.statistics(of: schema.objects).entries
                var places: UInt64 = 0
                for queue in schema.queues {
                    places &+= try transaction.statistics(of: schema.database(of: queue)).entries
                }
                return (nil, records > places ? .objects : nil)
            case .objects: return (nil, nil)
            }
        }
    }

    private func add(
        _ tree: Tree, after place: [UInt8]?, _ transaction: borrowing ReadTransaction,
        in database: Database
    ) throws(LMDBError) -> [UInt8]? {
        try transaction.withCursor(database) { (cursor) throws(LMDBError) in
            var count = 0
            var last: [UInt8]?
            var mayBeStart = place != nil
            let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                defer { mayBeStart = false }
                if mayBeStart, key.copied == place { return true }
                let entry =
                    switch tree {
                    case .queue: QueueEntry(value)?.key
                    case .objects: ObjectKey(key)
                    }
                if let entry { self.filter.add(entry.hash) }
                count += 1
                if count == self.stepSize { last = key.copied }
                return last == nil
            }
            let start = place ?? []
            var goesOn = try cursor.seek(atOrAfter: start.span, visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
            return last
        }
    }
}

extension DiskWriter {
    /// Begins to learn which keys are stored, where it is time for that.
    func learnKeys(holding objects: UInt64) {
        let keys = self.core.keys
        guard let filter = keys.begin(holding: objects) else { return }
        KeyWalk(core: self.core, filter: filter) { keys.ended(isWhole: $0) }.start()
    }
}
