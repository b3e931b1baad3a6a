import Foundation
import Glibc
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

extension TemporaryDirectory {
    /// Writes over a part of a file that is in use.
    func overwrite(_ bytes: [UInt8], at offset: Int) throws {
        let descriptor = unsafe open(self.data, O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { _ = close(descriptor) }
        let count = unsafe pwrite(descriptor, bytes, bytes.count, off_t(offset))
        #expect(count == bytes.count)
    }

    /// The number of the page that is the root of the tree of databases, by the newer meta page.
    func rootPage() throws -> Int {
        let data = try Data(contentsOf: URL(fileURLWithPath: self.data)).prefix(8192)
        func number(_ offset: Int) -> Int {
            (0..<8).reversed().reduce(0) { $0 << 8 | Int(data[offset + $1]) }
        }
        return number(144) > number(4096 + 144) ? number(128) : number(4096 + 128)
    }

    var writerLockText: String? {
        try? String(contentsOfFile: self.path + "/cache.lock", encoding: .utf8)
    }
}

@Suite("A file in trouble under a running store", .timeLimit(.minutes(10)))
struct ExchangeTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Lets a store meet a page that is not what was written.
    private func ruin() throws {
        let page = try self.directory.rootPage()
        try self.directory.overwrite([UInt8](repeating: 0, count: 4096), at: page * 4096)
    }

    private var setAside: [String] {
        self.world.reported.compactMap { event in
            if case .setAside(let name, _) = event { name } else { nil }
        }
    }

    private func isVisible(_ outcome: SinkOutcome?) -> Bool {
        if case .visible = outcome { true } else { false }
    }

