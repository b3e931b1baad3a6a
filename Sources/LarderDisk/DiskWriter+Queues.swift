import LarderHTTP
import LarderLMDB
import LarderStore
import Synchronization

// The queues of eviction, and the books that are kept of them.
//
// What a queue counts in `meta` is the sum of its entries, at every commit.
extension DiskWriter {
    /// Puts an entry at the newest end of the queue that its standing names, and writes its record.
    func enqueue(
        _ key: ObjectKey, _ record: inout ObjectRecord, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        attempt.takePlace(for: &record)
        try self.write(key, record, transaction)
        try self.writePlace(of: key, record, transaction)
    }

    /// Writes what is owed of new responses.
    ///
    /// In the order of the upper halves of their hashes, and so nearly of their keys, so that each leaf of
    /// the records is come to once, and apart from the bodies: what LMDB copies of the trees then lies
    /// side by side in the file, and not in each gap between two bodies. Such runs are written with one
    /// call, and make room for bodies when they are free again.
    func enterArrivals(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        if attempt.arrivals.isEmpty { return }
        var arrivals = exchange(&attempt.arrivals, with: [])
        for arrival in arrivals {
            try self.writePlace(of: arrival.key, arrival.record, transaction)
        }
        arrivals.sort { $0.key.hash.high < $1.key.hash.high }
        for arrival in arrivals { try self.write(arrival.key, arrival.record, transaction) }
    }

    func write(
        _ key: ObjectKey, _ record: ObjectRecord, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        try transaction.put(self.core.schema.objects, key.bytes.span, record.encoded().span)
    }

    private func writePlace(
        of key: ObjectKey, _ record: ObjectRecord, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        self.core.keys.willStore(key.hash)
        try transaction.put(
            self.core.schema.database(of: record.standing.queue),
            NumberKey.bytes(record.sequence).span,
            QueueEntry.bytes(of: key, charge: record.charge).span)
    }

