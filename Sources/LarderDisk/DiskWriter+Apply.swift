import LarderLMDB
import LarderPolicy
import LarderStore

// What each command does inside a transaction.
extension DiskWriter {
    func apply(
        _ command: WriteCommand, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        attempt.cost += command.bytes + 512
        switch command {
        case .segment(let sink, let draft):
            guard attempt.isWanted(sink) else { return }
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
            guard attempt.isWanted(sink) else { return }
            switch sink.role {
            case .new(let head, let replacing):
                try self.commit(sink, head, replacing, draft, &attempt, transaction)
            case .addition:
                try self.extend(sink, draft, &attempt, transaction)
            }
            attempt.hasStored = true
        case .abandon(let sink, let reason):
            try self.discardPending(sink.id, &attempt, transaction)
            attempt.effects.append(.ended(sink, .abandoned(reason)))
        case .update(let key, let head):
            guard var record = try self.record(key, transaction) else { return }
            let extent = record.head.extent
            record.head = head
            record.head.extent = extent
            try transaction.put(self.core.schema.objects, key.bytes.span, record.encoded().span)
        case .remove(let key, let ids, let completion):
            let keys = try self.objectKeys(of: key, ids, transaction)
            try self.remove(keys, completion, &attempt, transaction)
        case .removeExactly(let keys, let completion):
            try self.remove(keys, completion, &attempt, transaction)
        case .groups:
            break  // Written with each batch, whatever became of the last one.
        case .mend(let damage, let completion):
            let mended = try self.mend(damage, &attempt, transaction)
            attempt.effects.append(.reached { completion(mended) })
        case .barrier(let completion):
            attempt.effects.append(.reached(completion))
        }
    }

    /// Adds the uses that were noted to a record.
    func apply(
        _ use: UsageTable.Use, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        guard var record = try self.record(use.key, transaction) else { return }
        record.hits &+= use.count
        record.lastUsed = max(record.lastUsed, use.last)
        record.wasUsed = true
        attempt.meta.hits &+= use.count
        try transaction.put(self.core.schema.objects, use.key.bytes.span, record.encoded().span)
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
        let extent: StoredExtent
        do throws(SinkAbandonment) {
            extent = try self.extent(of: sink, draft)
        } catch {
            try self.discardPending(sink.id, &attempt, transaction)
            return attempt.leave(sink, error)
        }
        if sink.key.leavesOutSearch {
            // Each time: the transaction that noted it first may have come to nothing.
            try self.core.schema.noteSearch(transaction)
        }
        if let last = draft.last { try self.put(last, of: sink.id, transaction) }
        try transaction.delete(schema.pending, NumberKey.bytes(sink.id.rawValue).span)
        for id in replacing {
            try self.remove(self.core.objectKey(id, of: sink.key), &attempt, transaction)
        }
        let key = self.core.objectKey(sink.id, of: sink.key)
        var record = ObjectRecord(
            key: sink.key, head: head, trailers: draft.trailers, bodyLength: draft.received,
            segmentCount: 0, hits: 0, lastUsed: head.storedTime,
            sequence: attempt.meta.nextSequence, wasUsed: false)
        record.take(extent)
        attempt.meta.nextSequence &+= 1
        attempt.meta.bodyBytes &+= record.storedBytes
        try transaction.put(schema.objects, key.bytes.span, record.encoded().span)
        try transaction.put(
            schema.queue, NumberKey.bytes(record.sequence).span, key.bytes.span)
        attempt.effects.append(.ended(sink, .visible(sink.id)))
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

    private func objectKeys(
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
