import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

// What each command does inside a transaction.
extension DiskWriter {
    func apply(
        _ command: WriteCommand, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        attempt.cost += command.cost
        if !command.mayOvertakeArrivals { try self.enterArrivals(&attempt, transaction) }
        switch command {
        case .segment(let sink, let draft):
            guard try self.takes(sink, draft.length, &attempt, transaction) else { return }
            if sink.isAddition {
                guard try self.add(draft, of: sink, &attempt, transaction) != nil else { return }
            } else {
                if draft.index == sink.firstIndex {
                    try transaction.put(
                        self.core.schema.pending, NumberKey.bytes(sink.id.rawValue).span, Span())
                }
                try self.put(draft, of: sink.id, transaction)
            }
            attempt.hasStored = true
            attempt.effects.append(.written(sink, draft.end - sink.start))
        case .commit(let sink, let draft):
            guard try self.takes(sink, draft.last?.length ?? 0, &attempt, transaction) else {
                return
            }
            switch sink.role {
            case .new(let head, let replacing):
                try self.commit(sink, head, replacing, draft, &attempt, transaction)
            case .addition:
                try self.extend(sink, draft, &attempt, transaction)
            }
            attempt.hasStored = true
        case .abandon(let sink, let reason):
            try self.discardPending(sink.id, transaction)
            attempt.effects.append(.ended(sink, .abandoned(reason)))
        case .update(let key, let head, let written):
            if let written { attempt.effects.append(.reached(written)) }
            guard var record = try self.record(key, transaction) else { return }
            let extent = record.head.extent
            record.head = head
            record.head.extent = extent
            try self.write(key, record, transaction)
        case .remove(let key, let ids, let completion):
            let keys = try self.objectKeys(of: key, ids, transaction)
            try self.remove(keys, completion, &attempt, transaction)
        case .removeExactly(let keys, _, let completion):
            try self.remove(keys, completion, &attempt, transaction)
        case .removeAll(let walk):
            attempt.effects.append(.removesAll(walk))
        case .groups:
            break  // Written with each batch, whatever became of the last one.
        case .giveUp(let file, let completion):
            attempt.effects.append(.givenUp(file, completion))
        case .mend(let damage, let completion):
            let mended = try self.mend(damage, &attempt, transaction)
            attempt.effects.append(.reached { completion(mended) })
        case .barrier(let completion):
            attempt.effects.append(.reached(completion))
        }
    }

    /// Whether what a sink sends is still wanted, and there is room for it.
    ///
    /// Where writing is faster than eviction, or a reader keeps LMDB from using again what was freed,
    /// it is the sinks that give way, before LMDB has no page left to free anything with.
    private func takes(
        _ sink: SinkState, _ bytes: Int, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        guard attempt.isWanted(sink) else { return false }
        // A segment's own pages, and a leaf for what names it.
        let pages = attempt.writtenPages &+ UInt64(bytes / Segment.pageSize) + 2
        guard self.pages &+ pages <= self.core.marks.fullPages else {
            if !sink.isAddition { try self.discardPending(sink.id, transaction) }
            attempt.leave(sink, .noSpace)
            attempt.refused += 1
            return false
        }
        attempt.writtenPages = pages
        return true
    }

    /// Adds the uses that were noted to a record.
    func apply(
        _ use: UsageTable.Use, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        guard var record = try self.record(use.key, transaction) else { return }
        record.hits &+= use.count
        record.lastUsed = max(record.lastUsed, use.last)
        record.standing.used(use.count)
        attempt.meta.hits &+= use.count
        try self.write(use.key, record, transaction)
    }

    func put(
        _ draft: SegmentDraft, of id: ObjectID, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        try transaction.put(
            self.core.schema.segments, SegmentKey(id: id, index: draft.index).bytes.span,
            reserving: Segment.headerSize + draft.length
        ) { value in
            Segment.write(
                draft.pieces, id: id, index: draft.index, start: draft.start, into: &value)
        }
    }

