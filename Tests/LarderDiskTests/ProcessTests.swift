import Foundation
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("One writer, many readers", .timeLimit(.minutes(10)))
struct ProcessTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test("a second writer is refused with the pid of the first")
    func secondWriter() async throws {
        let store = try self.world.open(self.directory)
        let error = #expect(throws: StoreError.self) { try self.world.open(self.directory) }
        #expect(error?.code == .inUse(pid: ProcessInfo.processInfo.processIdentifier))
        await store.closed()
        try await self.world.open(self.directory).closed()
    }

    @Test("a second process is refused with the pid of the first")
    func secondProcess() async throws {
        let store = try self.world.open(self.directory)
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let configuration = DiskConfiguration(directory: path, capacity: .mebibytes(64))
            do {
                _ = try DiskStore.open(
                    configuration, clock: { Timestamp(seconds: 0) }, report: { _ in })
            } catch let error as StoreError {
                exit(error.code == .inUse(pid: getppid()) ? 7 : 8)
            }
        }
        await store.closed()
    }

    @Test("a process that is killed keeps what it committed, and leaves nothing else")
    func killed() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let configuration = DiskConfiguration(directory: path, capacity: .mebibytes(64))
            let store = try DiskStore.open(
                configuration, clock: { Timestamp(seconds: 0) }, report: { _ in })
            for i in 0..<20 {
                await store.put(cacheKey("\(i)"), pattern(i * 10_000, seed: UInt64(i)))
            }
            let observer = Observer()
            let sink = store.store(
                storedHead(), for: cacheKey("torn"), length: nil, replacing: [],
                observer: observer)
            sink?.write(ByteBuffer(bytes: pattern(1_000_000)))
            await observer.wrote(900_000)
            kill(getpid(), SIGKILL)
        }
        let store = try self.world.open(self.directory)
        for i in 0..<20 {
            let object = try #require(await store.find(cacheKey("\(i)")).first)
            #expect(await store.body(object).bytes == pattern(i * 10_000, seed: UInt64(i)))
        }
        #expect(await store.find(cacheKey("torn")).isEmpty)
        let inspector = try DiskInspector(directory: self.directory.path)
        var left = try inspector.statistics()
        for _ in 0..<100 where left.pending > 0 || left.garbage > 0 {
            await store.flushed()
            left = try inspector.statistics()
        }
        #expect(left.pending == 0)
        #expect(left.garbage == 0)
        #expect(self.world.reported.isEmpty)
        await store.closed()
    }

    @Test("another process reads all of it while it is being written to")
    func otherReader() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<300 { await store.put(cacheKey("\(i)"), pattern(1000, seed: UInt64(i))) }
        let writing = Task {
            for i in 0..<300 { await store.put(cacheKey("more\(i)"), pattern(70_000)) }
        }
        let path = self.directory.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let inspector = try DiskInspector(directory: path)
            var count = 0
            for _ in 0..<3 {
                count = 0
                try inspector.forEachObject { object in
                    var bytes: [UInt8] = []
                    try inspector.readBody(of: object) { bytes += $0.copied }
                    #expect(UInt64(bytes.count) == object.bodyLength)
                    count += 1
                    return true
                }
            }
            guard count >= 300, try inspector.statistics().writer == getppid() else { exit(1) }
        }
        await writing.value
        await store.closed()
    }

    @Test("an inspector sees what is stored, with the store open beside it and after its end")
    func inspector() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<600 { await store.put(cacheKey("\(i)"), [UInt8(i % 256)]) }
        await store.put(cacheKey("big"), pattern(2_000_000), head: storedHead("b"))
        for isOpen in [true, false] {
            if !isOpen { await store.closed() }
            let inspector = try DiskInspector(directory: self.directory.path)
            var seen = Set<CacheKey>()
            try inspector.forEachObject { seen.insert($0.key).inserted }
            #expect(seen.count == 601)
            var some = 0
            try inspector.forEachObject { _ in
                some += 1
                return some < 10
            }
            #expect(some == 10)
            let big = try #require(try inspector.objects(for: cacheKey("big")).first)
            #expect(big.head == storedHead("b"))
            #expect(big.segments == 31)
            var body: [UInt8] = []
            try inspector.readBody(of: big) { body += $0.copied }
            #expect(body == pattern(2_000_000))
            #expect(try inspector.objects(for: cacheKey("none")).isEmpty)
            let statistics = try inspector.statistics()
            #expect(statistics.objects == 601)
            #expect(statistics.bodyBytes == 2_000_600)
            #expect(statistics.fileBytes == self.directory.fileSize)
            #expect(statistics.usedBytes <= statistics.fileBytes)
            #expect(statistics.mapBytes == 64 << 20)
            #expect((statistics.writer != nil) == isOpen)
        }
    }

    @Test("an inspector of nothing says so")
    func nothingToInspect() throws {
        let path = self.directory.path
        let missing = #expect(throws: StoreError.self) { try DiskInspector(directory: path) }
        #expect(missing?.code == .missing)
        try Data(pattern(10_000)).write(to: URL(fileURLWithPath: self.directory.data))
        let noise = #expect(throws: StoreError.self) { try DiskInspector(directory: path) }
        #expect(noise?.code == .damaged)
    }
}

