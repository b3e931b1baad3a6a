import LarderLMDB

/// A place in a walk through a cache file: behind the record that it names.
///
/// It outlives every change to the file, and the record itself.
package struct ListingPlace: Sendable, Equatable {
    var key: [UInt8]

    /// Before the first record.
    package static let start = ListingPlace(key: [])
}

/// What one step of such a walk met.
package struct ListingStep: Sendable {
    /// The responses that were asked for.
    package var objects: [InspectedObject] = []
    /// How many records the step came by, damaged ones and those nobody asked for included.
    package var walked = 0
    /// Where to go on; nil at the end.
    package var next: ListingPlace?
}

extension DiskInspector {
    /// Entries that one read transaction comes by at most.
    private static let entriesPerStep = 256

    /// The next stored responses that fit, in no order that means anything.
    ///
    /// What is stored or removed between two steps may or may not be met. No transaction is open
    /// between them: a listing may rest for as long as it likes, and the file does not grow for it.
    /// Damaged records are left out.
    ///
    /// - Parameter matches: asked of every record, inside a transaction: it must be quick.
    package func list(
        from place: ListingPlace, where matches: (ListingFacts) -> Bool = { _ in true }
    ) throws(StoreError) -> ListingStep {
        let step = try self.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(self.schema.objects) { (cursor) throws(LMDBError) in
                var step = ListingStep()
                let visit = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    let bytes = key.copied
                    guard bytes != place.key else { return true }
                    step.next = ListingPlace(key: bytes)
                    step.walked += 1
                    if let id = ObjectKey(key)?.id,
                        let facts = try? ObjectRecord.listingFacts(value), matches(facts),
                        let record = try? ObjectRecord.decode(value)
                    {
                        step.objects.append(InspectedObject(id: id, record: record))
                    }
                    return step.walked < Self.entriesPerStep
                }
                var goesOn = try cursor.seek(atOrAfter: place.key.span, visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
                return step
            }
        }
        self.residency.touched(values: step.walked, bytes: 0)
        return step
    }

    /// Calls `body` with each stored response, in no order that means anything, until it returns
    /// false.
    ///
    /// As `list(from:where:)`: no transaction is open while `body` runs.
    package func forEachObject(_ body: (InspectedObject) throws -> Bool) throws {
        var place: ListingPlace? = .start
        while let here = place {
            let step = try self.list(from: here)
            for object in step.objects where try !body(object) { return }
            place = step.next
        }
    }
}
