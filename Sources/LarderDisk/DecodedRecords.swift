import LarderStore
import Synchronization

/// Records that look-ups decoded lately, found again by their bytes.
///
/// What memory has no room for is decoded at each hit: of 127,000 instructions of a hit of 4 KiB
/// from disk that took 20,000, most of them to check the fields against the grammar and to read what
/// they mean. The bytes of a record tell all of it, so nobody need say here that one has changed.
/// They are read and their checksum is compared each time, all the same.
final class DecodedRecords: Sendable {
    /// Larger records are not kept: with what they become, all that is kept takes some 8 MiB.
    static let largest = 2048
    /// Ids follow each other, so that so many of them do not meet: a power of two.
    static let count = 2048

    private let entries = Mutex([DecodedRecord?](repeating: nil, count: DecodedRecords.count))

    /// The record that lies under `id` in these bytes.
    func record(_ id: ObjectID, _ bytes: Span<UInt8>) throws(RecordDamage) -> DecodedRecord {
        let print = try ObjectRecord.checkedPrint(bytes)
        guard bytes.count <= Self.largest else {
            return DecodedRecord(id, print, try ObjectRecord.decode(checked: bytes))
        }
        let place = Int(id.rawValue % UInt64(Self.count))
        let known = self.entries.withLock { $0[place] }
        if let known, known.id == id, known.print == print { return known }
        var record = try ObjectRecord.decode(checked: bytes)
        // Uses are written into records: whoever remembers the head finds the very same.
        if let known, known.id == id, known.record.head == record.head {
            record.head = known.record.head
        }
        let entry = DecodedRecord(id, print, record)
        // Freed when the lock is let go.
        let former = self.entries.withLock { entries in
            let former = entries[place]
            entries[place] = entry
            return former
        }
        withExtendedLifetime(former) {}
        return entry
    }
}

/// A record as it was found, behind one reference.
final class DecodedRecord: Sendable {
    let id: ObjectID
    let record: ObjectRecord
    fileprivate let print: ObjectRecord.Print

    fileprivate init(_ id: ObjectID, _ print: ObjectRecord.Print, _ record: ObjectRecord) {
        self.id = id
        self.print = print
        self.record = record
    }
}
