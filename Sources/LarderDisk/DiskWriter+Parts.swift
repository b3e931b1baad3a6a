import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore

// Partial content: what is added to a stored response.
//
// Segments of an addition are written as they come, into the cells of the response that it is for. They
// may hold what was never committed: what is stored, the record says, and it grows at the commit
// alone. They go with the response at the latest.
extension DiskWriter {
    /// What a new response holds when it becomes visible.
    func extent(
        of sink: SinkState, _ draft: ObjectDraft
    ) throws(SinkAbandonment) -> StoredExtent {
        let range = sink.start..<sink.start + draft.received
        return try StoredExtent(completeLength: nil).adding(
            range, completeLength: draft.isWhole ? draft.received : draft.completeLength,
            limit: self.core.configuration.objectLimit)
    }

    /// Writes a segment of an addition, if there is one; the record that it is for.
    ///
    /// nil where the sink has left: its response is gone, or does not take it.
    func add(
        _ draft: SegmentDraft?, of sink: SinkState, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> ObjectRecord? {
        let key = self.core.objectKey(sink.id, of: sink.key)
        guard !self.core.isHidden(sink.id, of: sink.key),
            let record = try self.record(key, transaction)
        else {
            attempt.leave(sink, .removed)
            return nil
        }
        guard let draft else { return record }
        if let length = record.extent.completeLength, draft.end > length {
            attempt.leave(sink, .contradictory)
            return nil
        }
        switch try self.merge(draft, into: record, of: sink.id, transaction) {
        case .done:
            return record
        case .contradictory:
            attempt.leave(sink, .contradictory)
        case .damaged(let reason):
            attempt.effects.append(.damaged(sink, reason))
            attempt.leave(sink, .storeFailed)
        }
        return nil
    }

    /// Makes visible what was added.
    func extend(
        _ sink: SinkState, _ draft: ObjectDraft, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        guard var record = try self.add(draft.last, of: sink, &attempt, transaction) else { return }
        let extent: StoredExtent
        do throws(SinkAbandonment) {
            extent = try record.extent.adding(
                sink.start..<sink.start + draft.received, completeLength: draft.completeLength,
                limit: self.core.configuration.objectLimit)
        } catch {
            return attempt.leave(sink, error)
        }
        let before = (bytes: record.storedBytes, charge: record.charge)
        record.take(extent)
        attempt.meta.bodyBytes &+= record.storedBytes &- before.bytes
        let key = self.core.objectKey(sink.id, of: sink.key)
        try self.recharge(key, record, before: before.charge, &attempt, transaction)
        try self.write(key, record, transaction)
        attempt.effects.append(.ended(sink, .visible(sink.id)))
    }

    private enum Merging: Sendable {
        case done
        /// Other bytes are stored in its place.
        case contradictory
        /// What is stored in its cell is not what was written.
        case damaged(String)
    }

    /// What a cell holds already.
    private struct Cell: Sendable {
        var held: Range<Int>
        var bytes: [UInt8]
    }

    /// Writes a segment into its cell, and keeps there what is stored.
    private func merge(
        _ draft: SegmentDraft, into record: ObjectRecord, of id: ObjectID,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Merging {
        let stored = record.extent.ranges.map { Segment.cell(draft.index, of: $0) }
            .filter { !$0.isEmpty }
        // Two additions may meet in a cell, and what the other one has written the record does not
        // say yet: whatever is there is kept.
        let cell: Cell
        switch try self.cell(draft.index, of: id, transaction) {
        case .success(let found)?: cell = found
        case .failure(let failure)? where !stored.isEmpty: return .damaged(failure.description)
        case nil where !stored.isEmpty: return .damaged("segment \(draft.index) is missing")
        case .failure?, nil:
            try self.put(draft, of: id, transaction)
            return .done
        }
        guard stored.allSatisfy({ $0.clamped(to: cell.held) == $0 }) else {
            return .damaged("segment \(draft.index) has a wrong length")
        }
        let new = draft.pieces.flatMap { Array($0.readableBytesView) }
        let range = draft.start..<draft.start + new.count
        for part in stored where part.overlaps(range) {
            let both = part.clamped(to: range)
            let old = cell.bytes[Self.shift(both, by: cell.held.lowerBound)]
            if old != new[Self.shift(both, by: range.lowerBound)] { return .contradictory }
            if both == range { return .done }
        }
        let start = min(range.lowerBound, cell.held.lowerBound)
        let hull = start..<max(range.upperBound, cell.held.upperBound)
        var bytes = [UInt8](repeating: 0, count: hull.count)
        bytes.replaceSubrange(Self.shift(cell.held, by: hull.lowerBound), with: cell.bytes)
        bytes.replaceSubrange(Self.shift(range, by: hull.lowerBound), with: new)
        let merged = SegmentDraft(
            index: draft.index, start: hull.lowerBound, pieces: [ByteBuffer(bytes: bytes)],
            length: bytes.count)
        try self.put(merged, of: id, transaction)
        return .done
    }

    /// Where `range` lies in an array that begins at `start`.
    private static func shift(_ range: Range<Int>, by start: Int) -> Range<Int> {
        range.lowerBound - start..<range.upperBound - start
    }

    /// A copy of what a cell holds, verified; nil where nothing is there.
    private func cell(
        _ index: UInt32, of id: ObjectID, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Result<Cell, SegmentReadFailure>? {
        let key = SegmentKey(id: id, index: index).bytes
        return try transaction.reading.get(self.core.schema.segments, key.span) { value in
            switch Segment.verify(value, id: id, index: index) {
            case .damaged(let reason): return .failure(.damaged(reason))
            case .sound(let held):
                return .success(
                    Cell(held: held, bytes: value.array(Segment.headerSize, held.count) ?? []))
            }
        }
    }
}

extension DiskWriter.Attempt {
    /// Whether what a sink has sent is still of use.
    func isWanted(_ sink: SinkState) -> Bool {
        sink.isWanted && !self.left.contains(ObjectIdentifier(sink))
    }

    /// A sink ends without success, when this is committed.
    mutating func leave(_ sink: SinkState, _ reason: SinkAbandonment) {
        self.left.insert(ObjectIdentifier(sink))
        self.effects.append(.ended(sink, .abandoned(reason)))
    }
}
