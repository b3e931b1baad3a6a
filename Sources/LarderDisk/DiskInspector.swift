package import LarderHTTP
import LarderLMDB
package import LarderPolicy
package import LarderStore
import NIOCore

/// A stored response as an inspector sees it.
package struct InspectedObject: Sendable, Equatable {
    package var id: ObjectID
    package var key: CacheKey
    package var head: StoredHead
    package var trailers: Fields
    package var bodyLength: UInt64
    /// Pieces of the body on the disk.
    package var segments: UInt32
    /// Bytes of the body that are there: fewer than its length where the response is partial.
    package var storedBytes: UInt64
    package var hits: UInt64
    package var lastUsed: Timestamp

    init(id: ObjectID, record: ObjectRecord) {
        self.id = id
        self.key = record.key
        self.head = record.head
        self.trailers = record.trailers
        self.bodyLength = record.bodyLength
        self.segments = record.segmentCount
        self.storedBytes = record.storedBytes
        self.hits = record.hits
        self.lastUsed = record.lastUsed
    }
}

/// The figures of a cache file.
package struct DiskStatistics: Sendable, Equatable, Codable {
    package var objects: UInt64 = 0
    /// Bodies alone.
    package var bodyBytes: UInt64 = 0
    /// Pages in use: what counts towards the capacity.
    package var usedBytes: UInt64 = 0
    package var fileBytes: UInt64 = 0
    /// The bound of the file, as the process that wrote last had it or a larger one before it.
    package var mapBytes: UInt64 = 0
    package var hits: UInt64 = 0
    package var evictions: UInt64 = 0
    package var damaged: UInt64 = 0
    package var failures: UInt64 = 0
    /// Bodies that are being written now, or were when a process died.
    package var pending: UInt64 = 0
    /// Bodies that are being deleted.
    package var garbage: UInt64 = 0
    /// The process that writes to the cache now.
    package var writer: Int32?

    package init() {}
}

