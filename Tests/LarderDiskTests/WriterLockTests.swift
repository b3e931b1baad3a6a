import Foundation
import LarderLMDB
import Testing

@testable import LarderDisk

@Suite("The right to write", .timeLimit(.minutes(10)))
struct WriterLockTests {
    private let directory: TemporaryDirectory
    private let files: DiskFiles
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
        self.files = DiskFiles(directory: self.directory.path)
    }

    @Test("is kept from nobody by those who ask whose it is")
    func looks() async throws {
        try await self.world.open(self.directory).closed()
        let isOver = Flag()
        let ended = AsyncStream<Int>.makeStream()
        let thread = Thread { [files = self.files] in
            var looks = 0
            while !isOver.isSet {
                _ = WriterLock.holder(of: files)
                looks += 1
            }
            ended.continuation.yield(looks)
        }
        thread.start()
        do {
            defer { isOver.set() }
            for _ in 0..<1_000 { try WriterLock.acquire(self.files).release() }
            // Each is a few commits, with the disk to be waited for.
            for _ in 0..<32 { try await self.world.open(self.directory).closed() }
        }
        let looks = await ended.stream.first { _ in true }
        #expect(looks ?? 0 > 0)
    }

    /// Opens the lock's file as another process does.
    private func opened(_ flags: Int32) throws -> Int32 {
        try OwnPlace.open(self.files.writerLock, flags)
    }

    @Test("is had while somebody looks by flock(2), and is not to be had twice then, either")
    func shared() throws {
        let look = try self.opened(O_RDWR | O_CREAT)
        defer { _ = close(look) }
        let older = try self.opened(O_RDWR)
        defer { _ = close(older) }
        try #require(flock(look, LOCK_SH | LOCK_NB) == 0)
        let lock = try WriterLock.acquire(self.files)
        try #require(flock(look, LOCK_UN) == 0)
        #expect(WriterLock.holder(of: self.files) == getpid())
        #expect(flock(older, LOCK_EX | LOCK_NB) != 0)
        let error = #expect(throws: StoreError.self) { try WriterLock.acquire(self.files) }
        #expect(error?.code == .inUse(pid: getpid()))
        lock.release()
        #expect(WriterLock.holder(of: self.files) == nil)
        #expect(flock(older, LOCK_EX | LOCK_NB) == 0)
    }

    @Test("is said to be held for a look by who only looks, and not by who takes it after that")
    func checking() throws {
        let left = "4711\nopened 3\nowed\n"
        try Data(left.utf8).write(to: URL(fileURLWithPath: self.files.writerLock))
        let look = try WriterLock.acquire(self.files)
        look.noteChecking()
        let error = #expect(throws: StoreError.self) { try WriterLock.acquire(self.files) }
        #expect(error?.code == .inUse(pid: getpid()))
        let ending = "looks at all of this cache, and keeps writers away meanwhile"
        #expect(error?.cause == "process \(getpid()) \(ending)")
        // As where it was killed.
        look.release()
        let lock = try WriterLock.acquire(self.files)
        #expect(lock.earlyEnds == 3)
        #expect(lock.wasOwed)
        let other = #expect(throws: StoreError.self) { try WriterLock.acquire(self.files) }
        #expect(other?.cause == "process \(getpid()) writes to this cache")
        lock.release()
        look.withdraw()
        #expect(self.directory.writerLockText == left)
    }

    @Test("is seen by older releases, which ask for flock(2) alone")
    func seen() throws {
        let lock = try WriterLock.acquire(self.files)
        let older = try self.opened(O_RDONLY)
        defer { _ = close(older) }
        #expect(flock(older, LOCK_SH | LOCK_NB) != 0)
        #expect(flock(older, LOCK_EX | LOCK_NB) != 0)
        lock.release()
        #expect(flock(older, LOCK_EX | LOCK_NB) == 0)
    }

    @Test("is left to a writer of an older release, who has flock(2) alone")
    func older() throws {
        try Data("4711\nsteady\n".utf8).write(to: URL(fileURLWithPath: self.files.writerLock))
        let older = try self.opened(O_RDWR)
        defer { _ = close(older) }
        try #require(flock(older, LOCK_EX | LOCK_NB) == 0)
        #expect(WriterLock.holder(of: self.files) == 4711)
        let error = #expect(throws: StoreError.self) { try WriterLock.acquire(self.files) }
        #expect(error?.code == .inUse(pid: 4711))
        try #require(flock(older, LOCK_UN) == 0)
        #expect(WriterLock.holder(of: self.files) == nil)
        try WriterLock.acquire(self.files).release()
    }
}
