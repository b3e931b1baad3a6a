import Foundation
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

@Suite("Damage to the file", .timeLimit(.minutes(10)))
struct DamageTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Changes a byte in the middle of each place in the file where `needle` lies: pages that were
    /// copied and are free still hold it.
    private func flip(_ needle: [UInt8]) throws {
        let url = URL(fileURLWithPath: self.directory.data)
        var data = try Data(contentsOf: url)
        var count = 0
        while let range = data.range(of: Data(needle)) {
            data[range.lowerBound + needle.count / 2] ^= 0x01
            count += 1
        }
        #expect(count > 0)
        try data.write(to: url)
    }

    @Test("by which it ends early ends its use, not the process, on the store's own threads")
    func cutUnderway() async throws {
        let path = self.directory.path + "/cut.mdb"
        let environment = try Environment.open(
            path: path, options: EnvironmentOptions(mapSize: 16 << 20))
        let database = try environment.openDatabases(["one"], creating: true)[0]
        try environment.write { (transaction) throws(LMDBError) in
            try transaction.put(database, [1].span, pattern(100_000).span)
        }
        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.truncate(atOffset: 4096)
        try file.close()
        let code = await withCheckedContinuation { continuation in
            do {
                try NamedThread.start("cut") {
                    do throws(LMDBError) {
                        try environment.read { (transaction) throws(LMDBError) in
                            _ = try transaction.get(database, [1].span) { $0.count }
                        }
                        continuation.resume(returning: LMDBError.Code?.none)
                    } catch {
                        continuation.resume(returning: error.code)
                    }
                }
            } catch {
                Issue.record(error)
                continuation.resume(returning: nil)
            }
        }
        #expect(code == .corrupted)
        environment.close()
    }

    @Test("in a body is found before a wrong byte is handed out, and the entry is dropped")
    func body() async throws {
        let body = pattern(300_000)
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), body)
        await store.put(cacheKey("other"), pattern(100, seed: 9))
        await store.closed()
        try self.flip(Array(body[150_000..<150_040]))
        store = try self.world.open(self.directory)
        let object = try #require(await store.find(cacheKey("page")).first)
        let read = await store.body(object)
        guard case .store = read.failure else {
            Issue.record("\(String(describing: read.failure))")
            return
        }
        // Whole sound segments before it at most.
        #expect(read.bytes == Array(body[..<read.bytes.count]))
        await store.flushed()
        #expect(await store.find(cacheKey("page")).isEmpty)
        #expect(store.statistics().damaged == 1)
        guard case .damaged(let key, _) = self.world.reported.first else {
            Issue.record("not reported")
            return
        }
        #expect(key == cacheKey("page"))
        #expect(await store.find(cacheKey("other")).count == 1)
        await store.closed()
    }

    @Test("in a small body makes it as if the entry were not there, before a head is sent")
    func smallBody() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(5000), head: storedHead("de"))
        await store.put(cacheKey("page"), pattern(6000, seed: 9), head: storedHead("en"))
        await store.closed()
        try self.flip(Array(pattern(5000)[1000..<1040]))
        store = try self.world.open(self.directory)
        for _ in 0..<2 {
            let found = await store.find(cacheKey("page"))
            #expect(found.map(\.bodyLength) == [6000])
            #expect(store.statistics().damaged == 1)
            await store.flushed()
        }
        #expect(store.statistics().disk?.objects == 1)
        guard case .damaged(let key, _) = self.world.reported.first else {
            Issue.record("not reported")
            return
        }
        #expect(key == cacheKey("page"))
        await store.closed()
    }

    @Test("in a record makes it as if the entry were not there")
    func record() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(5000), head: storedHead("needle-in-the-record"))
        await store.put(cacheKey("other"), [1])
        await store.closed()
        try self.flip(Array("X-Odd-Case: needle-in-the-record".utf8))
        store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("page")).isEmpty)
        #expect(await store.find(cacheKey("other")).count == 1)
        await store.flushed()
        #expect(store.statistics().disk?.objects == 1)
        #expect(store.statistics().damaged == 1)
        await store.closed()
    }

    @Test("by a missing segment is told from an entry that is gone")
    func missingSegment() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(200_000))
        let object = try #require(await store.find(cacheKey("page")).first)
        let environment = try #require(Environment.shared(path: self.directory.data))
        let schema = try Schema(environment, creating: false)
        try environment.write { (transaction) throws(LMDBError) in
            let key = SegmentKey(id: object.id, index: 2).bytes
            try transaction.delete(schema.segments, key.span)
        }
        #expect(await store.body(object).failure != nil)
        #expect(store.statistics().damaged == 1)
        await store.closed()
    }

    @Test(
        "that makes it no LMDB file sets it aside, and the store goes on with a new one",
        arguments: [1, 15, 100, 4096, 8192, 50_000, 1_000_000])
    func noise(size: Int) async throws {
        let noise = pattern(size, seed: 3)
        try Data(noise).write(to: URL(fileURLWithPath: self.directory.data))
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), [1, 2, 3])
        #expect(await store.find(cacheKey("page")).count == 1)
        await store.closed()
        #expect(self.directory.aside.count == 1)
        guard case .setAside(let name, _) = self.world.reported.first else {
            Issue.record("not reported")
            return
        }
        let aside = try Data(contentsOf: URL(fileURLWithPath: self.directory.path + "/" + name))
        #expect(Array(aside) == noise)
    }

    @Test("by cutting the file short sets it aside")
    func cut() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(500_000))
        await store.closed()
        let url = URL(fileURLWithPath: self.directory.data)
        let data = try Data(contentsOf: url)
        try data.prefix(data.count / 2).write(to: url)
        store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("page")).isEmpty)
        #expect(self.directory.aside.count == 1)
        await store.closed()
    }

    @Test(
        "is what an LMDB file of someone else's, or of another format, is taken for",
        arguments: [true, false])
    func foreign(isOurs: Bool) async throws {
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: 1 << 20))
        if isOurs {
            let schema = try Schema(environment, creating: true)
            let key = StoreMeta.key
            var state = StoreMeta(seed: 1).encoded()
            state.replace(littleEndian: StoreMeta.format + 1, at: 8)
            state.replace(littleEndian: Checksum.record(state.span.extracting(8...)), at: 0)
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(schema.meta, key.span, state.span)
            }
        } else {
            let database = try environment.openDatabases(["mail"], creating: true)[0]
            try environment.write { (transaction) throws(LMDBError) in
                try transaction.put(database, [1].span, [1].span)
            }
        }
        environment.close()
        for _ in 0..<2 {
            let store = try self.world.open(self.directory)
            await store.put(cacheKey("page"), [1])
            #expect(await store.find(cacheKey("page")).count >= 1)
            await store.closed()
        }
        #expect(self.directory.aside.count == 1)
        #expect(self.world.reported.count == 1)
    }

    @Test("that a removal met is no reason to throw away the file that has taken its place")
    func replacedMeanwhile() async throws {
        let store = try self.world.open(self.directory)
        let old = store.core.file
        #expect(old.note(.damaged(LMDBError(.corrupted, operation: "test"))))
        store.core.mailbox.nudge()
        await store.flushed()
        let file = store.core.file
        #expect(file !== old)
        await store.put(cacheKey("page"), [1])
        for (which, expected) in [(old, false), (file, true)] {
            let isGone: Bool = await withCheckedContinuation { continuation in
                let command = WriteCommand.giveUp(which) { continuation.resume(returning: $0) }
                if store.core.mailbox.post(command) != .accepted {
                    continuation.resume(returning: !expected)
                }
            }
            #expect(isGone == expected)
            #expect(await store.find(cacheKey("page")).count == (expected ? 0 : 1))
        }
        await store.closed()
    }

    @Test("is not suspected where openings fail for another reason")
    func failedOpenings() async throws {
        let first = try self.world.open(self.directory)
        await first.put(cacheKey("page"), [1])
        await first.closed()
        let left = self.directory.writerLockText
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: 64 << 20))
        for _ in 0..<8 {
            #expect(throws: StoreError.self) { try self.world.open(self.directory) }
            #expect(self.directory.writerLockText == left)
        }
        environment.close()
        let store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("page")).count == 1)
        #expect(self.directory.aside.isEmpty)
        await store.closed()
    }

    @Test("is no reason to stop where counters have come to their ends: they go on from nought")
    func counters() async throws {
        var meta = StoreMeta(seed: 1)
        meta.hits = .max
        meta.damaged = .max
        meta.failures = .max
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: 1 << 20))
        let schema = try Schema(environment, creating: true)
        try environment.write { [meta] (transaction) throws(LMDBError) in
            try schema.writeMeta(meta, transaction)
        }
        environment.close()
        let store = try self.world.open(self.directory)
        #expect(store.statistics().disk?.hits == 0, "of this process there is none")
        store.noteUse(ObjectID(rawValue: 1), of: cacheKey("page"), at: Timestamp(seconds: 1))
        store.core.dropDamaged(ObjectID(rawValue: 1), key: cacheKey("page"), reason: "test")
        store.core.failed(LMDBError(.noSpace, operation: "test"))
        #expect(store.statistics().disk?.hits == 1)
        #expect(store.statistics().damaged == 0)
        #expect(store.statistics().storeFailures == 0)
        await store.closed()
    }

    @Test("set aside again and again does not pile up: the oldest file goes, and is named")
    func fewAside() throws {
        let files = DiskFiles(directory: self.directory.path)
        var removed: [DiskFiles.Aside] = []
        for round in 0..<4 as Range<UInt64> {
            try Data(pattern(5000 + Int(round), seed: round)).write(
                to: URL(fileURLWithPath: self.directory.data))
            _ = try files.setAside(second: 1_700_000_000 + Int64(round / 2)) {
                removed.append($0)
            }
        }
        #expect(
            self.directory.aside.sorted()
                == ["cache.mdb.damaged-1700000001", "cache.mdb.damaged-1700000001-2"])
        #expect(
            removed.map(\.name)
                == ["cache.mdb.damaged-1700000000", "cache.mdb.damaged-1700000000-2"])
        #expect(removed.map(\.bytes) == [5000, 5001])
    }
}