/// Looks into a cache file, from any process, while another writes to it or while none does.
///
/// Changes nothing. It waits for the disk: not for event loops. Its read transactions are bounded,
/// so that it may take as long as it likes without making the file grow. Used by one thread at a
/// time.
package final class DiskInspector {
    let files: DiskFiles
    let environment: Environment
    let schema: Schema
    let seed: UInt64
    /// Whether this process has the file open for another purpose, too.
    private let isShared: Bool
    let residency: Residency

    private static let segmentsPerStep: UInt32 = 16

    /// Opens the cache in `directory` for looking; throws `.missing` where there is none.
    ///
    /// Waits where another process is just exchanging the file, which takes two renames.
    package convenience init(directory: String) throws(StoreError) {
        try self.init(directory: directory) { _ in }
    }

    /// - Parameter step: called before each step of the opening.
    init(directory: String, _ step: (InspectedFile.Step) -> Void) throws(StoreError) {
        let files = DiskFiles(directory: directory)
        let opened = try InspectedFile.open(files, step)
        self.files = files
        self.environment = opened.environment
        self.isShared = opened.isShared
        self.schema = opened.schema
        self.seed = opened.seed
        self.residency = Residency(opened.environment, bound: 64 << 20)
    }

    deinit {
        if !self.isShared { self.environment.close() }
    }

    /// Reads, and once more where the writer has meanwhile been given a larger map.
    func read<R>(
        _ body: (borrowing ReadTransaction) throws(LMDBError) -> R
    ) throws(StoreError) -> R {
        do throws(LMDBError) {
            do throws(LMDBError) {
                return try self.environment.read(body)
            } catch {
                guard error.code == .mapResized, !self.isShared else { throw error }
                try self.environment.adoptMapSize()
                return try self.environment.read(body)
            }
        } catch {
            throw StoreError(error, path: self.files.data)
        }
    }

    // MARK: Figures

    package func statistics() throws(StoreError) -> DiskStatistics {
        var statistics = try self.read { (transaction) throws(LMDBError) in
            var statistics = DiskStatistics()
            let objects = try transaction.statistics(of: self.schema.objects)
            statistics.objects = objects.entries
            statistics.usedBytes =
                try transaction.pagesInUse(self.schema.all) &* objects.pageSize
            statistics.pending = try transaction.statistics(of: self.schema.pending).entries
            statistics.garbage = try transaction.statistics(of: self.schema.garbage).entries
            if let meta = try self.schema.readMeta(transaction) {
                statistics.bodyBytes = meta.bodyBytes
                statistics.hits = meta.hits
                statistics.evictions = meta.evictions
                statistics.damaged = meta.damaged
                statistics.failures = meta.failures
            }
            return statistics
        }
        do throws(LMDBError) {
            statistics.fileBytes = try self.environment.fileSize()
            statistics.mapBytes = try self.environment.information().mapSize
        } catch {
            throw StoreError(error, path: self.files.data)
        }
        statistics.writer = WriterLock.holder(of: self.files)
        return statistics
    }

    // MARK: Entries

    /// The id that no response has until now: what is begun to be stored later has this or a larger one.
    package func nextID() throws(StoreError) -> ObjectID {
        let meta = try self.read { (transaction) throws(LMDBError) in
            try self.schema.readMeta(transaction)
        }
        return ObjectID(rawValue: meta?.nextID ?? 0)
    }

    /// All stored responses for `key`, the most recent first.
    package func objects(for key: CacheKey) throws(StoreError) -> [InspectedObject] {
        let hash = Checksum.key(key.bytes, seed: self.seed)
        return try self.read { (transaction) throws(LMDBError) in
            var objects: [InspectedObject] = []
            try self.schema.forEachVariant(transaction, of: hash) { objectKey, value in
                if let record = try? ObjectRecord.decode(value), record.key == key {
                    objects.append(InspectedObject(id: objectKey.id, record: record))
                }
                return true
            }
            return objects
        }
    }

    /// When groups of stored responses were last invalidated, by their whole names; a snapshot.
    ///
    /// - Parameter now: counts for every group where what the file says of one is damaged.
    package func groupInvalidations(
        now: Timestamp
    ) throws(StoreError) -> ([UInt8]) -> Timestamp? {
        let groups = try self.read { (transaction) throws(LMDBError) in
            try self.schema.readGroups(transaction, now: now)
        }
        let seed = self.seed
        return { groups.time(of: Checksum.key($0, seed: seed)) }
    }

    // MARK: Bodies

    /// Calls `piece` with the parts of a complete body in order, each verified before.
    ///
    /// Throws `StoreError` where a part is damaged, `.closed` where the entry was removed meanwhile,
    /// `.incomplete` where the response is partial, before the first call; and whatever `piece` throws.
    /// No transaction is open while `piece` runs.
    package func readBody(
        of object: InspectedObject, _ piece: (Span<UInt8>) throws -> Void
    ) throws {
        guard object.head.extent == nil else {
            throw StoreError(
                .incomplete, path: self.files.data, cause: "only a part of the body is stored",
                remedy: "fetch all of it once through the proxy")
        }
        var index: UInt32 = 0
        while index < object.segments {
            let end = index + min(object.segments - index, Self.segmentsPerStep)
            for part in try self.segments(index..<end, of: object) { try piece(part.span) }
            self.residency.touched(values: Int(clamping: end &- index), bytes: 0)
            index = end
        }
    }

    private func segments(
        _ range: Range<UInt32>, of object: InspectedObject
    ) throws(StoreError) -> [[UInt8]] {
        var problem: String?
        let parts: [[UInt8]] = try self.read { (transaction) throws(LMDBError) in
            problem = nil
            var parts: [[UInt8]] = []
            for index in range {
                let key = SegmentKey(id: object.id, index: index).bytes
                let length = Segment.payloadLength(of: index, bodyLength: object.bodyLength)
                let part: [UInt8]?? = try transaction.get(self.schema.segments, key.span) { value in
                    switch Segment.place(
                        of: 0..<length, in: value, id: object.id, index: index)
                    {
                    case .success(let place): return value.array(place.lowerBound, place.count)
                    case .failure(let failure):
                        problem = failure.description
                        return nil
                    }
                }
                if part == nil { problem = "segment \(index) is not there any more" }
                guard let part, let part else { break }
                parts.append(part)
            }
            return parts
        }
        if let problem { throw try self.failure(of: object, problem) }
        return parts
    }
}
