import Foundation
import Glibc
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("Names that somebody removes under a running store", .timeLimit(.minutes(10)))
struct LostNameTests {
    private let directory: TemporaryDirectory
    private let files: DiskFiles
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
        self.files = DiskFiles(directory: self.directory.path)
    }

    private func isVisible(_ outcome: SinkOutcome?) -> Bool {
        if case .visible = outcome { true } else { false }
    }

    private func remove(_ path: String) throws {
        let isRemoved = unsafe unlink(path) == 0
        try #require(isRemoved)
    }

    /// Why files were set aside.
    private var reasons: [String] {
        self.world.reported.compactMap { event in
            if case .setAside(_, let reason) = event { reason } else { nil }
        }
    }

    @Test("the lock is made anew where nobody else has it")
    func lock() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        try self.remove(self.files.writerLock)
        #expect(self.isVisible(await store.put(cacheKey("b"), pattern(10_000))))
        await store.flushed()
        #expect(self.directory.writerLockText == "\(getpid())\nsteady\n")
        let error = #expect(throws: StoreError.self) { try WriterLock.acquire(self.files) }
        #expect(error?.code == .inUse(pid: getpid()))
        for name in ["a", "b"] { #expect(await store.find(cacheKey(name)).count == 1) }
        #expect(self.world.reported.isEmpty)
        await store.closed()
    }

    @Test("nothing is stored while another process has the lock, and all goes on when it has not")
    func lockedOut() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        try self.remove(self.files.writerLock)
        let other = try WriterLock.acquire(self.files)
        await store.put(cacheKey("b"), pattern(10_000))
        await store.flushed()
        for _ in 0..<3 {
            #expect(!self.isVisible(await store.put(cacheKey("c"), [1])))
            self.world.now.withLock { $0 = $0 + .seconds(400) }
        }
        let told = self.world.reported.filter { if case .failed = $0 { true } else { false } }
        #expect(told.count == 1)
        #expect(self.world.reported.count == 1)
        #expect(await store.find(cacheKey("a")).count == 1)
        other.release()
        self.world.now.withLock { $0 = $0 + .seconds(400) }
        await store.put(cacheKey("d"), [1])
        #expect(self.isVisible(await store.put(cacheKey("d"), [1])))
        for name in ["a", "b"] { #expect(await store.find(cacheKey(name)).count == 1) }
        #expect(self.world.reported.last == .recovered)
        #expect(self.directory.aside.isEmpty)
        await store.closed()
    }

    @Test("a file is given up where who had the lock meanwhile owes removals")
    func owed() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        try self.remove(self.files.writerLock)
        #expect(RemovalNote.write(besideFileIn: self.directory.path) == .written)
        await store.put(cacheKey("b"), pattern(10_000))
        await store.flushed()
        #expect(await store.find(cacheKey("a")).isEmpty)
        #expect(self.directory.aside.count == 1)
        #expect(self.isVisible(await store.put(cacheKey("c"), [1])))
        await store.closed()
    }

    @Test("a file to which another process wrote is given up, and nothing of it served wrong")
    func foreignStore() async throws {
        let store = try self.world.open(self.directory)
        func body(_ name: String) -> [UInt8] {
            pattern(30_000, seed: UInt64(name.utf8.reduce(7) { $0 &* 31 &+ Int($1) }))
        }
        for i in 0..<5 { await store.put(cacheKey("a\(i)"), body("a\(i)")) }
        try self.remove(self.files.writerLock)
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let other = try DiskStore.open(
                DiskConfiguration(directory: path, capacity: .mebibytes(64)),
                clock: { Timestamp(seconds: 1_700_000_000) }, report: { _ in })
            for i in 0..<20 {
                let name = "b\(i)"
                let seed = UInt64(name.utf8.reduce(7) { $0 &* 31 &+ Int($1) })
                await other.put(cacheKey(name), pattern(30_000, seed: seed))
            }
            await other.closed()
            exit(7)
        }
        for i in 5..<25 { await store.put(cacheKey("a\(i)"), body("a\(i)")) }
        var found = 0
        for name in (0..<25).flatMap({ ["a\($0)", "b\($0)"] }) {
            for object in await store.find(cacheKey(name)) {
                found += 1
                #expect(await store.body(object).bytes == body(name), "\(name)")
            }
        }
        #expect(found > 10)
        #expect(self.reasons == ["damaged: another process has written to it"])
        await store.closed()
    }

    @Test("the table of readers is made anew, and others read the file as before")
    func readerTable() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<20 { await store.put(cacheKey("\(i)"), pattern(10_000)) }
        try self.remove(self.files.readerTable)
        await store.put(cacheKey("b"), pattern(10_000))
        await store.flushed()
        #expect(try store.core.environment.isReaderTable(at: self.files.readerTable))
        #expect(store.statistics().disk?.objects == 21)
        let writing = Task {
            for i in 0..<50 { await store.put(cacheKey("more\(i)"), pattern(30_000)) }
        }
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            for _ in 0..<20 {
                let inspector = try DiskInspector(directory: path)
                guard try inspector.statistics().objects >= 21 else { exit(1) }
            }
            exit(7)
        }
        await writing.value
        #expect(await store.find(cacheKey("7")).count == 1)
        #expect(self.world.reported.isEmpty)
        await store.closed()
    }
}
