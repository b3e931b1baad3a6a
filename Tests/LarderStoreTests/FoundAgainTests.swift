import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@Suite("Finding again what an answer stands on, in two tiers")
struct FoundAgainTests {
    /// A tier of no capacity over one that has a response and reads it in place.
    private static func found(
        memory: ByteCount = .zero
    ) throws -> (tiers: Tiers, place: FoundPlace, id: ObjectID) {
        let tiers = Tiers(capacity: memory)
        let id = tiers.disk.seed("a")
        tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        tiers.disk.readInPlace()
        tiers.disk.showBodies()
        let objects = try #require(tiers.store.lookupInPlace(Sample.key("a")))
        let index = try #require(objects.firstIndex { $0.id == id })
        return (tiers, FoundPlace(of: objects, index), id)
    }

    private static func again(_ tiers: Tiers, _ place: FoundPlace) -> ByteBuffer? {
        tiers.store.useAgain(at: place, of: Sample.key("a"), at: Timestamp(seconds: 5))
    }

    @Test("gives the body and notes the use", arguments: [ByteCount.zero, .kibibytes(256)])
    func same(memory: ByteCount) throws {
        let (tiers, place, id) = try Self.found(memory: memory)
        for count in 1...3 {
            #expect(Self.again(tiers, place) == Sample.body(10))
            #expect(tiers.disk.calls.count { $0 == .noteUse(id) } == count)
        }
        #expect(tiers.lookups == 0)
        #expect((tiers.store.statistics().memory.objects > 0) == (memory > .zero))
    }

    /// What happens between two answers.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (Tiers, ObjectID) -> Void

        init(_ name: String, _ make: @escaping @Sendable (Tiers, ObjectID) -> Void) {
            self.testDescription = name
            self.make = make
        }
    }

    @Test(
        "gives and notes nothing once something else would be found",
        arguments: [
            Change("evicted") { tiers, _ in tiers.disk.evict("a") },
            Change("one more") { tiers, _ in
                tiers.disk.seed("a", Sample.head(at: 2, language: "fr"))
                tiers.disk.showBodies()
            },
            Change("removed") { tiers, _ in _ = tiers.store.removed("a") },
            Change("being removed") { tiers, _ in
                tiers.disk.hold()
                _ = tiers.store.removed("a")
            },
            Change("being removed by its id") { tiers, id in
                tiers.disk.hold()
                _ = tiers.store.removed("a", ids: [id])
            },
            Change("being removed by a predicate") { tiers, _ in
                tiers.disk.hold()
                tiers.store.removeAll(where: { $0 == Sample.key("a") }) { _ in }
            },
            Change("a head that is not written yet") { tiers, id in
                tiers.disk.hold()
                var head = Sample.head()
                head.isInvalidated = true
                tiers.store.update(id, of: Sample.key("a"), head: head)
            },
            Change("another head") { tiers, id in
                tiers.store.update(id, of: Sample.key("a"), head: Sample.head(at: 9))
            },
            Change("not to be read without waiting") { tiers, _ in tiers.disk.readInPlace(false) },
        ])
    func changed(_ change: Change) throws {
        let (tiers, place, id) = try Self.found()
        change.make(tiers, id)
        #expect(Self.again(tiers, place) == nil)
        #expect(!tiers.disk.calls.contains(.noteUse(id)))
        tiers.disk.letGo()
    }

    @Test(
        "goes on where others are removed and changed",
        arguments: [
            Change("another is removed") { tiers, _ in _ = tiers.store.removed("b") },
            Change("another is being removed") { tiers, _ in
                tiers.disk.hold()
                _ = tiers.store.removed("b")
            },
            Change("others are being removed by a predicate") { tiers, _ in
                tiers.disk.hold()
                tiers.store.removeAll(where: { $0 == Sample.key("b") }) { _ in }
            },
            Change("another is freshened") { tiers, _ in
                let other = tiers.disk.seed("b")
                tiers.store.update(other, of: Sample.key("b"), head: Sample.head(at: 9))
            },
            Change("the head that it had is given again") { tiers, id in
                tiers.store.update(id, of: Sample.key("a"), head: Sample.head())
            },
        ])
    func unchanged(_ change: Change) throws {
        let (tiers, place, id) = try Self.found()
        change.make(tiers, id)
        #expect(Self.again(tiers, place) == Sample.body(10))
        #expect(tiers.disk.calls.contains(.noteUse(id)))
        tiers.disk.letGo()
    }

    @Test("is told nothing by a removal that comes while it is being read")
    func removedMeanwhile() throws {
        let (tiers, place, id) = try Self.found()
        tiers.disk.whenReadInPlace { _ = tiers.store.removed("a") }
        #expect(Self.again(tiers, place) == nil)
        #expect(!tiers.disk.calls.contains(.noteUse(id)))
    }
}
