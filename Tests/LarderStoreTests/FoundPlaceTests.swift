import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@Suite("What an answer stands on that is looked up")
struct FoundPlaceTests {
    private static func object(_ id: UInt64) -> StoredObject {
        StoredObject(
            id: ObjectID(rawValue: id), key: CacheKey(bytes: [1]),
            head: StoredHead(
                status: .ok, reason: "OK", fields: ["ETag": "\"\(id)\"", "Vary": "Accept"],
                varyingFields: ["Accept": "b"], requestTime: Timestamp(seconds: 10),
                responseTime: Timestamp(seconds: 11)),
            bodyLength: 4, tier: .disk, lastUsed: Timestamp(seconds: 11),
            body: MemoryBody(ByteBuffer(string: "body")))
    }

    /// What is found the next time.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let isSame: Bool
        let make: @Sendable (inout [StoredObject]) -> Void

        init(
            _ name: String, isSame: Bool = false,
            _ make: @escaping @Sendable (inout [StoredObject]) -> Void
        ) {
            self.testDescription = name
            self.isSame = isSame
            self.make = make
        }
    }

    @Test(
        "stands while the same is found",
        arguments: [
            Change("nothing", isSame: true) { _ in },
            Change("a use", isSame: true) { $0[1].hits = 7 },
            Change("none") { $0 = [] },
            Change("its own has gone") { $0.remove(at: 1) },
            Change("the other has gone") { $0.remove(at: 0) },
            Change("the last has gone") { $0.removeLast() },
            Change("one more at the end") { $0.append(Self.object(9)) },
            Change("one more at the front") { $0.insert(Self.object(9), at: 0) },
            Change("another order") { $0.swapAt(0, 2) },
            Change("another in its place") { $0[1].id = ObjectID(rawValue: 9) },
            Change("another in the place of another") { $0[2].id = ObjectID(rawValue: 9) },
            Change("invalidated") { $0[1].head.isInvalidated = true },
            Change("another is invalidated") { $0[0].head.isInvalidated = true },
            Change("freshened") { $0[1].head.responseTime = Timestamp(seconds: 12) },
            Change("asked for later") { $0[1].head.requestTime = Timestamp(seconds: 11) },
            Change("other fields") { $0[1].head.fields = ["ETag": "\"2\""] },
            Change("other fields of another") { $0[2].head.fields = ["Vary": "X"] },
            Change("varying by another value") { $0[1].head.varyingFields = ["Accept": "c"] },
            Change("a part") {
                $0[1].head.extent = StoredExtent(completeLength: 9, ranges: [0..<4])
            },
            Change("another path") { $0[1].head.pathAndQuery = "/b" },
            Change("another status") { $0[1].head.status = StatusCode(404) },
        ])
    func same(_ change: Change) {
        let objects = [1, 2, 3].map { Self.object($0) }
        let place = FoundPlace(of: objects, 1)
        var later = [1, 2, 3].map { Self.object($0) }
        change.make(&later)
        let found = place.object(among: later)
        #expect(found?.id == (change.isSame ? ObjectID(rawValue: 2) : nil))
    }
}
