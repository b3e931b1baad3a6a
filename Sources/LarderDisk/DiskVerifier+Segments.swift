import LarderLMDB
import LarderPolicy
import LarderStore

/// The check of the segments of bodies, as they lie.
extension DiskVerifier {
    private static let segmentsPerStep = 64
    private static let mostUnknown = 65_536

    private struct Seen {
        var key: SegmentKey
        /// What of its cell it holds, soundly; nil where it is damaged.
        var held: Range<Int>?
    }

    /// Reads the segments of all bodies from id `first` on, those below `end`.
    func checkSegments(
        of entries: [Expected], from first: UInt64, below end: UInt64?
    ) throws {
        var match = SegmentMatch(entries: entries)
        var place = SegmentKey(id: ObjectID(rawValue: first), index: 0).bytes.span.copied
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
            place = last.key.bytes.span.copied
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
}
