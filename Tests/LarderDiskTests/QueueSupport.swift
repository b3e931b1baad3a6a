import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Testing

@testable import LarderDisk

/// What a cache file says of its queues and its entries, read as it lies.
struct QueueAudit {
    var meta: StoreMeta?
    var records: [ObjectKey: ObjectRecord] = [:]
    /// Records that cannot be read.
    var damaged: Set<ObjectKey> = []
    var queues: [EvictionRules.Queue: [UInt64: QueueEntry]] = [.small: [:], .main: [:]]

    /// Looks at the file of an open store in this process, between two of its commits.
    init(_ directory: TemporaryDirectory) throws {
        let environment = try #require(Environment.shared(path: directory.data))
        let schema = try Schema(environment, creating: false)
        self = try environment.read { (transaction) throws(LMDBError) in
            var audit = QueueAudit()
            audit.meta = try schema.readMeta(transaction)
            try Self.walk(schema.objects, transaction) { key, value in
                guard let key = ObjectKey(key) else { return }
                if let record = try? ObjectRecord.decode(value) {
                    audit.records[key] = record
                } else {
                    audit.damaged.insert(key)
                }
            }
            for queue in [EvictionRules.Queue.small, .main] {
                try Self.walk(schema.database(of: queue), transaction) { key, value in
                    guard let place = NumberKey.number(key), let entry = QueueEntry(value) else {
                        Issue.record("an entry of a queue cannot be read")
                        return
                    }
                    audit.queues[queue]?[place] = entry
                }
            }
            return audit
        }
    }

    private init() {}

    private static func walk(
        _ database: Database, _ transaction: borrowing ReadTransaction,
        _ body: (Span<UInt8>, Span<UInt8>) -> Void
    ) throws(LMDBError) {
        try transaction.withCursor(database) { (cursor) throws(LMDBError) in
            let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                body(key, value)
                return true
            }
            var goesOn = try cursor.first(visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
        }
    }

    /// Every entry stands at one place, every place names an entry, and the sums are right.
    ///
    /// - Parameter chargesAreNoted: what does not hold for entries of the first format.
    func expectSound(
        chargesAreNoted: Bool = true, _ location: SourceLocation = #_sourceLocation
    ) {
        guard let meta = self.meta else {
            Issue.record("no state", sourceLocation: location)
            return
        }
        var bodies: UInt64 = 0
        for (key, record) in self.records {
            let entry = self.queues[record.standing.queue]?[record.sequence]
            #expect(entry?.key == key, "an entry is at no place", sourceLocation: location)
            if chargesAreNoted || entry?.charge != nil {
                #expect(entry?.charge == record.charge, sourceLocation: location)
            }
            bodies += record.storedBytes
        }
        for (queue, entries) in self.queues {
            var sum: UInt64 = 0
            for (place, entry) in entries {
                let record = self.records[entry.key]
                let isThere = record?.sequence == place && record?.standing.queue == queue
                #expect(
                    isThere || self.damaged.contains(entry.key), "place \(place) is an orphan's",
                    sourceLocation: location)
                sum += entry.charge ?? record?.charge ?? 0
            }
            #expect(meta[queue] == sum, "\(queue)", sourceLocation: location)
        }
        if self.damaged.isEmpty {
            #expect(meta.bodyBytes == bodies, sourceLocation: location)
        }
    }

    func record(_ key: CacheKey) -> ObjectRecord? {
        self.records.values.first { $0.key == key }
    }
}

extension DiskStore {
    /// Uses what is stored under a key so often, and waits until the file knows.
    func use(_ key: CacheKey, times: Int = 1) async {
        for object in await self.find(key) {
            for _ in 0..<times {
                self.noteUse(object.id, of: key, at: Timestamp(seconds: 1_700_000_100))
            }
        }
    }
}
