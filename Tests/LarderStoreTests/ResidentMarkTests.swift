import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@Suite("Marks of what memory holds")
struct ResidentMarkTests {
    private static let now = Timestamp(seconds: 50)

    private func mark(_ store: some ObjectStore, _ index: Int = 0) throws -> ResidentMark? {
        let objects = try #require(store.resident("a"))
        return store.residentMark(
            of: objects[index].id, among: objects, under: Sample.key("a"))
    }

    private func use(_ mark: ResidentMark?, _ store: some ObjectStore) -> [UInt8]? {
        mark.flatMap { store.useResident($0, of: Sample.key("a"), at: Self.now) }?
            .body.resident.map { Array($0.readableBytesView) }
    }

    @Test("give the body again, and count the use")
    func use() throws {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        store.put("a", body: Sample.body(3, 7))
        let mark = try self.mark(store)
        #expect(self.use(mark, store) == [7, 7, 7])
        #expect(self.use(mark, store) == [7, 7, 7])
        let object = try #require(store.resident("a")?.first)
        #expect(object.hits == 2)
        #expect(object.lastUsed == Self.now)
        #expect(store.statistics().memory.hits == 2)
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Whether the mark holds afterwards.
        var holds = false
        let make: @Sendable (MemoryStore, StoredObject) -> Void

        init(
            _ name: String, holds: Bool = false,
            _ make: @escaping @Sendable (MemoryStore, StoredObject) -> Void
        ) {
            self.testDescription = name
            self.holds = holds
            self.make = make
        }
    }

    @Test(
        "hold until anything under the key changes",
        arguments: [
            Change("nothing", holds: true) { _, _ in },
            Change("another key", holds: true) { store, _ in
                store.put("b")
                store.remove(Sample.key("b"), ids: nil, nil)
            },
            Change("removed") { store, _ in store.remove(Sample.key("a"), ids: nil, nil) },
            Change("removed by predicate") { store, _ in
                store.removeAll(where: { _ in true }, { _ in })
            },
            Change("removed and stored again") { store, object in
                store.remove(Sample.key("a"), ids: [object.id], nil)
                store.put("a", Sample.head(at: 1))
            },
            Change("replaced") { store, object in
                store.put("a", Sample.head(at: 2), replacing: [object.id])
            },
            Change("freshened") { store, object in
                store.update(object.id, of: Sample.key("a"), head: Sample.head(at: 3))
            },
            Change("invalidated") { store, object in
                var head = object.head
                head.isInvalidated = true
                store.update(object.id, of: Sample.key("a"), head: head)
            },
            Change("joined by a variant") { store, _ in
                store.put("a", Sample.head(at: 2, language: "de"))
            },
            Change("evicted") { store, _ in store.resize(to: .zero, maximumObject: .zero) },
            Change("evicted, and its slot used again") { store, _ in
                store.resize(to: .zero, maximumObject: .zero)
                store.resize(to: .mebibytes(1), maximumObject: .kibibytes(64))
                store.put("a", Sample.head(at: 1))
            },
            Change("closed") { store, _ in store.close {} },
        ])
    func changes(_ change: Change) throws {
        let store = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(1), maximumObject: .kibibytes(64)))
        store.put("a", Sample.head(at: 1), body: Sample.body(1, 7))
        let mark = try self.mark(store)
        #expect(mark != nil)
        let object = try #require(store.resident("a")?.first)
        change.make(store, object)
        #expect(self.use(mark, store) == (change.holds ? [7] : nil))
    }

    @Test("are not given where something has changed since the lookup")
    func late() throws {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        store.put("a", Sample.head(at: 1))
        let objects = try #require(store.resident("a"))
        store.update(objects[0].id, of: Sample.key("a"), head: Sample.head(at: 2))
        #expect(
            store.residentMark(of: objects[0].id, among: objects, under: Sample.key("a")) == nil)
        store.put("a", Sample.head(at: 3, language: "de"))
        let both = try #require(store.resident("a"))
        #expect(both.count == 2)
        #expect(store.residentMark(of: both[1].id, among: both, under: Sample.key("a")) != nil)
        #expect(
            store.residentMark(of: both[1].id, among: [both[1]], under: Sample.key("a")) == nil)
    }

    @Test("of two tiers are given where memory has all, and tell the lower one of uses")
    func tiers() throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.store.put("a", body: Sample.body(2, 7))
        let objects = try #require(tiers.store.resident("a"))
        let mark = tiers.store.residentMark(
            of: objects[0].id, among: objects, under: Sample.key("a"))
        #expect(self.use(mark, tiers.store) == [7, 7])
        let told = tiers.disk.calls.count { if case .noteUse = $0 { true } else { false } }
        #expect(told == 1)
        #expect(tiers.store.resident("a")?.first?.hits == 1)
    }

    @Test("of two tiers are not given where the lower one may have more")
    func incomplete() throws {
        let tiers = Tiers()
        _ = tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        tiers.store.put("a", Sample.head(at: 2))
        let found = tiers.store.found("a").filter { $0.tier == .memory }
        #expect(found.count == 1)
        #expect(
            tiers.store.residentMark(of: found[0].id, among: found, under: Sample.key("a")) == nil)
    }
}
