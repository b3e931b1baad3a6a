import LarderLMDB
import LarderPolicy
import LarderStore

extension DiskInspector {
    /// Segments that one read transaction copies at most: a mebibyte.
    private static let segmentsPerRead: UInt64 = 16

    /// Calls `piece` with the bytes in `range` in order, each verified before.
    ///
    /// All of the range must be stored. Throws `StoreError` where a segment is damaged or was removed
    /// meanwhile, `.closed` where it was the whole entry that went; and whatever `piece` throws.
    /// No transaction is open while `piece` runs.
    package func readBytes(
        of object: InspectedObject, _ range: Range<UInt64>, _ piece: ([UInt8]) throws -> Void
    ) throws {
        var position = range.lowerBound
        while position < range.upperBound {
            let last = UInt64(Segment.index(of: position)) + Self.segmentsPerRead
            let end = min(range.upperBound, last * UInt64(Segment.payloadSize))
            let bytes = try self.bytes(of: object, position..<end)
            self.residency.touched(bytes: bytes.count)
            try piece(bytes)
            position = end
        }
    }

    private func bytes(
        of object: InspectedObject, _ range: Range<UInt64>
    ) throws(StoreError) -> [UInt8] {
        var problem: String?
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: range.upperBound - range.lowerBound))
        try self.read { (transaction) throws(LMDBError) in
            problem = nil
            bytes.removeAll(keepingCapacity: true)
            for index in Segment.index(
                of: range.lowerBound)...Segment.index(of: range.upperBound - 1)
            {
                let key = SegmentKey(id: object.id, index: index).bytes
                let wanted = Segment.cell(index, of: range)
                let found: Void? = try transaction.get(self.schema.segments, key.span) { value in
                    switch Segment.place(of: wanted, in: value, id: object.id, index: index) {
                    case .success(let place):
                        bytes += value.array(place.lowerBound, place.count) ?? []
                    case .failure(let failure): problem = failure.description
                    }
                }
                if found == nil { problem = "segment \(index) is not there any more" }
                if problem != nil { return }
            }
        }
        guard let problem else { return bytes }
        throw try self.failure(of: object, problem)
    }

    /// What a reader is told who did not find what an entry's record names: its writer may have removed
    /// the entry since that was read.
    func failure(
        of object: InspectedObject, _ problem: String
    ) throws(StoreError) -> StoreError {
        let isThere = try self.objects(for: object.key).contains { $0.id == object.id }
        return StoreError(
            isThere ? .damaged : .closed, path: self.files.data,
            cause: isThere ? problem : "the entry was removed meanwhile",
            remedy: isThere
                ? "\"larder cache verify --repair\" takes out what is damaged" : "try again")
    }
}