    private func commit(
        _ sink: SinkState, _ head: StoredHead, _ replacing: [ObjectID], _ draft: ObjectDraft,
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let schema = self.core.schema
        let extent: StoredExtent?
        do throws(SinkAbandonment) {
            // What is whole has no bound that its sink did not keep.
            extent = draft.isWhole ? nil : try self.extent(of: sink, draft)
        } catch {
            try self.discardPending(sink.id, transaction)
            return attempt.leave(sink, error)
        }
        if sink.key.leavesOutSearch {
            // Each time: the transaction that noted it first may have come to nothing.
            try self.core.schema.noteSearch(transaction)
        }
        if let last = draft.last { try self.put(last, of: sink.id, transaction) }
        // A body of one segment has never been without its record.
        if draft.received > 0, draft.last?.index != sink.firstIndex {
            try transaction.delete(schema.pending, NumberKey.bytes(sink.id.rawValue).span)
        }
        let key = self.core.objectKey(sink.id, of: sink.key)
        var replaced: [StandingFacts] = []
        for id in replacing {
            let old = self.core.objectKey(id, of: sink.key)
            let facts = try self.standingFacts(old, transaction)
            if try self.remove(old, known: facts, &attempt, transaction), let facts {
                replaced.append(facts)
            }
        }
        let standing = self.arrival(of: key, head, replacing: replaced, &attempt)
        var record = ObjectRecord(
            key: sink.key, head: head, trailers: draft.trailers, bodyLength: draft.received,
            segmentCount: Segment.count(of: draft.received) ?? 0, hits: 0,
            lastUsed: head.storedTime, sequence: 0, standing: standing)
        if let extent { record.take(extent) }
        attempt.meta.bodyBytes &+= record.storedBytes
        attempt.takePlace(for: &record)
        attempt.arrivals.append(Attempt.Arrival(key, record))
        attempt.effects.append(.ended(sink, .visible(sink.id)))
    }

    /// The standing of a new response: that of the best of those whose place it takes, else by
    /// whether it was here not long ago.
    private func arrival(
        of key: ObjectKey, _ head: StoredHead, replacing replaced: [StandingFacts],
        _ attempt: inout Attempt
    ) -> EvictionRules.Standing {
        let fingerprint = Checksum.fingerprint(of: key.hash, head.varyingFields)
        let isRemembered = self.core.ghosts.withLock { $0.contains(fingerprint) }
        if isRemembered { attempt.returned.append(fingerprint) }
        var standing = self.core.rules.arrival(isRemembered: isRemembered)
        for old in replaced {
            // It was asked for again, or nothing would take its place.
            if old.standing.queue == .main { standing.queue = .main }
            standing.uses = max(standing.uses, old.standing.uses)
        }
        return standing
    }

    /// The record under `key`; nil where there is none, or a damaged one.
    func record(
        _ key: ObjectKey, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> ObjectRecord? {
        let found = try transaction.reading.get(self.core.schema.objects, key.bytes.span) { value in
            try? ObjectRecord.decode(value)
        }
        return found ?? nil
    }

    func objectKeys(
        of key: CacheKey, _ ids: [ObjectID]?, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> [ObjectKey] {
        if let ids { return ids.map { self.core.objectKey($0, of: key) } }
        let hash = Checksum.key(key.bytes, seed: self.core.seed)
        var keys: [ObjectKey] = []
        try self.core.schema.forEachVariant(transaction.reading, of: hash) { objectKey, value in
            // A damaged record may be of this key: it goes, too.
            let found = try? ObjectRecord.checkedKey(value)
            if found == nil || found == key { keys.append(objectKey) }
            return true
        }
        return keys
    }

    private func remove(
        _ keys: [ObjectKey], _ completion: (@Sendable (Int) -> Void)?,
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        var count = 0
        for key in keys where try self.remove(key, &attempt, transaction) { count += 1 }
        if let completion { attempt.effects.append(.removed(count, completion)) }
    }
}
