import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Synchronization
import Testing

@Suite("Two tiers seen as one: many threads")
struct TieredStressTests {
    /// Numbers all stores and purges in one order; knows which purges have ended.
    private final class Order: Sendable {
        private let next = Atomic<Int64>(0)
        private let floors = Mutex<[String: Int64]>([:])

        func draw() -> Int64 { self.next.add(1, ordering: .sequentiallyConsistent).newValue }

        func purged(_ name: String, at number: Int64) {
            self.floors.withLock { $0[name] = max($0[name] ?? 0, number) }
        }

        func floor(_ name: String) -> Int64 { self.floors.withLock { $0[name] ?? 0 } }
    }

    @Test("never shows what was purged, however the threads run", .timeLimit(.minutes(10)))
    func purgesHold() async {
        let tiers = Tiers(capacity: .kibibytes(64))
        let order = Order()
        let work = tiers.disk.runElsewhere()
        async let below: Void = {
            for await item in work { item() }
        }()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var random = SplitMix64(seed: UInt64(task))
                    for _ in 0..<600 {
                        let name = "k\(Int.random(in: 0..<12, using: &random))"
                        let choice = Int.random(in: 0..<10, using: &random)
                        await Self.act(choice, name, tiers, order)
                    }
                }
            }
        }
        await Self.purge("last", tiers, order)
        await withCheckedContinuation { done in
            tiers.store.removeAll(where: { _ in true }, { _ in done.resume() })
        }
        for i in 0..<12 {
            #expect(await Self.lookup("k\(i)", tiers).isEmpty)
            #expect(tiers.disk.ids("k\(i)").isEmpty)
        }
        #expect(tiers.store.statistics().memory.objects == 0)
        tiers.disk.finishElsewhere()
        await below
    }

    private static func act(
        _ choice: Int, _ name: String, _ tiers: Tiers, _ order: Order
    ) async {
        switch choice {
        case 0:
            await self.purge(name, tiers, order)
        case 1...4:
            let mark = tiers.store.removalMark()
            let number = order.draw()
            let old = choice == 1 ? await self.lookup(name, tiers).map(\.id) : []
            let observer = tiers.store.put(
                name, Sample.head(at: number, language: "l\(choice)"),
                body: choice == 4 ? Tiers.large : Sample.body(100), replacing: old, begun: mark)
            #expect(observer.heard.outcomes.count <= 1)
        default:
            let floor = order.floor(name)
            for object in await self.lookup(name, tiers) {
                #expect(object.head.responseTime.seconds > floor)
                tiers.store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 1))
                if choice == 9 {
                    let read = object.read()
                    #expect(UInt64(read.bytes.count) == object.bodyLength)
                }
            }
        }
    }

    private static func purge(_ name: String, _ tiers: Tiers, _ order: Order) async {
        let number = order.draw()
        await withCheckedContinuation { done in
            tiers.store.remove(Sample.key(name), ids: nil) { _ in done.resume() }
        }
        order.purged(name, at: number)
    }

    private static func lookup(_ name: String, _ tiers: Tiers) async -> [StoredObject] {
        if let resident = tiers.store.resident(name) { return resident }
        return await withCheckedContinuation { done in
            tiers.store.lookup(Sample.key(name)) { done.resume(returning: $0) }
        }
    }
}
