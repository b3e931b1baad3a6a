import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// How lookups are answered: a walk over the records of one key.
extension DiskCore {
    /// More variants than this are not looked at: the most recent ones count.
    private static let variantLimit = 128
    /// Of so many variants small bodies are read along with their heads; a client gets one.
    private static let variantsWithBody = 4

    /// All variants of `key`, the most recent first; waits for the disk.
    func find(_ key: CacheKey) -> [StoredObject] {
        self.counts.lookupsOnPool.add(1, ordering: .relaxed)
        return self.find(key, waits: true) ?? []
    }

    /// The same without waiting; nil where a page that it takes is not in memory.
    ///
    /// A key of which nothing is stored takes the pages of `objects` that lead to its place there,
    /// and none of a body.
    func findInPlace(_ key: CacheKey) -> [StoredObject]? {
        guard self.mayBeResident(.records), let found = self.find(key, waits: false) else {
            return nil
        }
        self.counts.lookupsInPlace.add(1, ordering: .relaxed)
        return found
    }

    private func find(_ key: CacheKey, waits: Bool) -> [StoredObject]? {
        let hash = Checksum.key(key.bytes, seed: self.seed)
        var damaged: [(ObjectKey, String)] = []
        let found: [StoredObject]?
        let environment = self.environment
        do throws(LMDBError) {
            found = try environment.read { (transaction) throws(LMDBError) in
                var records: [(ObjectID, ObjectRecord)] = []
                let isWhole = try self.schema.forEachVariant(
                    transaction, of: hash, waits: waits
                ) { objectKey, value in
                    do throws(RecordDamage) {
                        let record = try ObjectRecord.decode(value)
                        if record.key == key { records.append((objectKey.id, record)) }
                    } catch {
                        damaged.append((objectKey, error.rawValue))
                    }
                    return records.count < Self.variantLimit
                }
                return isWhole ? try self.objects(of: records, transaction, waits: waits) : nil
            }
        } catch {
            self.readFailed(error, with: environment)
            found = []
        }
        // Where it could not be read to its end, whoever does that finds them again.
        self.touchedTrees(1 + (found?.count ?? 0), waits: waits)
        guard let found else { return nil }
        for (objectKey, reason) in damaged { self.dropDamaged(objectKey, reason: reason) }
        return found
    }

    private func objects(
        of records: [(ObjectID, ObjectRecord)], _ transaction: borrowing ReadTransaction,
        waits: Bool
    ) throws(LMDBError) -> [StoredObject]? {
        var objects: [StoredObject] = []
        objects.reserveCapacity(records.count)
        for (id, record) in records where !self.isHidden(id, of: record.key) {
            var resident: ByteBuffer?
            if objects.count < Self.variantsWithBody, self.isSmall(record) {
                switch try self.smallBody(id, record, transaction, waits: waits) {
                case .piece(let body): resident = body
                case .notResident: return nil
                // Whoever reads it will find the same, and say so.
                case .gone, .damaged: break
                }
            }
            objects.append(self.object(id, record, resident))
        }
        return objects
    }

    private func object(
        _ id: ObjectID, _ record: ObjectRecord, _ resident: ByteBuffer?
    ) -> StoredObject {
        let use = self.uses.use(of: id)
        return StoredObject(
            id: id, key: record.key, head: record.head, trailers: record.trailers,
            bodyLength: record.bodyLength, tier: .disk, hits: record.hits &+ (use?.count ?? 0),
            lastUsed: max(record.lastUsed, use?.last ?? record.lastUsed),
            body: DiskBody(
                core: self, id: id, key: record.key, bodyLength: record.bodyLength,
                extent: record.head.extent, trailers: record.trailers, resident: resident))
    }

    /// Whether the body is read along with its head: that of one small segment, or of none.
    private func isSmall(_ record: ObjectRecord) -> Bool {
        record.head.extent == nil
            && (record.bodyLength == 0
                || record.bodyLength <= self.configuration.bodyWithHead.bytes
                    && record.segmentCount == 1)
    }

    private func smallBody(
        _ id: ObjectID, _ record: ObjectRecord, _ transaction: borrowing ReadTransaction,
        waits: Bool
    ) throws(LMDBError) -> SegmentRead {
        if record.bodyLength == 0 { return .piece(ByteBuffer()) }
        return try self.readSegment(
            id, 0, range: 0..<record.bodyLength, transaction, waits: waits)
    }
}

extension Schema {
    /// Lends each record under `hash`, the most recent first, until `body` returns false.
    ///
    /// - Returns: false where a page is not in memory and `waits` is false; what was lent before is
    ///   not all then.
    @discardableResult
    func forEachVariant(
        _ transaction: borrowing ReadTransaction, of hash: KeyHash, waits: Bool = true,
        _ body: (ObjectKey, Span<UInt8>) -> Bool
    ) throws(LMDBError) -> Bool {
        let prefix = hash.bytes
        func visit(_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
            guard key.hasPrefix(prefix), let objectKey = ObjectKey(key) else { return false }
            return body(objectKey, value)
        }
        if !waits {
            return try transaction.forEachResident(self.objects, from: prefix.span, visit) != nil
        }
        try transaction.withCursor(self.objects) { (cursor) throws(LMDBError) in
            var goesOn = try cursor.seek(atOrAfter: prefix.span, visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
        }
        return true
    }
}