    @Test("is set aside by name when a page of it is ruined, and storing goes on with a new one")
    func ruined() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<50 { await store.put(cacheKey("\(i)"), pattern(10_000)) }
        let before = try #require(await store.find(cacheKey("7")).first)
        try self.ruin()
        // Whatever finds it, finds nothing, and the next one stores again.
        _ = await store.put(cacheKey("finds it"), pattern(10_000))
        await store.flushed()
        let outcome = await store.put(cacheKey("new"), pattern(10_000, seed: 2))
        guard case .visible(let id) = outcome else {
            Issue.record("\(String(describing: outcome)) \(self.world.reported)")
            return
        }
        #expect(id > before.id)
        #expect(self.setAside.count == 1)
        #expect(self.directory.aside == self.setAside)
        let object = try #require(await store.find(cacheKey("new")).first)
        #expect(await store.body(object).bytes == pattern(10_000, seed: 2))
        #expect(await store.find(cacheKey("7")).isEmpty)
        #expect(store.statistics().disk?.objects == 1)
        await store.closed()
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("new")).count == 1)
        await again.closed()
        #expect(self.setAside.count == 1)
    }

    @Test("is set aside when its first pages are written over", arguments: [true, false])
    func ruinedMetas(withNoise: Bool) async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<50 { await store.put(cacheKey("\(i)"), pattern(10_000)) }
        try self.directory.overwrite(
            withNoise ? pattern(8192, seed: 9) : [UInt8](repeating: 0, count: 8192), at: 0)
        // Whatever finds it, the next one stores again.
        _ = await store.put(cacheKey("finds it"), pattern(10_000))
        await store.flushed()
        #expect(self.isVisible(await store.put(cacheKey("new"), pattern(10_000, seed: 2))))
        #expect(self.setAside.count == 1, "\(self.world.reported)")
        let object = try #require(await store.find(cacheKey("new")).first)
        #expect(await store.body(object).bytes == pattern(10_000, seed: 2))
        await store.closed()
    }

    @Test("ends what is being stored and what is being read as gone, and lets go of lookups")
    func underWay() async throws {
        let store = try self.world.open(self.directory) { $0.bodyWithHead = .zero }
        await store.put(cacheKey("large"), pattern(2_000_000))
        let large = try #require(await store.find(cacheKey("large")).first)
        let reader = large.body.reader(range: 0..<2_000_000)
        let observer = Observer()
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey("half"), length: nil, replacing: [],
                observer: observer))
        sink.write(ByteBuffer(bytes: pattern(300_000)))
        await observer.wrote(260_000)
        try self.ruin()
        _ = await store.put(cacheKey("finds it"), pattern(10_000))
        await store.flushed()
        #expect(self.setAside.count == 1)
        #expect(await observer.end() == .abandoned(.storeFailed))
        #expect(observer.ends == 1)
        sink.write(ByteBuffer(bytes: pattern(300_000)))
        sink.commit(trailers: Fields())
        #expect(await store.find(cacheKey("half")).isEmpty)
        let read = await collect(reader)
        #expect(read.failure != nil)
        #expect(read.bytes == Array(pattern(2_000_000)[..<read.bytes.count]))
        // Nothing about the old file keeps the new one from being used.
        await store.put(cacheKey("half"), pattern(5000))
        #expect(await store.find(cacheKey("half")).count == 1)
        await store.closed()
    }

    @Test("is never served from, whatever pages are overwritten under the store", arguments: 1...2)
    func noise(seed: UInt64) async throws {
        let store = try self.world.open(self.directory) { $0.bodyWithHead = .kibibytes(1) }
        for i in 0..<200 as Range<UInt64> {
            await store.put(cacheKey("\(i)"), pattern(Int(i) * 300, seed: i))
        }
        let pages = Int(self.directory.fileSize / 4096)
        for i in 0..<pages / 4 {
            let page = 2 + (i &* 7919 &+ Int(seed) &* 31) % (pages - 2)
            try self.directory.overwrite(
                pattern(4096, seed: seed &+ UInt64(i)), at: page * 4096)
        }
        for i in 0..<200 as Range<UInt64> {
            for object in await store.find(cacheKey("\(i)")) {
                let read = await store.body(object)
                #expect(read.bytes == Array(pattern(Int(i) * 300, seed: i)[..<read.bytes.count]))
                if read.failure == nil { #expect(read.bytes.count == Int(i) * 300) }
            }
            _ = await store.put(cacheKey("new\(i)"), pattern(500, seed: i))
        }
        self.world.now.withLock { $0 = $0 + .seconds(400) }
        _ = await store.put(cacheKey("last"), [1])
        self.world.now.withLock { $0 = $0 + .seconds(400) }
        #expect(self.isVisible(await store.put(cacheKey("last"), [1])))
        #expect(await store.find(cacheKey("last")).count >= 1)
        await store.closed()
    }

    @Test("found by a reader alone is replaced without anything being stored")
    func foundByReader() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        let environment = try #require(Environment.shared(path: self.directory.data))
        store.core.readFailed(LMDBError(.corrupted, operation: "test"), with: environment)
        await store.flushed()
        #expect(self.setAside.count == 1)
        // What a reader says of a file that is no longer in use is of no interest.
        store.core.readFailed(LMDBError(.corrupted, operation: "test"), with: environment)
        await store.flushed()
        #expect(self.setAside.count == 1)
        #expect(self.isVisible(await store.put(cacheKey("a"), [1])))
        await store.closed()
    }

    @Test("is not replaced twice within a minute: the store does without for a while, and says so")
    func twice() async throws {
        let store = try self.world.open(self.directory)
        let damage = LMDBError(.corrupted, operation: "test")
        for _ in 0..<2 {
            await store.put(cacheKey("a"), pattern(10_000))
            let environment = try #require(Environment.shared(path: self.directory.data))
            store.core.readFailed(damage, with: environment)
            await store.flushed()
        }
        #expect(self.setAside.count == 1)
        #expect(await store.put(cacheKey("b"), [1]) == nil)
        #expect(await store.removed(cacheKey("a")) <= 1)
        #expect(await store.find(cacheKey("a")).isEmpty)
        let failed = self.world.reported.filter { if case .failed = $0 { true } else { false } }
        #expect(failed.count == 1)
        self.world.now.withLock { $0 = $0 + .seconds(11) }
        #expect(self.isVisible(await store.put(cacheKey("b"), [1])))
        #expect(self.setAside.count == 2)
        #expect(self.world.reported.last == .recovered)
        #expect(await store.find(cacheKey("a")).isEmpty)
        await store.closed()
    }

    @Test("keeps the invalidations of groups, and writes them to the new one")
    func groups() async throws {
        var store = try self.world.open(self.directory)
        let time = Timestamp(seconds: 1_700_000_100)
        store.noteInvalidation(ofGroup: [1, 2, 3], at: time)
        await store.flushed()
        let environment = try #require(Environment.shared(path: self.directory.data))
        store.core.readFailed(LMDBError(.corrupted, operation: "test"), with: environment)
        await store.flushed()
        await store.put(cacheKey("a"), [1])
        #expect(store.groupInvalidation(of: [1, 2, 3]) == time)
        await store.closed()
        store = try self.world.open(self.directory)
        #expect(store.groupInvalidation(of: [1, 2, 3]) == time)
        await store.closed()
    }

    @Test("that was deleted is noticed with the next commit, and a new one is made")
    func deleted() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(100_000))
        let isUnlinked = unsafe unlink(self.directory.data) == 0
        #expect(isUnlinked)
        // Until then the old one serves.
        let object = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(object).bytes == pattern(100_000))
        await store.put(cacheKey("b"), [1])
        await store.flushed()
        #expect(
            self.world.reported == [.lost(reason: "it was deleted while it was in use")])
        #expect(self.isVisible(await store.put(cacheKey("c"), [2])))
        #expect(await store.find(cacheKey("a")).isEmpty)
        await store.closed()
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("c")).count == 1)
        await again.closed()
        #expect(self.directory.aside.isEmpty)
    }

    @Test("that was deleted with its directory is made again, and nobody else may write to it")
    func directoryDeleted() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(100_000))
        try FileManager.default.removeItem(atPath: self.directory.path)
        await store.put(cacheKey("b"), [1])
        await store.flushed()
        #expect(self.isVisible(await store.put(cacheKey("c"), [2])))
        #expect(FileManager.default.fileExists(atPath: self.directory.data))
        let error = #expect(throws: StoreError.self) { try self.world.open(self.directory) }
        #expect(error?.code == .inUse(pid: ProcessInfo.processInfo.processIdentifier))
        await store.closed()
    }

    @Test("that another was put in the place of makes room for a new one; the other is kept")
    func replaced() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(100_000))
        try Data([1, 2, 3]).write(
            to: URL(fileURLWithPath: self.directory.data), options: .atomic)
        await store.put(cacheKey("b"), [1])
        await store.flushed()
        #expect(self.isVisible(await store.put(cacheKey("c"), [2])))
        let name = try #require(self.setAside.first)
        let kept = try Data(contentsOf: URL(fileURLWithPath: self.directory.path + "/" + name))
        #expect(Array(kept) == [1, 2, 3])
        await store.closed()
    }

    @Test("that LMDB has given up is opened again, and what it holds is there")
    func panicked() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(100_000))
        let observer = Observer()
        var sink = store.store(
            storedHead(), for: cacheKey("half"), length: nil, replacing: [], observer: observer)
        sink?.write(ByteBuffer(bytes: pattern(300_000)))
        await observer.wrote(260_000)
        let before = try #require(Environment.shared(path: self.directory.data))
        store.core.readFailed(LMDBError(.panic, operation: "test"), with: before)
        await store.flushed()
        #expect(await observer.end() == .abandoned(.storeFailed))
        sink = nil
        let after = try #require(Environment.shared(path: self.directory.data))
        #expect(after !== before)
        let object = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(object).bytes == pattern(100_000))
        #expect(self.isVisible(await store.put(cacheKey("b"), [1])))
        let inspector = try DiskInspector(directory: self.directory.path)
        for _ in 0..<100 where try inspector.statistics().garbage > 0 { await store.flushed() }
        #expect(try inspector.statistics().pending == 0)
        #expect(try inspector.statistics().garbage == 0)
        #expect(self.world.reported.isEmpty)
        await store.closed()
    }

    @Test("that LMDB has given up while somebody reads is opened again when that has ended")
    func panickedBehindReader() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(100_000))
        let environment = try #require(Environment.shared(path: self.directory.data))
        let reader = await HeldReader.begin(on: environment)
        store.core.readFailed(LMDBError(.panic, operation: "test"), with: environment)
        await store.flushed()
        #expect(await store.put(cacheKey("b"), [1]) == nil)
        await reader.end()
        self.world.now.withLock { $0 = $0 + .seconds(11) }
        #expect(self.isVisible(await store.put(cacheKey("b"), [1])))
        #expect(await store.find(cacheKey("a")).count == 1)
        #expect(self.world.reported.count == 2)
        #expect(self.world.reported.last == .recovered)
        await store.closed()
    }

    @Test("leaves the memory tier above it with what it has, and nothing names a wrong response")
    func tiers() async throws {
        let disk = try self.world.open(self.directory)
        let tiers = TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))), disk: disk)
        func put(_ name: String, _ body: [UInt8]) async throws {
            let observer = Observer()
            let sink = try #require(
                tiers.store(
                    storedHead(), for: cacheKey(name), length: nil, replacing: [],
                    observer: observer))
            sink.write(ByteBuffer(bytes: body))
            sink.commit(trailers: Fields())
            _ = await observer.end()
        }
        func find(_ name: String) async -> [StoredObject] {
            await withCheckedContinuation { continuation in
                tiers.lookup(cacheKey(name)) { continuation.resume(returning: $0) }
            }
        }
        try await put("a", pattern(1000))
        await disk.flushed()
        let environment = try #require(Environment.shared(path: self.directory.data))
        disk.core.readFailed(LMDBError(.corrupted, operation: "test"), with: environment)
        await disk.flushed()
        try await put("b", pattern(1000, seed: 2))
        let a = try #require(await find("a").first)
        #expect(await collect(a.body.reader(range: 0..<1000)).bytes == pattern(1000))
        // Its name below is of the old file, and no other response has it in the new one.
        tiers.noteUse(a.id, of: a.key, at: Timestamp(seconds: 1_700_000_001))
        tiers.update(a.id, of: a.key, head: storedHead("newer"))
        await withCheckedContinuation { done in
            tiers.remove(a.key, ids: [a.id]) { _ in done.resume() }
        }
        await disk.flushed()
        #expect(await find("a").isEmpty)
        let b = try #require(await find("b").first)
        #expect(b.head == storedHead())
        #expect(await disk.find(cacheKey("b")).count == 1)
        #expect(await disk.find(cacheKey("a")).isEmpty)
        await withCheckedContinuation { done in tiers.close { done.resume() } }
    }
}

