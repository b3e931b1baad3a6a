import LarderLMDB
import LarderStore

/// Segments that belong to no entry.
extension DiskVerifier {
    private static let idsPerStep = 256

    /// Which bodies belong to no entry, of those that belonged to none that was known.
    ///
    /// An id is given out once, and an entry keeps its key. So an entry that was there before this walk
    /// over the keys and is there after it, the walk has come upon; and a body that then is still
    /// there, neither written nor deleted, and that the walk has found no entry for, has none.
    func settleUnknown() throws {
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

    /// The ids that have segments and are neither being written nor deleted.
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
