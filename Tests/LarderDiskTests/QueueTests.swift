import Glibc
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("The queues of eviction on disk", .timeLimit(.minutes(5)))
struct QueueTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Puts hot responses, uses them, and lets enough pass by that their first turn comes.
    private func warm(_ store: DiskStore) async {
        for i in 0..<20 { await store.put(cacheKey("hot\(i)"), pattern(20_000)) }
        for i in 0..<20 { await store.use(cacheKey("hot\(i)"), times: 3) }
        await self.scan(store, "warm", 400)
    }

    private func scan(_ store: DiskStore, _ name: String, _ count: Int) async {
        for i in 0..<count { await store.put(cacheKey("\(name)\(i)"), pattern(20_000)) }
    }

    private func hotLeft(_ store: DiskStore) async -> Int {
        var count = 0
        for i in 0..<20 { count += await store.find(cacheKey("hot\(i)")).count }
        return count
    }

    @Test("a scan of five capacities does not drive out what was used, though it is used no more")
    func scan() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await self.warm(store)
        await self.scan(store, "scan", 2000)
        #expect(try #require(store.statistics().disk).evictions > 1500)
        #expect(await self.hotLeft(store) == 20)
        let audit = try QueueAudit(self.directory)
        audit.expectSound()
        for i in 0..<20 {
            let record = try #require(audit.record(cacheKey("hot\(i)")))
            #expect(record.standing.queue == .main)
        }
        await store.closed()
    }

    @Test("standing survives closing and opening")
    func reopened() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await self.warm(store)
        await store.flushed()
        let before = try QueueAudit(self.directory)
        await store.closed()
        store = try self.world.open(self.directory, capacity: .mebibytes(8))
        let after = try QueueAudit(self.directory)
        after.expectSound()
        #expect(after.queues[.main]?.count ?? 0 >= 20)
        #expect(before.queues[.main] == after.queues[.main])
        await self.scan(store, "scan", 1000)
        #expect(await self.hotLeft(store) == 20)
        await store.closed()
    }

    @Test("standing, queues and books survive a kill")
    func killed() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let configuration = DiskConfiguration(
                directory: path, capacity: .mebibytes(8), useFlushInterval: .zero)
            let store = try DiskStore.open(
                configuration, clock: { Timestamp(seconds: 0) }, report: { _ in })
            for i in 0..<20 { await store.put(cacheKey("hot\(i)"), pattern(20_000)) }
            for i in 0..<20 { await store.use(cacheKey("hot\(i)"), times: 3) }
            for i in 0..<400 { await store.put(cacheKey("warm\(i)"), pattern(20_000)) }
            kill(getpid(), SIGKILL)
        }
        let store = try self.world.open(self.directory, capacity: .mebibytes(8))
        let audit = try QueueAudit(self.directory)
        audit.expectSound()
        await self.scan(store, "scan", 1000)
        #expect(await self.hotLeft(store) == 20)
        try QueueAudit(self.directory).expectSound()
        await store.closed()
    }

    @Test("what was evicted is remembered across a restart, and comes back to the main queue")
    func ghosts() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await store.put(cacheKey("page"), pattern(20_000))
        var number = 0
        while await store.find(cacheKey("page")).count == 1, number < 1000 {
            await store.put(cacheKey("scan\(number)"), pattern(20_000))
            number += 1
        }
        #expect(number < 1000)
        await store.closed()
        store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await store.put(cacheKey("page"), pattern(20_000))
        await store.put(cacheKey("new"), pattern(20_000))
        let audit = try QueueAudit(self.directory)
        audit.expectSound()
        #expect(audit.record(cacheKey("page"))?.standing.queue == .main)
        #expect(audit.record(cacheKey("new"))?.standing.queue == .small)
        await store.closed()
    }

    @Test("ghosts of a file with noise in them are forgotten, and nothing else")
    func damagedGhosts() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await self.scan(store, "scan", 500)
        await store.closed()
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: 8 << 20))
        let schema = try Schema(environment, creating: false)
        try environment.write { (transaction) throws(LMDBError) in
            for index in 0..<GhostTable(capacity: .mebibytes(8)).chunkCount {
                let key = NumberKey.bytes(UInt64(index))
                let chunk = try transaction.reading.get(schema.ghosts, key.span) { $0.copied }
                guard var noise = chunk else { continue }
                noise[noise.count / 2] ^= 1
                try transaction.put(schema.ghosts, key.span, noise.span)
            }
        }
        environment.close()
        store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await store.put(cacheKey("scan0"), pattern(20_000))
        let audit = try QueueAudit(self.directory)
        audit.expectSound()
        #expect(audit.record(cacheKey("scan0"))?.standing.queue == .small)
        #expect(self.world.reported.isEmpty)
        await store.closed()
    }

    @Test("a response that takes another's place has its standing")
    func replaced() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(8))
        await self.warm(store)
        let old = try #require(await store.find(cacheKey("hot3")).first)
        await store.put(cacheKey("hot3"), pattern(30_000), replacing: [old.id])
        let audit = try QueueAudit(self.directory)
        audit.expectSound()
        let record = try #require(audit.record(cacheKey("hot3")))
        #expect(record.bodyLength == 30_000)
        #expect(record.standing.queue == .main)
        await store.closed()
    }

    @Test(
        "the books are right after any operations, growing parts and damage included",
        arguments: [1, 2, 3] as [UInt64])
    func books(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var store = try self.world.open(self.directory, capacity: .mebibytes(2))
        for step in 0..<600 {
            let key = cacheKey("\(random.next() % 300)")
            let found = await store.find(key)
            switch random.next() % 12 {
            case 0: _ = await store.removed(key)
            case 1: await store.use(key, times: Int(random.next() % 5))
            case 2:
                if let object = found.first {
                    store.update(object.id, of: key, head: storedHead("u\(step)"))
                }
            case 3, 4:
                let start = random.next() % 40_000
                _ = await store.putPart(key, start..<start + 5000, of: 100_000)
            case 5, 6:
                if let object = found.first(where: { $0.head.extent != nil }) {
                    let start = random.next() % 90_000
                    _ = await store.add(start..<start + 10_000, to: object.id, of: key)
                }
            case 7:
                if step % 3 == 0, let object = found.first { try self.spoil(object, random.next()) }
            case 8 where step % 7 == 0:
                await store.closed()
                store = try self.world.open(self.directory, capacity: .mebibytes(2))
            default:
                let size = Int(random.next() % (step % 20 == 0 ? 300_000 : 30_000))
                await store.put(key, pattern(size), replacing: found.map(\.id))
            }
            if step % 20 == 0 {
                await store.flushed()
                try QueueAudit(self.directory).expectSound()
            }
        }
        #expect(await store.purged { _ in true } > 0)
        await store.flushed()
        #expect(
            try DiskInspector(directory: self.directory.path).statistics().evictions > 10)
        let audit = try QueueAudit(self.directory)
        audit.expectSound()
        #expect(audit.queues[.small]?.isEmpty == true)
        #expect(audit.queues[.main]?.isEmpty == true)
        await store.closed()
    }

    /// Turns a bit of a record, behind its place in the queue.
    private func spoil(_ object: StoredObject, _ number: UInt64) throws {
        let environment = try #require(Environment.shared(path: self.directory.data))
        let schema = try Schema(environment, creating: false)
        try environment.write { (transaction) throws(LMDBError) in
            guard let meta = try schema.readMeta(transaction.reading) else { return }
            let key = ObjectKey(
                hash: Checksum.key(object.key.bytes, seed: meta.seed), id: object.id
            ).bytes
            let found = try transaction.reading.get(schema.objects, key.span) { $0.copied }
            guard var record = found else { return }
            record[40 + Int(number % UInt64(record.count - 40))] ^= 1
            try transaction.put(schema.objects, key.span, record.span)
        }
    }

    @Test("who writes gives way before LMDB is full, where nothing can be evicted")
    func pressure() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(8))
        var readers: [any BodySource] = []
        var refused: SinkOutcome?
        for i in 0..<600 where refused == nil {
            let key = cacheKey("\(i)")
            let outcome = await store.put(key, pattern(40_000))
            guard case .visible = outcome else {
                refused = outcome
                break
            }
            // A body that is not in memory with its head is held, and is not evicted.
            for object in await store.find(key) {
                readers.append(object.body.reader(range: 0..<object.bodyLength))
            }
        }
        #expect(refused == .abandoned(.noSpace))
        #expect(readers.count > 100)
        // The disk did not fail: it goes on as soon as there is room.
        #expect(self.world.reported.isEmpty)
        #expect(store.statistics().storeFailures > 0)
        for reader in readers { reader.cancel() }
        readers = []
        // It is taken back in steps, each of a short while.
        var after = await store.put(cacheKey("after"), pattern(40_000))
        for _ in 0..<1_000 where after == .abandoned(.noSpace) {
            await store.flushed()
            after = await store.put(cacheKey("after"), pattern(40_000))
        }
        #expect(after?.id != nil)
        try QueueAudit(self.directory).expectSound()
        await store.closed()
    }
}
