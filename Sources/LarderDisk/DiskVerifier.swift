import LarderLMDB
import LarderPolicy
import LarderStore

/// Walks a whole cache file and checks every record and every segment, while another process may
/// write to it.
///
/// ```
/// records of a round (by hash) ─▶ their segments (by id, as they lie) ─▶ … next round ─▶ queue, sums
/// ```
///
/// Segments are read in the order of their keys, which is that of their writing, so that a disk reads
/// ahead of it. To know what each body needs, the entries of a round are held in memory, 40 bytes
/// each, a bounded number of them; a larger cache takes several rounds, each of which walks all
/// records and its own segments.
///
/// Each transaction is short. What is found wrong may have changed between two of them, so it is
/// looked at again in one, and counts as `changed` where it is not there any more. Changes
/// nothing. It waits for the disk; used by one thread.
package final class DiskVerifier {
    /// What of an entry is needed to check its body.
    struct Expected {
        var key: ObjectKey
        var bodyLength: UInt64
        var isPartial: Bool
    }

    let inspector: DiskInspector
    var state = DiskVerification()
    var sum: UInt64 = 0
    var foundDamagedRecord = false
    private let roundSize: Int
    private let progress: (DiskVerification) throws -> Void
    private let found: (DiskFinding) throws -> Void
    /// Bodies for which no entry was found when they were come upon.
    var unknown: [ObjectID] = []

    private static let recordsPerStep: UInt64 = 256
    /// Entries of a round: 40 MiB.
    package static let usualRound = 1 << 20

    /// - Parameters:
    ///   - progress: called after each step.
    ///   - found: called with each thing that is wrong.
    package init(
        _ inspector: DiskInspector, roundSize: Int = DiskVerifier.usualRound,
        progress: @escaping (DiskVerification) throws -> Void,
        found: @escaping (DiskFinding) throws -> Void
    ) {
        self.inspector = inspector
        self.roundSize = max(1, roundSize)
        self.progress = progress
        self.found = found
    }

    /// Checks all; throws `StoreError` where the file cannot be read, and what the closures throw.
    package func run() throws -> DiskVerification {
        let before = try self.lastTransaction()
        let start = try self.inspector.statistics()
        self.state.expectedEntries = start.objects
        self.state.expectedBytes = start.bodyBytes
        var next: UInt64? = 0
        while let first = next {
            let (entries, end) = try self.records(from: first)
            try self.checkSegments(of: entries, from: first, below: end)
            try self.checkNames(among: entries)
            next = end
        }
        try self.checkQueue()
        // Read first: what a writer commits behind it makes the walk one that was not quiet.
        let counted = try self.countedBytes()
        self.state.isQuiet = try self.lastTransaction() == before
        try self.checkSum(against: counted)
        return self.state
    }

    func report(_ damage: DiskDamage, of key: CacheKey?, _ reason: String) throws {
        self.state.findings += 1
        if damage.kind == .record { self.foundDamagedRecord = true }
        try self.found(DiskFinding(damage: damage, key: key, reason: reason))
    }

    /// Calls a throwing closure of ours outside of transactions.
    func step(values: Int, bytes: UInt64) throws {
        self.state.bytes &+= bytes
        self.inspector.residency.touched(values: values, bytes: Int(clamping: bytes))
        try self.progress(self.state)
    }

    private func lastTransaction() throws -> UInt64 {
        do throws(LMDBError) {
            return try self.inspector.environment.information().lastTransaction
        } catch {
            throw StoreError(error, path: self.inspector.files.data)
        }
    }

    // MARK: Records

    /// Checks all records where this is the first round; the entries of the round in the order of
    /// their ids, and where the next round begins.
    private func records(from first: UInt64) throws -> ([Expected], UInt64?) {
        var entries: [Expected] = []
        var end: UInt64?
        var place: [UInt8] = []
        let room = self.roundSize + self.roundSize / 4 + 1
        while true {
            let part = try self.recordStep(after: place, checks: first == 0)
            for entry in part.entries {
                let id = entry.key.id.rawValue
                if id >= first, id < end ?? .max { entries.append(entry) }
            }
            if entries.count >= room {
                entries.sort { $0.key.id.rawValue < $1.key.id.rawValue }
                end = entries[self.roundSize].key.id.rawValue
                entries.removeSubrange(self.roundSize...)
            }
            if first == 0 { try self.take(part) }
            guard let last = part.last else { break }
            place = last
        }
        entries.sort { $0.key.id.rawValue < $1.key.id.rawValue }
        return (entries, end)
    }

    private struct RecordStep {
        var entries: [Expected] = []
        /// Bytes of bodies, as the records that can be read have them.
        var storedBytes: UInt64 = 0
        var findings: [DiskFinding] = []
        var count: UInt64 = 0
        var bytes: UInt64 = 0
        var last: [UInt8]?
    }

    private func take(_ part: RecordStep) throws {
        self.sum &+= part.storedBytes
        self.state.entries += part.count
        for finding in part.findings {
            try self.report(finding.damage, of: finding.key, finding.reason)
        }
        try self.step(values: part.entries.count, bytes: part.bytes)
    }

    /// A bounded number of records behind `place`.
    ///
    /// What is wrong with a record, or with its place in the queue, one transaction has seen: that
    /// need not be looked at again.
    private func recordStep(after place: [UInt8], checks: Bool) throws -> RecordStep {
        let schema = self.inspector.schema
        return try self.inspector.read { (transaction) throws(LMDBError) in
            var part = RecordStep()
            var unqueued: [(ObjectKey, ObjectRecord)] = []
            try transaction.withCursor(schema.objects) { (cursor) throws(LMDBError) in
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    let bytes = key.copied
                    guard bytes != place else { return true }
                    part.last = bytes
                    part.bytes &+= UInt64(value.count)
                    part.count += 1
                    if let key = ObjectKey(key),
                        let record = self.judge(value, under: key, &part), checks
                    {
                        unqueued.append((key, record))
                    }
                    return part.count < Self.recordsPerStep
                }
                var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
            }
            for (key, record) in unqueued
            where try !schema.isQueued(key, record, transaction) {
                part.findings.append(
                    DiskFinding(
                        damage: DiskDamage(.unqueued, key), key: record.key,
                        reason: "has no place in the queue of eviction"))
            }
            return part
        }
    }

    /// The record in `value`; nil where it is damaged, which is noted.
    private func judge(
        _ value: Span<UInt8>, under key: ObjectKey, _ part: inout RecordStep
    ) -> ObjectRecord? {
        let record: ObjectRecord
        do throws(RecordDamage) {
            record = try ObjectRecord.decode(value)
        } catch {
            let cacheKey = try? ObjectRecord.checkedKey(value)
            part.findings.append(
                DiskFinding(
                    damage: DiskDamage(.record, key), key: cacheKey, reason: error.rawValue))
            return nil
        }
        part.storedBytes &+= record.storedBytes
        guard Checksum.key(record.key.bytes, seed: self.inspector.seed) == key.hash else {
            part.findings.append(
                DiskFinding(
                    damage: DiskDamage(.misplaced, key), key: record.key,
                    reason: "record lies under another key's hash"))
            return nil
        }
        part.entries.append(
            Expected(
                key: key, bodyLength: record.bodyLength, isPartial: record.head.extent != nil))
        return record
    }
}