@Suite("A file that ends the process that opens it", .timeLimit(.minutes(10)))
struct EarlyEndTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func note(_ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.directory.path + "/cache.lock"))
    }

    @Test(
        "is set aside though it looks sound when it has done so 32 times in a row, and not before",
        arguments: [(1, false), (8, false), (31, false), (32, true), (33, true)])
    func limit(_ ends: Int, isSetAside: Bool) async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        try self.note("4711\nopened \(ends)\n")
        store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("a")).isEmpty == isSetAside)
        #expect(self.directory.aside.count == (isSetAside ? 1 : 0))
        await store.closed()
    }

    @Test("is looked at whole after three, and set aside where a page deep in it is ruined")
    func ruinedDeep() async throws {
        var store = try self.world.open(self.directory)
        for i in 0..<300 { await store.put(cacheKey("\(i)"), [UInt8(i % 256)]) }
        await store.closed()
        // Every leaf but the roots, which each start looks at.
        let data = try Data(contentsOf: URL(fileURLWithPath: self.directory.data))
        let root = try self.directory.rootPage()
        for page in 2..<data.count / 4096 where page != root {
            let flags = data[page * 4096 + 10]
            let isFreeRoot = [80, 4096 + 80].contains { Int(data[$0]) == page }
            if flags == 2, !isFreeRoot {
                try self.directory.overwrite(pattern(4080), at: page * 4096 + 16)
            }
        }
        try self.note("4711\nopened 3\n")
        store = try self.world.open(self.directory)
        #expect(self.directory.aside.count == 1)
        await store.put(cacheKey("new"), [1])
        #expect(await store.find(cacheKey("new")).count == 1)
        await store.closed()
    }

    @Test(
        "is counted by the text of the lock alone",
        arguments: [
            ("", 0), ("4711\n", 0), ("4711\nsteady\n", 0), ("4711\nclosed\n", 0),
            ("4711\nopened 3\n", 3), ("4711\nopened -3\n", 0), ("4711\nopened x\n", 0),
            ("4711\nopened 99999999999999999999999\n", 0), ("\n\n\n", 0), ("opened 3\n", 0),
        ])
    func texts(_ text: String, _ count: Int) {
        #expect(WriterLock.earlyEnds(Array(text.utf8)) == count)
    }

    @Test("does not count what was ended before the file was opened, however it ended")
    func endedEarlier() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        try self.note("4711\nopened 3\n")
        let configuration = DiskConfiguration(
            directory: self.directory.path, capacity: .mebibytes(64))
        var seen: [String?] = []
        let error = #expect(throws: StoreError.self) {
            _ = try DiskStore.open(
                configuration, clock: { Timestamp(seconds: 1_700_000_000) },
                mayGoOn: {
                    // Whoever is killed now leaves this.
                    seen.append(self.directory.writerLockText)
                    return false
                }, report: { _ in })
        }
        #expect(error?.code == .cancelled)
        #expect(seen == ["\(getpid())\nopened 3\n"])
        #expect(self.directory.writerLockText == "4711\nopened 3\n")
        #expect(self.directory.aside.isEmpty)
    }

    @Test("is told from one in which nothing is stored: what is done with it ends the count")
    func used() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        try self.note("4711\nopened 5\n")
        store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("a")).count == 1)
        #expect(self.directory.writerLockText == "\(getpid())\nopened 6\n")
        // As at the end of a process.
        await store.flushed()
        #expect(self.directory.writerLockText == "\(getpid())\nsteady\n")
        await store.closed()
    }

    @Test("is told from one whose uses were written")
    func usesWritten() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        try self.note("4711\nopened 5\n")
        store = try self.world.open(self.directory) { $0.useFlushInterval = .milliseconds(1) }
        let object = try #require(await store.find(cacheKey("a")).first)
        store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 1_700_000_001))
        // Before its age alone would do.
        let limit = ContinuousClock.now + .seconds(9)
        while self.directory.writerLockText != "\(getpid())\nsteady\n" {
            try #require(ContinuousClock.now < limit)
            await Task.yield()
        }
        await store.closed()
    }

    @Test("is told from one that is used: a stored response, or a clean end, ends the count")
    func counted() async throws {
        let pid = getpid()
        try self.note("4711\nopened 5\n")
        let store = try self.world.open(self.directory)
        #expect(self.directory.writerLockText == "\(pid)\nopened 6\n")
        await store.put(cacheKey("a"), [1])
        await store.flushed()
        #expect(self.directory.writerLockText == "\(pid)\nsteady\n")
        await store.closed()
        #expect(self.directory.writerLockText == "\(pid)\nclosed\n")
    }
}
