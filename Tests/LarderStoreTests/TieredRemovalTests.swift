import LarderHTTP
import LarderPolicy
import NIOCore
import Testing

@testable import LarderStore

@Suite("Two tiers seen as one: freshening and removal")
struct TieredRemovalTests {
    @Test("freshens in both tiers, also by the id that memory had given")
    func update() throws {
        let tiers = Tiers()
        let id = try #require(tiers.store.put("a", Sample.head(at: 1)).id)
        tiers.store.update(id, of: Sample.key("a"), head: Sample.head(at: 2))
        #expect(tiers.store.found("a").map(\.head) == [Sample.head(at: 2)])
        #expect(tiers.disk.head("a") == Sample.head(at: 2))
        tiers.fillMemory()
        tiers.store.update(id, of: Sample.key("a"), head: Sample.head(at: 3))
        #expect(tiers.disk.head("a") == Sample.head(at: 3))
    }

    @Test("freshens what is on its way when it has landed")
    func updateLanding() throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.disk.hold()
        tiers.store.put("a", Sample.head(at: 1))
        let id = try #require(tiers.store.resident("a")?.first?.id)
        tiers.store.update(id, of: Sample.key("a"), head: Sample.head(at: 2))
        tiers.disk.letGo()
        #expect(tiers.disk.head("a") == Sample.head(at: 2))
        #expect(tiers.store.found("a").map(\.head) == [Sample.head(at: 2)])
    }

    @Test("shows the new head although the lower tier has not written it yet")
    func updateSlow() {
        let tiers = Tiers()
        let id = tiers.disk.seed("a", Sample.head(at: 1), body: Tiers.large)
        var invalid = Sample.head(at: 1)
        invalid.isInvalidated = true
        tiers.disk.hold()
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.store.update(id, of: Sample.key("a"), head: invalid)
        #expect(tiers.disk.step(), "the lookup, before the update")
        #expect(answer.last?.map(\.head.isInvalidated) == [true])
    }

    @Test(
        "shows nothing as valid that the lower tier has not written as invalid, however many follow"
    )
    func invalidatedLong() {
        // Of one part.
        let tiers = Tiers(capacity: .kibibytes(16))
        let id = tiers.disk.seed("a", Sample.head(at: 1), body: Tiers.large)
        let others = (0..<64).map { number in
            (name: "\(number)", id: tiers.disk.seed("\(number)", body: Tiers.large))
        }
        var invalid = Sample.head(at: 1)
        invalid.isInvalidated = true
        tiers.disk.hold()
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.store.update(id, of: Sample.key("a"), head: invalid)
        for other in others {
            tiers.store.update(other.id, of: Sample.key(other.name), head: Sample.head(at: 2))
        }
        #expect(tiers.disk.step(), "the lookup, before the update")
        #expect(answer.last?.map(\.head.isInvalidated) == [true])
        tiers.disk.letGo()
        #expect(tiers.disk.head("a")?.isInvalidated == true)
    }

    @Test(
        "keeps a head invalid that an older request would freshen, wherever it lies",
        arguments: [true, false])
    func invalidatedMeanwhile(_ isResident: Bool) throws {
        let tiers = Tiers()
        var head = Sample.head(at: 1)
        let key = Sample.key("a")
        let id =
            isResident
            ? try #require(tiers.store.put("a", head).id)
            : tiers.disk.seed("a", head, body: Tiers.large)
        let before = tiers.store.removalMark()
        head.isInvalidated = true
        tiers.store.update(id, of: key, head: head, begun: before)
        let after = tiers.store.removalMark()
        tiers.store.update(id, of: key, head: Sample.head(at: 2), begun: before)
        #expect(tiers.store.found("a").map(\.head.isInvalidated) == [true])
        #expect(tiers.disk.head("a")?.isInvalidated == true)
        tiers.store.update(id, of: key, head: Sample.head(at: 3), begun: after)
        #expect(tiers.store.found("a").map(\.head) == [Sample.head(at: 3)])
        #expect(tiers.disk.head("a") == Sample.head(at: 3))
    }

    @Test("ends below with the head that was given last, whichever came there first")
    func updatesThatMeet() {
        let tiers = Tiers()
        let key = Sample.key("a")
        let id = tiers.disk.seed("a", Sample.head(at: 1), body: Tiers.large)
        var invalid = Sample.head(at: 1)
        invalid.isInvalidated = true
        let written = Box<String>()
        tiers.disk.beforeUpdate { [invalid] in
            tiers.store.update(id, of: key, head: invalid) { written.put("invalid") }
        }
        tiers.disk.hold()
        tiers.store.update(id, of: key, head: Sample.head(at: 2)) { written.put("fresh") }
        let whole = Box<StoredHead?>()
        tiers.store.flush { whole.put(tiers.disk.head("a")) }
        tiers.disk.letGo()
        #expect(whole.all == [invalid])
        #expect(tiers.disk.head("a") == invalid)
        #expect(written.all.sorted() == ["fresh", "invalid"])
    }

    @Test(
        "removes a key for who may store under it then, unless something else has since",
        arguments: [nil, "key", "predicate"])
    func removedMeanwhile(_ other: String?) {
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        for store in [memory, Tiers().store] as [any ObjectStore] {
            let key = Sample.key("a")
            store.put("a")
            let begun = store.removalMark()
            switch other {
            case "key": store.remove(key, ids: nil, nil)
            case .some: store.removeAll(where: { $0 == key }, { _ in })
            case nil: break
            }
            let told = Box<Int>()
            let mark = store.remove(key, begun: begun) { told.put($0) }
            #expect(told.all == [other == nil ? 1 : 0])
            #expect((mark == begun) == (other != nil))
            #expect(store.found("a").isEmpty)
        }
    }

    @Test("hurries what is on its way below, also where that is still to be told to commit")
    func removedOnItsWay() throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.disk.hold()
        tiers.store.put("a")
        let first = tiers.removed("a", ids: tiers.store.resident("a")?.map(\.id))
        #expect(tiers.disk.calls.suffix(2) == [.commit, .flush])
        // Its body goes below when it is whole: memory shows it by then.
        let second = Box<Int>()
        tiers.disk.whenWritten {
            let ids = tiers.store.resident("a")?.map(\.id)
            tiers.store.remove(Sample.key("a"), ids: ids) { second.put($0) }
        }
        tiers.store.put("a")
        #expect(tiers.disk.calls.suffix(3) == [.flush, .commit, .hurry])
        tiers.disk.letGo()
        #expect(first.all == [1] && second.all == [1])
        #expect(tiers.disk.ids("a").isEmpty)
    }

    @Test("purges a key in both tiers at once, and counts each response once")
    func purge() {
        let tiers = Tiers()
        tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        tiers.store.put("a", Sample.head(at: 2, language: "fr"))
        tiers.disk.refuse()
        tiers.store.put("a", Sample.head(at: 3, language: "it"))
        tiers.disk.hold()
        let count = tiers.removed("a")
        #expect(tiers.store.found("a").isEmpty, "though the lower tier still has two")
        #expect(tiers.disk.ids("a").count == 2)
        #expect(count.all.isEmpty)
        tiers.disk.letGo()
        #expect(count.all == [3])
        #expect(tiers.store.found("a").isEmpty)
    }

    @Test("removes by either id, in both tiers at once")
    func byID() throws {
        let tiers = Tiers()
        let kept = tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        let id = try #require(tiers.store.put("a", Sample.head(at: 2, language: "fr")).id)
        tiers.disk.hold()
        let count = tiers.removed("a", ids: [id])
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.disk.letGo()
        #expect(answer.last?.map(\.id) == [kept])
        #expect(count.all == [1])
        #expect(tiers.removed("a", ids: [kept]).all == [1])
        #expect(tiers.disk.ids("a").isEmpty)
    }

    @Test("removes by the id that memory had given, after the eviction")
    func byOldID() throws {
        let tiers = Tiers()
        let id = try #require(tiers.store.put("a").id)
        tiers.fillMemory()
        #expect(tiers.removed("a", ids: [id]).all == [1])
        #expect(tiers.disk.ids("a").isEmpty)
        #expect(tiers.store.found("a").isEmpty)
    }

    @Test("removes all of the key when an id is too old to be understood")
    func byForgottenID() throws {
        let tiers = Tiers()
        let id = try #require(tiers.store.put("a").id)
        // Each eviction is remembered in its part; this capacity makes 16 of 1,024.
        for i in 0..<20_000 { tiers.store.put("fill\(i)", body: Sample.body(2000)) }
        tiers.disk.hold()
        let below = tiers.disk.ids("a")
        let count = tiers.removed("a", ids: below + [id])
        #expect(tiers.store.found("a").isEmpty)
        #expect(count.all.isEmpty, "not done while it is there")
        tiers.disk.letGo()
        #expect(count.all == [1])
        #expect(tiers.disk.ids("a").isEmpty)
        let hashed = HashedKey(Sample.key("a"))
        #expect(tiers.store.memory.withShard(of: hashed) { $0.lower.hidden.isEmpty })
    }

    @Test("of many by their names asks for a part when the part before is gone")
    func inParts() {
        let disk = ScriptedStore()
        let names = (0..<20_000).map { number in
            StoredName(
                key: Sample.key("\(number)"), id: disk.seed("\(number)"),
                lastUsed: Timestamp(seconds: 0), bytes: 1)
        }
        let told = Box<Bool>()
        disk.hold()
        disk.remove(Array(names.prefix(2000))) { told.put(true) }
        #expect(disk.calls.count == 512)
        for _ in 0..<511 { disk.step() }
        #expect(disk.calls.count == 512)
        disk.step()
        #expect(disk.calls.count == 1024)
        disk.letGo()
        #expect(told.all == [true])
        #expect(disk.calls.count == 2000)
        // At once, and without a stack that grows with them.
        disk.remove(Array(names.dropFirst(2000))) { told.put(true) }
        #expect(told.all == [true, true])
        #expect((0..<20_000).allSatisfy { disk.ids("\($0)").isEmpty })
        disk.remove([]) { told.put(true) }
        #expect(told.all.count == 3)
    }

    @Test("does not show again what was purged on its way")
    func purgedLanding() {
        let tiers = Tiers()
        tiers.disk.hold()
        let observer = tiers.store.put("a")
        let count = tiers.removed("a")
        #expect(tiers.store.found("a").isEmpty)
        // The write is told, then the commit lands; then the purge itself.
        #expect(tiers.disk.step())
        #expect(tiers.disk.step())
        #expect(tiers.disk.ids("a").count == 1)
        #expect(tiers.store.found("a").isEmpty)
        #expect(count.all.isEmpty, "not done while it is there")
        tiers.disk.letGo()
        #expect(count.all.count == 1)
        #expect(tiers.disk.ids("a").isEmpty)
        #expect(tiers.store.found("a").isEmpty)
        #expect(observer.heard.outcomes.count == 1)
    }

    @Test("removes again what lands after the purge went by")
    func purgedBeforeLanding() {
        let tiers = Tiers()
        tiers.disk.hold()
        tiers.store.put("a")
        let count = tiers.removed("a")
        // As if the purge had come between memory's commit and the lower tier's.
        tiers.disk.stepLast()
        #expect(count.all.isEmpty)
        tiers.disk.letGo()
        #expect(tiers.disk.ids("a").isEmpty)
        #expect(count.all == [1])
    }

    @Test("tells that a large one purged on its way was not stored")
    func purgedLarge() {
        let tiers = Tiers()
        tiers.disk.hold()
        let observer = tiers.store.put("a", body: Tiers.large)
        tiers.store.remove(Sample.key("a"), ids: nil, nil)
        tiers.disk.letGo()
        #expect(observer.outcome == .abandoned(.removed))
        #expect(tiers.disk.ids("a").isEmpty)
    }

    @Test("does not store what was asked for before the purge", arguments: [true, false])
    func askedBefore(isSweep: Bool) {
        let tiers = Tiers()
        let mark = tiers.store.removalMark()
        let key = Sample.key("a")
        if isSweep {
            tiers.store.removeAll(where: { $0 == key }, { _ in })
        } else {
            tiers.store.remove(key, ids: nil, nil)
        }
        for body in [Sample.body(5), Tiers.large] {
            #expect(tiers.store.put("a", body: body, begun: mark).outcome == .abandoned(.removed))
        }
        #expect(tiers.disk.ids("a").isEmpty)
        #expect(tiers.store.put("a").id != nil)
        #expect(tiers.store.found("a").count == 1)
    }

    @Test("shows what was stored after a purge that is still under way")
    func storedAfter() {
        let tiers = Tiers()
        tiers.disk.seed("a")
        tiers.disk.hold()
        tiers.store.remove(Sample.key("a"), ids: nil, nil)
        tiers.store.put("a", body: Sample.body(77))
        #expect(tiers.store.found("a").map(\.bodyLength) == [77])
        tiers.disk.letGo()
        #expect(tiers.store.found("a").map(\.bodyLength) == [77])
        #expect(tiers.disk.ids("a").count == 1)
    }

    @Test("does not show a purged response to a lookup that the purge overtook")
    func overtaken() {
        let tiers = Tiers()
        tiers.disk.seed("a")
        tiers.disk.hold()
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.store.remove(Sample.key("a"), ids: nil, nil)
        tiers.disk.letGo()
        #expect(answer.last?.isEmpty == true)
    }

    @Test("removes by predicate in both tiers at once")
    func sweep() {
        let tiers = Tiers()
        for name in ["x1", "x2", "y1"] {
            tiers.store.put(name)
            tiers.disk.seed(name, Sample.head(at: 0, language: "de"))
        }
        let prefix = Sample.key("x").bytes
        let count = Box<Int>()
        tiers.disk.hold()
        let landing = tiers.store.put("x3")
        tiers.store.removeAll(where: { $0.bytes.starts(with: prefix) }, { count.put($0) })
        #expect(tiers.store.found("x1").isEmpty, "though the lower tier still has it")
        #expect(tiers.store.found("x3").isEmpty)
        #expect(count.all.isEmpty)
        tiers.disk.letGo()
        #expect(count.all.count == 1)
        #expect(landing.heard.outcomes.count == 1)
        for name in ["x1", "x2", "x3"] {
            #expect(tiers.store.found(name).isEmpty)
            #expect(tiers.disk.ids(name).isEmpty)
        }
        #expect(tiers.store.found("y1").count == 2)
    }

    @Test("closes both, once the lower tier has")
    func close() {
        let tiers = Tiers()
        tiers.disk.hold()
        let closed = Box<Bool>()
        tiers.store.close { closed.put(true) }
        #expect(closed.all.isEmpty)
        tiers.disk.letGo()
        #expect(closed.all == [true])
    }
}

extension Tiers {
    func removed(_ name: String, ids: [ObjectID]? = nil) -> Box<Int> {
        self.store.removed(name, ids: ids)
    }
}
