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

extension DiskStore {
    func compacted(
        _ progress: @escaping @Sendable (UInt64, UInt64) -> Void = { _, _ in }
    ) async throws -> CompactionReport {
        try await withCheckedContinuation { continuation in
            self.compact(progress: progress) { continuation.resume(returning: $0) }
        }.get()
    }
}

@Suite("Compaction", .timeLimit(.minutes(10)))
struct CompactionTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Stores bodies of many sizes, and removes three of four.
    private func fill(_ store: DiskStore) async throws {
        for i in 0..<120 as Range<Int> {
            await store.put(
                cacheKey("\(i)"), pattern(i * 2000, seed: UInt64(i)), head: storedHead("\(i)"))
        }
        for i in 0..<120 where i % 4 != 0 { _ = await store.removed(cacheKey("\(i)")) }
    }

    private func check(_ store: DiskStore) async throws {
        for i in 0..<120 as Range<Int> {
            let found = await store.find(cacheKey("\(i)"))
            guard i % 4 == 0 else {
                #expect(found.isEmpty)
                continue
            }
            let object = try #require(found.first)
            #expect(object.head == storedHead("\(i)"))
            #expect(await store.body(object).bytes == pattern(i * 2000, seed: UInt64(i)))
        }
    }

    private var names: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: self.directory.path).sorted()
        }
    }

    @Test("makes the file as small as what it holds, which is all there with the same names")
    func smaller() async throws {
        var store = try self.world.open(self.directory)
        try await self.fill(store)
        let ids = await store.find(cacheKey("40")).map(\.id)
        let before = self.directory.fileSize
        let steps = Mutex<[(UInt64, UInt64)]>([])
        let report = try await store.compacted { done, whole in
            steps.withLock { $0.append((done, whole)) }
        }
        #expect(report.before == before)
        #expect(report.after == self.directory.fileSize)
        #expect(report.after < report.before / 2)
        let told = steps.withLock { $0 }
        #expect(!told.isEmpty && told.allSatisfy { $0.0 <= $0.1 })
        #expect(store.statistics().fileBytes == report.after)
        try await self.check(store)
        #expect(await store.find(cacheKey("40")).map(\.id) == ids)
        let mode = try FileManager.default.attributesOfItem(atPath: self.directory.data)
        #expect(mode[.posixPermissions] as? Int == 0o600)
        #expect(try self.names == ["cache.lock", "cache.mdb", "cache.mdb-lock"])
        guard case .visible(let id) = await store.put(cacheKey("new"), [1]) else {
            Issue.record("nothing is stored after it")
            return
        }
        #expect(ids.allSatisfy { $0 < id })
        // A second one finds nothing to gain.
        let again = try await store.compacted()
        #expect(again.after <= report.after + 65_536)
        await store.closed()
        store = try self.world.open(self.directory)
        try await self.check(store)
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test("has addresses for its copy, though several caches may grow as large as can be")
    func largest() async throws {
        var stores: [(store: DiskStore, directory: TemporaryDirectory)] = []
        for _ in 0..<4 {
            let directory = try TemporaryDirectory()
            let store = try self.world.open(
                directory, capacity: DiskConfiguration.maximumCapacity)
            stores.append((store, directory))
        }
        for (store, _) in stores {
            await store.put(cacheKey("a"), pattern(1_000), head: storedHead("a"))
            _ = try await store.compacted()
            let object = try #require(await store.find(cacheKey("a")).first)
            #expect(await store.body(object).bytes == pattern(1_000))
        }
        for (store, _) in stores { await store.closed() }
    }

    @Test("lets readers and sinks go on, whichever file they began with")
    func underWay() async throws {
        let store = try self.world.open(self.directory) { $0.bodyWithHead = .zero }
        await store.put(cacheKey("read"), pattern(3_000_000))
        let object = try #require(await store.find(cacheKey("read")).first)
        let reader = object.body.reader(range: 0..<3_000_000)
        let observer = Observer()
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey("written"), length: nil, replacing: [],
                observer: observer))
        sink.write(ByteBuffer(bytes: pattern(300_000)[..<200_000]))
        await observer.wrote(190_000)
        let lagging = try #require(sink.reader(from: 0))
        _ = try await store.compacted()
        sink.write(ByteBuffer(bytes: pattern(300_000)[200_000...]))
        sink.commit(trailers: Fields())
        guard case .visible = await observer.end() else {
            Issue.record("the sink was broken off")
            return
        }
        let read = await collect(reader)
        #expect(read.failure == nil)
        #expect(read.bytes == pattern(3_000_000))
        #expect(await collect(lagging).bytes == Array(pattern(300_000)[..<196_536]))
        let written = try #require(await store.find(cacheKey("written")).first)
        #expect(await store.body(written).bytes == pattern(300_000))
        await store.closed()
    }

    @Test("goes on under readers and writers that never stop, and none sees a wrong byte")
    func underLoad() async throws {
        let store = try self.world.open(self.directory)
        let bodies = (0..<40).map { pattern(50_000, seed: UInt64($0)) }
        for (i, body) in bodies.enumerated() { await store.put(cacheKey("\(i)"), body) }
        let isOver = Flag()
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<2 {
                group.addTask {
                    var i = lane
                    while !isOver.isSet {
                        i = (i + 7) % 40
                        let found = await store.find(cacheKey("\(i)"))
                        guard let object = found.first else {
                            Issue.record("\(i) is not there")
                            return
                        }
                        let read = await store.body(object)
                        #expect(read.failure == nil)
                        #expect(read.bytes == bodies[i])
                        // What is read in place never waits: others need the thread, too.
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                var i = 0
                while !isOver.isSet {
                    i += 1
                    _ = await store.put(cacheKey("w\(i % 20)"), pattern(70_000))
                }
            }
            for _ in 0..<2 {
                do { _ = try await store.compacted() } catch { Issue.record("\(error)") }
            }
            isOver.set()
        }
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test("does not look as if the file had been taken away while another takes its place")
    func inPlace() async throws {
        let store = try self.world.open(self.directory)
        try await self.fill(store)
        let isOver = Flag()
        let ended = AsyncStream<Bool>.makeStream()
        let thread = Thread {
            var isInPlace = true
            while !isOver.isSet { isInPlace = store.isInPlace && isInPlace }
            ended.continuation.yield(isInPlace)
        }
        thread.start()
        for _ in 0..<10 { _ = try await store.compacted() }
        isOver.set()
        #expect(await ended.stream.first { _ in true } == true)
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test("leaves another process that reads the old file in peace, and shows it the new one")
    func otherProcess() async throws {
        let store = try self.world.open(self.directory)
        try await self.fill(store)
        let path = self.directory.path
        let reading = Task {
            _ = await #expect(processExitsWith: .success) { [path = path as String] in
                for _ in 0..<30 {
                    let inspector = try DiskInspector(directory: path)
                    var count = 0
                    try inspector.forEachObject { object in
                        try inspector.readBody(of: object) { _ in }
                        count += 1
                        return true
                    }
                    guard count >= 30 else { exit(1) }
                }
            }
        }
        for i in 0..<10 {
            _ = try await store.compacted()
            await store.put(cacheKey("more"), pattern(100_000, seed: UInt64(i)))
        }
        await reading.value
        try await self.check(store)
        await store.closed()
    }

    @Test("that was killed at any point leaves a whole file, and leftovers go at the next start")
    func killed() async throws {
        var store = try self.world.open(self.directory)
        try await self.fill(store)
        await store.closed()
        let path = self.directory.path
        for step in 0..<3 {
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = path as String, step = step as Int] in
                let store = try DiskStore.open(
                    DiskConfiguration(directory: path, capacity: .mebibytes(64)),
                    clock: { Timestamp(seconds: 0) }, report: { _ in })
                switch step {
                case 0:
                    store.compact(progress: { _, _ in kill(getpid(), SIGKILL) }) { _ in }
                    await store.flushed()
                case 1:
                    // Between the two names.
                    let files = DiskFiles(directory: path)
                    _ = try OpenedCache.makeNext(
                        files, store.core.configuration, meta: nil)
                    _ = unsafe rename(files.nextReaderTable, files.readerTable)
                default:
                    _ = try await store.compacted()
                }
                kill(getpid(), SIGKILL)
                await store.flushed()
            }
            store = try self.world.open(self.directory)
            try await self.check(store)
            #expect(try self.names == ["cache.lock", "cache.mdb", "cache.mdb-lock"])
            await store.closed()
        }
        #expect(self.world.reported.isEmpty)
    }

    @Test("is broken off by the end of the store, which loses nothing")
    func closing() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(256))
        for i in 0..<60 { await store.put(cacheKey("\(i)"), pattern(1 << 20)) }
        let first = AsyncStream<Void>.makeStream()
        let failure = Mutex<StoreError?>(nil)
        store.compact { _, _ in
            first.continuation.yield()
        } completion: { result in
            if case .failure(let error) = result { failure.withLock { $0 = error } }
        }
        var steps = first.stream.makeAsyncIterator()
        _ = await steps.next()
        await store.closed()
        // It may have come to its end before.
        if let error = failure.withLock({ $0 }) { #expect(error.code == .closed) }
        #expect(try self.names == ["cache.lock", "cache.mdb", "cache.mdb-lock"])
        await #expect(throws: StoreError.self) { try await store.compacted() }
        store = try self.world.open(self.directory, capacity: .mebibytes(256))
        for i in 0..<60 { #expect(await store.find(cacheKey("\(i)")).count == 1) }
        await store.closed()
    }

    @Test("of a file that turns out to be damaged sets it aside")
    func damaged() async throws {
        let store = try self.world.open(self.directory)
        try await self.fill(store)
        let page = try self.directory.rootPage()
        try self.directory.overwrite([UInt8](repeating: 0, count: 4096), at: page * 4096)
        await #expect(throws: StoreError.self) { try await store.compacted() }
        await store.flushed()
        #expect(self.directory.aside.count == 1)
        guard case .visible = await store.put(cacheKey("new"), [1]) else {
            Issue.record("\(self.world.reported)")
            return
        }
        await store.closed()
        let names = try self.names
        #expect(!names.contains("cache.mdb.new"))
    }

    @Test("is not waited for by lookups of what is about to be committed")
    func lookups() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(256))
        for i in 0..<40 { await store.put(cacheKey("\(i)"), pattern(1 << 20)) }
        let hold = DispatchSemaphore(value: 0)
        let first = AsyncStream<Void>.makeStream()
        let isHeld = Flag()
        let compaction = Task {
            try await store.compacted { _, _ in
                if isHeld.isSet { return }
                isHeld.set()
                first.continuation.yield()
                hold.wait()
            }
        }
        var steps = first.stream.makeAsyncIterator()
        _ = await steps.next()
        let observer = Observer()
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey("landing"), length: nil, replacing: [],
                observer: observer))
        sink.write(ByteBuffer(bytes: [1, 2, 3]))
        sink.commit(trailers: Fields())
        #expect(await store.find(cacheKey("landing")).isEmpty)
        #expect(await store.find(cacheKey("7")).count == 1)
        hold.signal()
        _ = try await compaction.value
        #expect(await store.find(cacheKey("landing")).count == 1)
        await store.closed()
    }
}
