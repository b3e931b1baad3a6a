import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Why segments could not be read.
enum SegmentReadFailure: Error, Sendable {
    /// The entry was removed meanwhile.
    case gone
    case damaged(String)
    case failed(LMDBError)

    var description: String {
        switch self {
        case .gone: "the stored body was removed while it was read"
        case .damaged(let reason): reason
        case .failed(let error): error.description
        }
    }
}

// All of this waits for the disk: it runs on the reader threads.
extension DiskCore {
    /// More variants than this are not looked at: the most recent ones count.
    private static let variantLimit = 128

    /// All variants of `key`, the most recent first.
    func find(_ key: CacheKey) -> [StoredObject] {
        let hash = Checksum.key(key.bytes, seed: self.seed)
        var damaged: [(ObjectKey, String)] = []
        let found: [StoredObject]?
        let environment = self.environment
        do throws(LMDBError) {
            found = try environment.read { (transaction) throws(LMDBError) in
                var records: [(ObjectID, ObjectRecord)] = []
                try self.schema.forEachVariant(transaction, of: hash) { objectKey, value in
                    do throws(RecordDamage) {
                        let record = try ObjectRecord.decode(value)
                        if record.key == key { records.append((objectKey.id, record)) }
                    } catch {
                        damaged.append((objectKey, error.rawValue))
                    }
                    return records.count < Self.variantLimit
                }
                var objects: [StoredObject] = []
                for (id, record) in records where !self.isHidden(id) {
                    objects.append(try self.object(id, record, transaction))
                }
                return objects
            }
        } catch {
            self.readFailed(error, with: environment)
            found = nil
        }
        for (objectKey, reason) in damaged { self.dropDamaged(objectKey, reason: reason) }
        self.residency.touched(values: 1 + (found?.count ?? 0), bytes: 0)
        return found ?? []
    }

    private func object(
        _ id: ObjectID, _ record: ObjectRecord, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> StoredObject {
        let resident = try self.smallBody(id, record, transaction)
        let use = self.uses.use(of: id)
        return StoredObject(
            id: id, key: record.key, head: record.head, trailers: record.trailers,
            bodyLength: record.bodyLength, tier: .disk, hits: record.hits &+ (use?.count ?? 0),
            lastUsed: max(record.lastUsed, use?.last ?? record.lastUsed),
            body: DiskBody(
                core: self, id: id, key: record.key, bodyLength: record.bodyLength,
                extent: record.head.extent, trailers: record.trailers, resident: resident))
    }

    /// A body of one small segment, read along with its head; nil where it is not one, or not
    /// sound, which whoever reads it will find.
    private func smallBody(
        _ id: ObjectID, _ record: ObjectRecord, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> ByteBuffer? {
        if record.head.extent != nil { return nil }
        if record.bodyLength == 0 { return ByteBuffer() }
        guard record.bodyLength <= self.configuration.bodyWithHead.bytes,
            record.segmentCount == 1
        else { return nil }
        let read = try self.readSegment(id, 0, range: 0..<record.bodyLength, transaction)
        guard case .success(let buffer) = read else { return nil }
        return buffer
    }

    /// The bytes in `range`, all of which must be stored, cut at the borders of segments.
    func readSegments(
        of id: ObjectID, key: CacheKey, range: Range<UInt64>
    ) -> Result<[ByteBuffer], SegmentReadFailure> {
        guard !range.isEmpty else { return .success([]) }
        defer { self.residency.touched(bytes: Int(clamping: range.upperBound - range.lowerBound)) }
        let environment = self.environment
        do throws(LMDBError) {
            return try environment.read { (transaction) throws(LMDBError) in
                var pieces: [ByteBuffer] = []
                let last = Segment.index(of: range.upperBound - 1)
                for index in Segment.index(of: range.lowerBound)...last {
                    let read = try self.readSegment(id, index, range: range, transaction)
                    switch read {
                    case .success(let piece): pieces.append(piece)
                    case .failure(.gone):
                        let objectKey = self.objectKey(id, of: key)
                        let isThere = try transaction.contains(
                            self.schema.objects, objectKey.bytes.span)
                        return .failure(
                            isThere ? .damaged("segment \(index) is missing") : .gone)
                    case .failure(let failure): return .failure(failure)
                    }
                }
                return .success(pieces)
            }
        } catch {
            self.readFailed(error, with: environment)
            return .failure(.failed(error))
        }
    }

    /// What of segment `index` lies in `range`, verified, then copied out of the map.
    private func readSegment(
        _ id: ObjectID, _ index: UInt32, range: Range<UInt64>,
        _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Result<ByteBuffer, SegmentReadFailure> {
        let key = SegmentKey(id: id, index: index).bytes
        let wanted = Segment.cell(index, of: range)
        let read: Result<ByteBuffer, SegmentReadFailure>? = try transaction.get(
            self.schema.segments, key.span
        ) { value in
            switch Segment.place(of: wanted, in: value, id: id, index: index) {
            case .success(let place): return .success(value.buffer(place))
            case .failure(let failure): return .failure(failure)
            }
        }
        return read ?? .failure(.gone)
    }
}

extension Schema {
    /// Lends each record under `hash`, the most recent first, until `body` returns false.
    func forEachVariant(
        _ transaction: borrowing ReadTransaction, of hash: KeyHash,
        _ body: (ObjectKey, Span<UInt8>) -> Bool
    ) throws(LMDBError) {
        let prefix = hash.bytes
        try transaction.withCursor(self.objects) { (cursor) throws(LMDBError) in
            let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                guard key.hasPrefix(prefix), let objectKey = ObjectKey(key) else { return false }
                return body(objectKey, value)
            }
            var goesOn = try cursor.seek(atOrAfter: prefix.span, visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
        }
    }
}