@Suite("A disk that cannot be used", .timeLimit(.minutes(10)))
struct FailingDiskTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func error(_ path: String, capacity: ByteCount = .mebibytes(64)) -> StoreError? {
        #expect(throws: StoreError.self) {
            try DiskStore.open(
                DiskConfiguration(directory: path, capacity: capacity),
                clock: { Timestamp(seconds: 0) }, report: { _ in })
        }
    }

    @Test("is said with its cause and a remedy")
    func unusable() throws {
        let file = self.directory.path + "/file"
        try Data([1]).write(to: URL(fileURLWithPath: file))
        for path in [file, file + "/below", "/proc/larder", "/proc/sys/larder/x"] {
            let error = try #require(self.error(path))
            #expect(!error.cause.isEmpty)
            #expect(!error.remedy.isEmpty)
            #expect([.missing, .notWritable, .failed].contains(error.code), "\(error)")
        }
        #expect(
            self.error(self.directory.path, capacity: .kibibytes(64))?.code
                == .invalidConfiguration)
    }

    @Test("makes its directories readable by their user alone")
    func modes() async throws {
        let nested = self.directory.path + "/a/b"
        let store = try DiskStore.open(
            DiskConfiguration(directory: nested, capacity: .mebibytes(1)),
            clock: { Timestamp(seconds: 0) }, report: { _ in })
        await store.closed()
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(self.directory.path + "/a") == 0o700)
        #expect(try mode(nested) == 0o700)
        #expect(try mode(nested + "/cache.mdb") == 0o600)
        #expect(try mode(nested + "/cache.lock") == 0o600)
    }

    @Test("is left alone for a while, said once, and tried again")
    func backOff() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(1))
        let environment = try #require(Environment.shared(path: self.directory.data))
        // A reader that does not end keeps all that was freed from being used again.
        try await store.fillBehindReader(environment) {
            self.world.reported.contains { if case .failed = $0 { true } else { false } }
        }
        let failed = self.world.reported.filter { if case .failed = $0 { true } else { false } }
        #expect(failed.count == 1)
        #expect(store.statistics().storeFailures >= 1)
        #expect(await store.put(cacheKey("early"), [1]) == nil)
        self.world.now.withLock { $0 = $0 + .seconds(11) }
        var outcome = await store.put(cacheKey("late"), [1])
        // The reader is still there: what the writer does of itself may fail between a response and its
        // commit, and begin another pause. Then that commit proves nothing.
        for _ in 0..<20
        where outcome == nil || outcome == .abandoned(.noSpace)
            || self.world.reported.last != .recovered
        {
            self.world.now.withLock { $0 = $0 + .seconds(11) }
            outcome = await store.put(cacheKey("late"), [1])
        }
        guard case .visible = outcome else {
            Issue.record("never recovered: \(String(describing: outcome))")
            return
        }
        #expect(self.world.reported.last == .recovered)
        await store.closed()
    }
}

extension DiskStore {
    /// Stores until the disk has failed for want of room, while a read transaction is open.
    ///
    /// Where eviction is slow, who writes is turned away before it comes to that.
    func fillBehindReader(
        _ environment: Environment, until hasFailed: () -> Bool
    ) async throws {
        let holds = AsyncStream<Void>.makeStream()
        let release = DispatchSemaphore(value: 0)
        let reader = Thread {
            _ = try? environment.read { (_) throws(LMDBError) in
                holds.continuation.yield()
                release.wait()
            }
        }
        reader.start()
        var begun = holds.stream.makeAsyncIterator()
        _ = await begun.next()
        defer { release.signal() }
        for i in 0..<2000 {
            let outcome = await self.put(cacheKey("fill\(i)"), pattern(50_000))
            if hasFailed() { return }
            if outcome == .abandoned(.noSpace) { continue }
            guard case .visible = outcome else {
                Issue.record("\(String(describing: outcome))")
                return
            }
        }
        Issue.record("never full")
    }
}
