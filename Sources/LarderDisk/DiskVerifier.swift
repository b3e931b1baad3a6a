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
    private var unknown: [ObjectID] = []

    private static let recordsPerStep: UInt64 = 256
    private static let segmentsPerStep = 64
    private static let idsPerStep = 256
    private static let mostUnknown = 65_536
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
        self.state.isQuiet = try self.lastTransaction() == before
        try self.checkSum()
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

    // MARK: Segments

    private struct Seen {
        var key: SegmentKey
        /// What of its cell it holds, soundly; nil where it is damaged.
        var held: Range<Int>?
    }

    /// Reads the segments of all bodies from id `first` on, those below `end`.
    private func checkSegments(
        of entries: [Expected], from first: UInt64, below end: UInt64?
    ) throws {
        var match = SegmentMatch(entries: entries)
        var place = SegmentKey(id: ObjectID(rawValue: first), index: 0).bytes
        var isAtStart = true
        while true {
            let (seen, bytes) = try self.segments(after: place, including: isAtStart)
            isAtStart = false
            for segment in seen {
                if let end, segment.key.id.rawValue >= end { break }
                self.state.segments += 1
                let step = match.take(segment.key, held: segment.held) { self.extent(of: $0) }
                try self.settle(step)
            }
            try self.step(values: seen.count, bytes: bytes)
            guard let last = seen.last else { break }
            if let end, last.key.id.rawValue >= end { break }
            place = last.key.bytes
        }
        for step in match.finish(extent: { self.extent(of: $0) }) { try self.settle(step) }
        try self.settleUnknown()
    }

    private func segments(
        after place: [UInt8], including isIncluded: Bool
    ) throws -> ([Seen], UInt64) {
        try self.inspector.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(self.inspector.schema.segments) {
                (cursor) throws(LMDBError) in
                var seen: [Seen] = []
                var bytes: UInt64 = 0
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    guard isIncluded || key.copied != place else { return true }
                    guard let key = SegmentKey(key) else { return true }
                    bytes &+= UInt64(value.count)
                    var held: Range<Int>?
                    if case .sound(let range) = Segment.verify(value, id: key.id, index: key.index)
                    {
                        held = range
                    }
                    seen.append(Seen(key: key, held: held))
                    return seen.count < Self.segmentsPerStep
                }
                var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return (seen, bytes)
            }
        }
    }

    /// What is stored of an entry now; nil where it has gone.
    private func extent(of entry: Expected) -> StoredExtent? {
        if !entry.isPartial {
            return StoredExtent(completeLength: entry.bodyLength, ranges: [0..<entry.bodyLength])
        }
        return try? self.inspector.read { (transaction) throws(LMDBError) -> StoredExtent? in
            switch try self.inspector.schema.judgedRecord(entry.key, transaction) {
            case .success(let record)?: record.extent
            case .failure?, nil: nil
            }
        }
    }

    private func settle(_ step: SegmentMatch.Step) throws {
        for suspect in step.suspects { try self.look(again: suspect.0, segment: suspect.1) }
        if step.isLeftover { self.state.leftovers += 1 }
        if let id = step.unknown {
            self.unknown.append(id)
            if self.unknown.count >= Self.mostUnknown { try self.settleUnknown() }
        }
    }

    /// Whether a segment that looked bad, or was not there, is needed and bad in one transaction.
    private func look(again key: ObjectKey, segment index: UInt32) throws {
        let schema = self.inspector.schema
        let problem: (CacheKey, String)? = try self.inspector.read {
            (transaction) throws(LMDBError) in
            guard case .success(let record)? = try schema.judgedRecord(key, transaction),
                let problem = try schema.problem(
                    inSegment: index, of: key.id, record.extent, transaction)
            else { return nil }
            return (record.key, problem)
        }
        guard let (cacheKey, reason) = problem else {
            self.state.changed += 1
            return
        }
        try self.report(
            DiskDamage(.segment, key, number: UInt64(index)), of: cacheKey, reason)
    }

    // MARK: Segments of nobody

    /// Which bodies belong to no entry, of those that belonged to none that was known.
    ///
    /// An id is given out once, and an entry keeps its key. So an entry that was there before this walk
    /// over the keys and is there after it, the walk has come upon; and a body that then is still
    /// there, neither written nor deleted, and that the walk has found no entry for, has none.
    private func settleUnknown() throws {
        guard !self.unknown.isEmpty else { return }
        var ids = Set(try self.unnamed(self.unknown))
        self.state.changed += UInt64(self.unknown.count - ids.count)
        self.unknown = []
        let suspects = ids.count
        var place: [UInt8] = []
        while !ids.isEmpty, let last = try self.strike(from: &ids, after: place) { place = last }
        let orphans = try self.unnamed(ids.sorted { $0.rawValue < $1.rawValue })
        self.state.changed += UInt64(suspects - orphans.count)
        for id in orphans {
            try self.report(
                DiskDamage(.orphan, id: id), of: nil, "segments that belong to no entry")
        }
    }

    /// Those that have segments and are neither being written nor deleted.
    private func unnamed(_ ids: [ObjectID]) throws -> [ObjectID] {
        let schema = self.inspector.schema
        var left: [ObjectID] = []
        for start in stride(from: 0, to: ids.count, by: Self.idsPerStep) {
            let part = ids[start..<min(ids.count, start + Self.idsPerStep)]
            left += try self.inspector.read { (transaction) throws(LMDBError) in
                var left: [ObjectID] = []
                for id in part where try !schema.isNamed(id, transaction) {
                    if try schema.hasSegments(id, transaction) { left.append(id) }
                }
                return left
            }
        }
        return left
    }

    /// Takes out the ids that a bounded number of keys behind `place` have.
    private func strike(from ids: inout Set<ObjectID>, after place: [UInt8]) throws -> [UInt8]? {
        let (found, last) = try self.inspector.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(self.inspector.schema.objects) {
                (cursor) throws(LMDBError) in
                var found: [ObjectID] = []
                var last: [UInt8]?
                let visit = { (key: Span<UInt8>, _: Span<UInt8>) -> Bool in
                    let bytes = key.copied
                    guard bytes != place else { return true }
                    last = bytes
                    if let key = ObjectKey(key) { found.append(key.id) }
                    return found.count < Self.idsPerStep * 16
                }
                var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return (found, last)
            }
        }
        for id in found { ids.remove(id) }
        return last
    }
}
