import Foundation
import Glibc
import LarderLMDB
import LarderStore
import Testing

@testable import LarderDisk

/// What another process does to the files between two steps of an opening.
struct Interleaving: Sendable, Codable, CustomTestStringConvertible {
    /// Before which steps, by their number: the data file goes away, where that happens at all; the
    /// table of readers gets its new name; the data file does.
    var away: Int?
    var table: Int
    var data: Int

    var testDescription: String {
        let steps = InspectedFile.Step.allCases
        let away = self.away.map { "away before \(steps[$0]), " } ?? ""
        return away + "table before \(steps[self.table]), file before \(steps[self.data])"
    }

    static var all: [Interleaving] {
        let steps = InspectedFile.Step.allCases.indices
        let pairs = steps.flatMap { table in
            steps[table...].map { Interleaving(table: table, data: $0) }
        }
        // As far as the file is there at all when it is opened.
        let around = steps.flatMap { away in
            steps[away...].map { Interleaving(away: away, table: $0, data: steps.upperBound - 1) }
        }
        return pairs + around
    }

    /// Does what is due before a step.
    func perform(before step: InspectedFile.Step, _ files: DiskFiles) -> Bool {
        let number = InspectedFile.Step.allCases.firstIndex(of: step)
        var isDone = true
        if number == self.away {
            isDone = unsafe rename(files.data, files.data + ".damaged-7") == 0
        }
        if number == self.table {
            isDone = unsafe rename(files.nextReaderTable, files.readerTable) == 0 && isDone
        }
        if number == self.data {
            isDone = unsafe rename(files.next, files.data) == 0 && isDone
        }
        return isDone
    }
}

@Suite("Opening a cache to look into it", .timeLimit(.minutes(10)))
struct InspectedFileTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test(
        "finds the new file whole, whenever its writer puts it in the old one's place",
        arguments: Interleaving.all)
    func exchanged(_ interleaving: Interleaving) async throws {
        // This process is the writer, which has both files open while it exchanges them.
        let store = try self.world.open(self.directory)
        for i in 0..<5 { await store.put(cacheKey("\(i)"), pattern(100)) }
        let files = DiskFiles(directory: self.directory.path)
        let (next, schema) = try OpenedCache.makeNext(
            files, store.core.configuration, meta: StoreMeta(seed: 4711))
        // Its transactions are counted from another number on.
        for _ in 0..<20 as Range<Int> {
            try next.write { (transaction) throws(LMDBError) in
                try schema.writeMeta(StoreMeta(seed: 4711), transaction)
            }
        }
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) {
            [path = path as String, interleaving = interleaving as Interleaving] in
            var met = Set<Int>()
            let inspector: DiskInspector
            do {
                inspector = try DiskInspector(directory: path) { step in
                    guard met.insert(step.hashValue).inserted else { return }
                    if !interleaving.perform(before: step, DiskFiles(directory: path)) { exit(2) }
                }
            } catch {
                exit(3)
            }
            guard inspector.seed == 4711 else { exit(4) }
            guard try inspector.list(from: .start).objects.isEmpty else { exit(5) }
            guard try inspector.environment.isFile(at: path + "/cache.mdb") else { exit(6) }
            exit(7)
        }
        next.close()
        await store.closed()
    }

    @Test("waits until no exchange is under way before it compares the names")
    func comparison() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10))
        await store.closed()
        let files = DiskFiles(directory: self.directory.path)
        let descriptor = unsafe open(files.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { _ = close(descriptor) }
        let isOver = Flag()
        let began = AsyncStream<Bool>.makeStream()
        let opened = AsyncStream<Bool>.makeStream()
        let thread = Thread {
            let file = try? InspectedFile.open(files) { step in
                guard step == .compare else { return }
                began.continuation.yield(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            }
            opened.continuation.yield(isOver.isSet && file != nil)
            file?.environment.close()
        }
        thread.start()
        #expect(await began.stream.first { _ in true } == true)
        isOver.set()
        _ = flock(descriptor, LOCK_UN)
        #expect(await opened.stream.first { _ in true } == true)
    }

    @Test("looks again at what looks unsound, and not for ever", arguments: [0, 1, 7, 8])
    func unsound(_ count: Int) async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10))
        await store.closed()
        let files = DiskFiles(directory: self.directory.path)
        let data = URL(fileURLWithPath: files.data)
        let sound = try Data(contentsOf: data)
        func write(_ bytes: Data) throws {
            let handle = try FileHandle(forWritingTo: data)
            try handle.write(contentsOf: bytes)
            try handle.close()
        }
        var looks = 0
        let result = Result {
            try InspectedFile.open(files) { step in
                guard step == .names else { return }
                looks += 1
                let isSound = looks > count
                try? write(isSound ? sound.prefix(8_192) : Data(count: 8_192))
            }
        }
        switch result {
        case .success(let file):
            #expect(count < 8 && looks == count + 1)
            file.environment.close()
        case .failure: #expect(count == 8 && looks == 8)
        }
    }

    @Test("is told that a response was removed since it was listed, and not of damage")
    func removed() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.put(cacheKey("b"), pattern(10_000))
        let inspector = try DiskInspector(directory: self.directory.path)
        let objects = try inspector.list(from: .start).objects
        _ = await store.removed(cacheKey("a"))
        for object in objects {
            guard object.key == cacheKey("a") else {
                try inspector.readBody(of: object) { _ in }
                continue
            }
            let error = #expect(throws: StoreError.self) {
                try inspector.readBody(of: object) { _ in }
            }
            #expect(error?.code == .closed)
            #expect(error?.cause == "the entry was removed meanwhile")
        }
        await store.closed()
    }

    @Test("has to wait while the names are given")
    func lock() throws {
        let files = DiskFiles(directory: self.directory.path)
        for name in [files.next, files.nextReaderTable] {
            try Data("new".utf8).write(to: URL(fileURLWithPath: name))
        }
        let descriptor = unsafe open(files.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { _ = close(descriptor) }
        var isFree = true
        try files.installNext { () throws(LMDBError) in
            isFree = flock(descriptor, LOCK_SH | LOCK_NB) == 0
        }
        #expect(!isFree)
        #expect(flock(descriptor, LOCK_SH | LOCK_NB) == 0)
        // Many may look at a time, and none is held up by them.
        files.awaitExchange()
        #expect(files.named.data != nil && files.named.readerTable != nil)
    }

    @Test("waits for as long as an exchange is under way")
    func waiting() async throws {
        let files = DiskFiles(directory: self.directory.path)
        let descriptor = unsafe open(files.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { _ = close(descriptor) }
        try #require(flock(descriptor, LOCK_EX) == 0)
        let isOver = Flag()
        let began = AsyncStream<Void>.makeStream()
        let waited = AsyncStream<Bool>.makeStream()
        let thread = Thread {
            began.continuation.yield()
            files.awaitExchange()
            waited.continuation.yield(isOver.isSet)
        }
        thread.start()
        _ = await began.stream.first { _ in true }
        isOver.set()
        _ = flock(descriptor, LOCK_UN)
        #expect(await waited.stream.first { _ in true } == true)
    }
}
