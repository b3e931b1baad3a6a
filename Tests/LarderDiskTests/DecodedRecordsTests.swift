import LarderHTTP
import LarderPolicy
import LarderStore
import Testing

@testable import LarderDisk

@Suite("Records that are found again by their bytes")
struct DecodedRecordsTests {
    /// A record that is written over another under the same id.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (inout ObjectRecord) -> Void

        init(_ name: String, _ make: @escaping @Sendable (inout ObjectRecord) -> Void) {
            self.testDescription = name
            self.make = make
        }
    }

    private static func record() -> ObjectRecord {
        ObjectRecord(
            key: CacheKey(bytes: Array("GET a".utf8)),
            head: StoredHead(
                method: .get, status: .ok, reason: "OK",
                fields: ["ETag": "\"a\"", "Vary": "Accept"], varyingFields: ["Accept": "b"],
                requestTime: Timestamp(seconds: 10), responseTime: Timestamp(seconds: 11),
                storedTime: Timestamp(seconds: 12)),
            trailers: Fields(), bodyLength: 100, segmentCount: 1, hits: 0,
            lastUsed: Timestamp(seconds: 12), sequence: 1,
            standing: EvictionRules.Standing(queue: .small, uses: 0))
    }

    @Test(
        "are what lies there now",
        arguments: [
            Change("nothing") { _ in },
            Change("invalidated") { $0.head.isInvalidated = true },
            Change("a use") { $0.hits = 1 },
            Change("the time of a use") { $0.lastUsed = Timestamp(seconds: 99) },
            Change("its place") { $0.sequence = 2 },
            Change("its queue") { $0.standing.queue = .main },
            Change("the uses of its standing") { $0.standing.used(1) },
            Change("a field's value") { $0.head.fields = ["ETag": "\"b\"", "Vary": "Accept"] },
            Change("what it varies by") { $0.head.varyingFields = ["Accept": "c"] },
            Change("when it was asked for") { $0.head.requestTime = Timestamp(seconds: 9) },
            Change("when it came") { $0.head.responseTime = Timestamp(seconds: 13) },
            Change("when it was stored") { $0.head.storedTime = Timestamp(seconds: 13) },
            Change("its status") { $0.head.status = StatusCode(404) },
            Change("its reason") { $0.head.reason = "KO" },
            Change("its method") { $0.head.method = .post },
            Change("its path") { $0.head.pathAndQuery = "/a?b" },
            Change("what was added") { $0.head.attachment = StoredAttachment(bytes: [1]) },
            Change("its trailers") { $0.trailers = ["X": "1"] },
            Change("its length") { $0.bodyLength = 101 },
            Change("a part") { $0.take(StoredExtent(completeLength: 100, ranges: [0..<7])) },
            Change("its key") { $0.key = CacheKey(bytes: Array("GET b".utf8)) },
        ])
    func rewritten(_ change: Change) throws {
        let records = DecodedRecords()
        let id = ObjectID(rawValue: 7)
        var record = Self.record()
        for _ in 0..<2 {
            let found = try records.record(id, record.encoded().span).record
            #expect(found == record)
        }
        change.make(&record)
        for _ in 0..<2 {
            let found = try records.record(id, record.encoded().span).record
            #expect(found == record)
        }
        // And back again.
        let former = Self.record()
        let found = try records.record(id, former.encoded().span).record
        #expect(found == former)
    }

    @Test("are another's where that stands in the same place")
    func neighbours() throws {
        let records = DecodedRecords()
        for step in 0..<3 as Range<UInt64> {
            var record = Self.record()
            record.head.fields = ["ETag": "\"\(step)\""]
            let id = ObjectID(rawValue: 7 + step * UInt64(DecodedRecords.count))
            let found = try records.record(id, record.encoded().span).record
            #expect(found == record)
        }
    }

    @Test("are refused when they are damaged, though they are known")
    func damaged() throws {
        let records = DecodedRecords()
        let bytes = Self.record().encoded()
        for place in bytes.indices {
            _ = try records.record(ObjectID(rawValue: 7), bytes.span)
            var changed = bytes
            changed[place] ^= 0x10
            do throws(RecordDamage) {
                _ = try records.record(ObjectID(rawValue: 7), changed.span)
                Issue.record("takes a change of byte \(place)")
            } catch {
                continue
            }
        }
    }
}
