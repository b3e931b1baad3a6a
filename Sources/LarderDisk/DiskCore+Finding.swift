import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// An entry of a snapshot.
private struct FoundEntry {
    let found: DecodedRecord
    /// Where it is small, it was read with its record.
    var body: ByteBuffer?

    var id: ObjectID { self.found.id }
    var record: ObjectRecord { self.found.record }
}

/// An entry that is not what was written; without a key where its record does not tell it.
private struct Damaged {
    let objectKey: ObjectKey
    var key: CacheKey?
    let reason: String
}

/// How lookups are answered: a walk over the records of one key.
extension DiskCore {
    /// More variants than this are not looked at: the most recent ones count.
    private static let variantLimit = 128
    /// How many variants have small bodies read along with their heads; a client gets one.
    private static let variantsWithBody = 4
    /// How often it looks where the file changes under it each time.
    ///
    /// A commit takes far longer than a look-up of what is in memory, so the second time is nearly
    /// always the last.
    static let attemptsInPlace = 2
    private static let attemptsOnPool = 16

    /// Whether nothing is stored under a key, as far as that is known without the file.
    func lacks(_ key: CacheKey) -> Bool {
        if self.keys.mayHold(Checksum.key(key.bytes, seed: self.seed)) { return false }
        self.counts.lookupsSpared.add(1, ordering: .relaxed)
        return true
    }

    /// All variants of `key`, the most recent first; waits for the disk.
    func find(_ key: CacheKey) -> StoreAnswer {
        self.counts.lookupsOnPool.add(1, ordering: .relaxed)
        return self.find(key, waits: true).map { StoreAnswer($0) } ?? .unknown
    }

    /// All variants of `key` without waiting for the disk; nil where a page that it takes is not in
    /// memory, or cannot be read.
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

    /// Looks until no entry has left the file meanwhile: what was found is there then, and stays as
    /// long as it is held.
    ///
    /// nil where it cannot be read, or changes each time: that is a miss, but no knowledge.
    private func find(_ key: CacheKey, waits: Bool) -> [StoredObject]? {
        for _ in 0..<(waits ? Self.attemptsOnPool : Self.attemptsInPlace) {
            let mark = self.entries.withLock { $0.removals }
            guard let found = self.snapshot(of: key, waits: waits) else { return nil }
            if let objects = self.admitted(found, since: mark) { return objects }
        }
        return nil
    }

    /// What is stored under `key` at one moment; nil where that cannot be read, or not without waiting.
    private func snapshot(of key: CacheKey, waits: Bool) -> [FoundEntry]? {
        let hash = Checksum.key(key.bytes, seed: self.seed)
        var damaged: [Damaged] = []
        let found: [FoundEntry]?
        let environment = self.environment
        do throws(LMDBError) {
            found = try environment.read { (transaction) throws(LMDBError) in
                var entries: [FoundEntry] = []
                let isWhole = try self.schema.forEachVariant(
                    transaction, of: hash, waits: waits
                ) { objectKey, value in
                    do throws(RecordDamage) {
                        let found = try self.records.record(objectKey.id, value)
                        if found.record.key == key { entries.append(FoundEntry(found: found)) }
                    } catch {
                        damaged.append(Damaged(objectKey: objectKey, reason: error.rawValue))
                    }
                    return entries.count < Self.variantLimit
                }
                guard isWhole else { return nil }
                let hasBodies = try self.readBodies(
                    of: &entries, &damaged, hash, transaction, waits: waits)
                return hasBodies ? entries : nil
            }
        } catch {
            self.readFailed(error, with: environment)
            found = nil
        }
        // Where it could not be read to its end, whoever does that finds them again.
        self.touchedTrees(1 + (found?.count ?? 0), waits: waits)
        guard let found else { return nil }
        for one in damaged { self.dropDamaged(one.objectKey, key: one.key, reason: one.reason) }
        return found
    }

    /// Reads the small bodies of the first entries; false where one is not in memory, and it must not
    /// wait.
    ///
    /// An entry whose body is damaged is none: no head is sent that no content would follow.
    private func readBodies(
        of entries: inout [FoundEntry], _ damaged: inout [Damaged], _ hash: KeyHash,
        _ transaction: borrowing ReadTransaction, waits: Bool
    ) throws(LMDBError) -> Bool {
        for index in entries.indices.prefix(Self.variantsWithBody)
        where self.isSmall(entries[index].record) {
            let reason: String
            switch try self.smallBody(of: entries[index].found, transaction, waits: waits) {
            case .piece(let body):
                entries[index].body = body
                continue
            case .notResident: return false
            case .gone: reason = "segment 0 is missing"
            case .damaged(let found): reason = found
            }
            damaged.append(
                Damaged(
                    objectKey: ObjectKey(hash: hash, id: entries[index].id),
                    key: entries[index].record.key, reason: reason))
        }
        if damaged.isEmpty { return true }
        entries.removeAll { entry in damaged.contains { $0.objectKey.id == entry.id } }
        return true
    }

    /// The entries of `found` that may be found, their bodies held; nil where entries have left the
    /// file since `mark`.
    private func admitted(_ found: [FoundEntry], since mark: UInt64) -> [StoredObject]? {
        let admitted = self.entries.withLock { entries -> [FoundEntry]? in
            guard entries.removals == mark else { return nil }
            // Mostly all.
            let isWhole = found.allSatisfy { entries.admits($0.id, of: $0.record.key) }
            let admitted =
                isWhole ? found : found.filter { entries.admits($0.id, of: $0.record.key) }
            for entry in admitted where entry.body == nil { entries.hold(entry.id) }
            return admitted
        }
        return admitted?.map { self.object($0) }
    }

    private func object(_ entry: FoundEntry) -> StoredObject {
        let (id, record) = (entry.id, entry.record)
        let use = self.uses.use(of: id)
        return StoredObject(
            id: id, key: record.key, head: record.head, trailers: record.trailers,
            bodyLength: record.bodyLength, tier: .disk, hits: record.hits &+ (use?.count ?? 0),
            lastUsed: max(record.lastUsed, use?.last ?? record.lastUsed),
            body: DiskBody(
                core: self, id: id, key: record.key, bodyLength: record.bodyLength,
                extent: record.head.extent, trailers: record.trailers, resident: entry.body,
                hold: entry.body == nil ? BodyHold(core: self, held: id) : nil))
    }

    /// Whether the body is read along with its head: that of one small segment, or of none.
    func isSmall(_ record: ObjectRecord) -> Bool {
        record.head.extent == nil
            && (record.bodyLength == 0
                || record.bodyLength <= self.configuration.bodyWithHead.bytes
                    && record.segmentCount == 1)
    }

    func smallBody(
        of found: DecodedRecord, _ transaction: borrowing ReadTransaction, waits: Bool
    ) throws(LMDBError) -> SegmentRead {
        let length = found.record.bodyLength
        if length == 0 { return .piece(ByteBuffer()) }
        return try self.readSegment(found.id, 0, range: 0..<length, transaction, waits: waits)
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
            guard let objectKey = ObjectKey(key), objectKey.hash == hash else { return false }
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