    /// Takes an entry from its place; what it counted there, nil where it is another's place or no
    /// one's.
    ///
    /// - Parameter charge: what it counts where the entry does not say, as in the first format.
    @discardableResult
    func dequeue(
        _ key: ObjectKey, at place: UInt64, in queue: EvictionRules.Queue, charge: UInt64?,
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> UInt64? {
        let database = self.core.schema.database(of: queue)
        let place = NumberKey.bytes(place)
        let found = try transaction.reading.get(database, place.span) { QueueEntry($0) }
        guard let entry = found ?? nil, entry.key == key else { return nil }
        try transaction.delete(database, place.span)
        let charge = entry.charge ?? charge ?? 0
        attempt.meta[queue] &-= min(attempt.meta[queue], charge)
        return charge
    }

    /// The body of an entry has grown: so does what it counts.
    func recharge(
        _ key: ObjectKey, _ record: ObjectRecord, before: UInt64, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let queue = record.standing.queue
        let database = self.core.schema.database(of: queue)
        let place = NumberKey.bytes(record.sequence)
        let found = try transaction.reading.get(database, place.span) { QueueEntry($0) }
        guard let entry = found ?? nil, entry.key == key else { return }
        try transaction.put(
            database, place.span, QueueEntry.bytes(of: key, charge: record.charge).span)
        let charged = entry.charge ?? before
        attempt.meta[queue] &-= min(attempt.meta[queue], charged)
        attempt.meta[queue] &+= record.charge
    }

    /// The oldest place in a queue that no reader holds, and whose it is; no entry where that is
    /// damaged.
    ///
    /// What is being read stays where it is: to move it would take pages, when there may be none.
    ///
    /// - Parameter start: a place before which all are being read; moved on.
    func head(
        of queue: EvictionRules.Queue, from start: inout [UInt8], _ budget: inout ReclaimBudget,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> (place: [UInt8], entry: QueueEntry?)? {
        let database = self.core.schema.database(of: queue)
        let (head, reached) = try transaction.reading.withCursor(database) {
            (cursor) throws(LMDBError) in
            var head: (place: [UInt8], entry: QueueEntry?)?
            var reached = start
            let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                reached = key.copied
                let entry = QueueEntry(value)
                if let entry, self.core.isInTheWay(entry.key.id) {
                    budget.held -= 1
                    return budget.held > 0
                }
                budget.entries -= 1
                head = (reached, entry)
                return false
            }
            var goesOn = try cursor.seek(atOrAfter: start.span, visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
            return (head, reached)
        }
        start = reached
        return head
    }

    /// What a queue holds, as far as this transaction.
    func totals(
        of queue: EvictionRules.Queue, _ attempt: Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> EvictionRules.Totals {
        let statistics = try transaction.reading.statistics(
            of: self.core.schema.database(of: queue))
        return EvictionRules.Totals(bytes: attempt.meta[queue], count: statistics.entries)
    }

    // MARK: Ghosts

    /// Insertions of ghosts for which a chunk of them is written: a page for these many evictions.
    private static let ghostsPerChunk = 32
    /// Chunks that one transaction writes at most.
    private static let mostChunks = 64

    /// Writes the next chunks of the ghosts where it is time for some: a kill loses what has changed
    /// since the round before, a small part.
    func writeGhosts(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction, isLast: Bool = false
    ) throws(LMDBError) {
        let chunks = self.core.ghosts.withLock { ghosts in
            let due = isLast ? Self.mostChunks : ghosts.unwritten / Self.ghostsPerChunk
            return due > 0 ? ghosts.takeChunks(min(due, Self.mostChunks)) : []
        }
        for chunk in chunks { try self.core.schema.writeGhosts(chunk, transaction) }
        if !chunks.isEmpty { attempt.hasGhosts = true }
    }

    /// Writes all that the file does not know of the ghosts yet.
    mutating func saveGhosts() {
        while self.core.ghosts.withLock({ $0.differsFromFile }) {
            do throws(LMDBError) {
                let (attempt, _) = try self.attempt { (attempt, transaction) throws(LMDBError) in
                    try self.writeGhosts(&attempt, transaction, isLast: true)
                }
                self.takeOver(attempt)
                if !attempt.hasGhosts { return }
            } catch {
                // They are worth less than the room that there is not.
                return
            }
        }
    }
}

extension DiskWriter.Attempt {
    /// Gives an entry the newest place in the queue that its standing names.
    mutating func takePlace(for record: inout ObjectRecord) {
        record.sequence = self.meta.nextSequence
        self.meta.nextSequence &+= 1
        self.meta[record.standing.queue] &+= record.charge
    }
}

extension Schema {
    /// The ghosts as far as they are there and sound, and of this capacity.
    func readGhosts(
        _ transaction: borrowing ReadTransaction, capacity: ByteCount, clock: UInt64
    ) throws(LMDBError) -> GhostTable {
        var ghosts = GhostTable(capacity: capacity, clock: clock)
        for index in 0..<ghosts.chunkCount {
            let key = NumberKey.bytes(UInt64(index))
            _ = try transaction.get(self.ghosts, key.span) { value in
                guard let sum: UInt32 = value.littleEndian(0), value.count > 8,
                    Checksum.record(value.extracting(8...)) == sum
                else { return false }
                return ghosts.load(index, value.extracting(8...))
            }
        }
        return ghosts
    }

    func writeGhosts(
        _ chunk: (index: Int, bytes: [UInt8]), _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        var value: [UInt8] = []
        value.reserveCapacity(8 + chunk.bytes.count)
        value.append(littleEndian: UInt64(Checksum.record(chunk.bytes.span)))
        value.append(contentsOf: chunk.bytes)
        try transaction.put(self.ghosts, NumberKey.bytes(UInt64(chunk.index)).span, value.span)
    }
}
