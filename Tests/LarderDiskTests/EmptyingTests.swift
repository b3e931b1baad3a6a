import Dispatch
import Foundation
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("The removal of all that is stored on disk", .timeLimit(.minutes(10)))
struct EmptyingTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Has what follows come to the writer at once, as it stands still until `release` is signalled.
    private func holdWriter(of store: DiskStore) async -> DispatchSemaphore {
        let release = DispatchSemaphore(value: 0)
        let isHeld = AsyncStream<Void>.makeStream()
        store.flush {
            isHeld.continuation.yield()
            release.wait()
        }
        _ = await isHeld.stream.first { _ in true }
        return release
    }

    private func opened(_ store: DiskStore, _ name: String) throws -> (any ObjectSink, Observer) {
        let observer = Observer()
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey(name), length: nil, replacing: [], observer: observer))
        return (sink, observer)
    }

    @Test("takes an empty file, gives the room back, and lasts")
    func all() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<40 { await store.put(cacheKey("\(i)"), pattern(200_000)) }
        await store.flushed()
        let before = self.directory.fileSize
        #expect(before > 8_000_000)
        #expect(await store.purged(in: .all) == 40)
        #expect(self.directory.fileSize < 200_000)
        #expect(store.statistics().disk?.objects == 0)
        #expect(store.statistics().fileBytes == self.directory.fileSize)
        #expect(await store.find(cacheKey("7")).isEmpty)
        #expect(await store.purged(in: .all) == 0)
        await store.put(cacheKey("7"), pattern(10_000))
        let object = try #require(await store.find(cacheKey("7")).first)
        #expect(object.id.rawValue > 40, "ids are never used again")
        #expect(await store.body(object).bytes == pattern(10_000))
        await store.closed()
        #expect(self.directory.aside.isEmpty)
        #expect(self.world.reported.isEmpty)
        let again = try self.world.open(self.directory)
        #expect(again.statistics().disk?.objects == 1)
        try QueueAudit(self.directory).expectSound()
        await again.closed()
    }

    @Test("ends the pause that a full or failing file has led to")
    func pause() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.flushed()
        store.core.failed(LMDBError(.mapFull, operation: "test"))
        await store.put(cacheKey("b"), pattern(10_000))
        #expect(await store.find(cacheKey("b")).isEmpty, "it stores nothing for a while")
        #expect(await store.purged(in: .all) == 1)
        await store.put(cacheKey("b"), pattern(10_000))
        #expect(await store.find(cacheKey("b")).count == 1)
        await store.closed()
    }

    @Test("breaks off no body that is being read, however much of it is still to come")
    func readers() async throws {
        let store = try self.world.open(self.directory)
        let bytes = pattern(3_000_000)
        await store.put(cacheKey("a"), bytes)
        await store.put(cacheKey("b"), bytes)
        let begun = try #require(await store.find(cacheKey("a")).first)
        let found = try #require(await store.find(cacheKey("b")).first)
        let reader = begun.body.reader(range: 0..<3_000_000)
        // One that has not begun, and one that is made later, of what was found before.
        let identity = try FileIdentity(path: self.directory.data)
        #expect(await store.purged(in: .all) == 2)
        let second = try FileIdentity(path: self.directory.data)
        #expect(second != identity)
        await store.put(cacheKey("a"), pattern(70_000))
        // No more than one file lies without a name.
        #expect(await store.purged(in: .all) == 1)
        #expect(try FileIdentity(path: self.directory.data) == second)
        await store.put(cacheKey("a"), pattern(70_000))
        #expect(await collect(reader).bytes == bytes)
        #expect(await store.body(found).bytes == bytes)
        let new = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(new).bytes == pattern(70_000))
        #expect(store.core.file(of: found.id) !== store.core.file)
        found.body.letGo()
        #expect(store.core.file(of: found.id) === store.core.file)
        #expect(store.statistics().damaged == 0)
        await store.closed()
    }

    @Test("breaks off no body that is being read while it happens, on whatever thread")
    func meanwhile() async throws {
        let store = try self.world.open(self.directory)
        let bytes = pattern(400_000)
        let isOver = Flag()
        await withTaskGroup(of: Void.self) { group in
            for name in ["a", "b", "c"] {
                group.addTask {
                    while !isOver.isSet {
                        await store.put(cacheKey(name), bytes)
                        guard let object = await store.find(cacheKey(name)).first else { continue }
                        let read = await store.body(object)
                        #expect(read.failure == nil)
                        #expect(read.bytes == bytes)
                    }
                }
            }
            group.addTask {
                for _ in 0..<60 { _ = await store.purged(in: .all) }
                isOver.set()
            }
        }
        #expect(store.statistics().damaged == 0)
        await store.closed()
        #expect(self.world.reported.isEmpty)
        let again = try self.world.open(self.directory)
        try QueueAudit(self.directory).expectSound()
        await again.closed()
    }

    @Test("ends what was being stored, which goes on giving back what was written")
    func sinks() async throws {
        let store = try self.world.open(self.directory)
        let bytes = pattern(600_000)
        let (sink, observer) = try self.opened(store, "a")
        sink.write(ByteBuffer(bytes: bytes))
        await observer.wrote(500_000)
        let written = Int(observer.written)
        #expect(await store.purged(in: .all) == 0)
        #expect(await observer.end() == .abandoned(.removed))
        let reader = try #require(sink.reader(from: 0))
        #expect(await collect(reader).bytes == Array(bytes[..<written]))
        sink.write(ByteBuffer(bytes: bytes))
        sink.commit(trailers: Fields())
        await store.flushed()
        #expect(await store.find(cacheKey("a")).isEmpty)
        await store.closed()
        let again = try self.world.open(self.directory)
        try QueueAudit(self.directory).expectSound()
        await again.closed()
    }

    @Test("leaves what is told to be stored after it", arguments: [10, 600_000])
    func later(_ length: Int) async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        let release = await self.holdWriter(of: store)
        let (before, first) = try self.opened(store, "before")
        before.write(ByteBuffer(bytes: pattern(length)))
        let removed = AsyncStream<Int>.makeStream()
        store.removeAll(in: .all) { removed.continuation.yield($0) }
        let (after, second) = try self.opened(store, "after")
        after.write(ByteBuffer(bytes: pattern(length)))
        after.commit(trailers: Fields())
        release.signal()
        #expect(await removed.stream.first { _ in true } == 1)
        #expect(await first.end() == .abandoned(.removed))
        guard case .visible = await second.end() else {
            Issue.record("what came after it is gone")
            return
        }
        let object = try #require(await store.find(cacheKey("after")).first)
        #expect(await store.body(object).bytes == pattern(length))
        #expect(await store.find(cacheKey("before")).isEmpty)
        await store.closed()
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("after")).count == 1)
        try QueueAudit(self.directory).expectSound()
        await again.closed()
    }

    @Test("goes from one response to the next where no other file can be made")
    func withoutRoom() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<600 { await store.put(cacheKey("\(i)"), [1]) }
        try FileManager.default.createDirectory(
            atPath: self.directory.data + ".new/x", withIntermediateDirectories: true)
        let identity = try FileIdentity(path: self.directory.data)
        #expect(await store.purged(in: .all) == 600)
        #expect(try FileIdentity(path: self.directory.data) == identity)
        #expect(store.statistics().disk?.objects == 0)
        await store.put(cacheKey("7"), [2])
        #expect(await store.find(cacheKey("7")).count == 1)
        await store.closed()
        #expect(self.world.reported.isEmpty)
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("7")).count == 1)
        await again.closed()
    }

    @Test("of a selection is not owed where the store closes in its midst, which is told")
    func cutShort() async throws {
        let store = try self.world.open(self.directory)
        await withTaskGroup(of: Void.self) { group in
            for i in 0..<600 { group.addTask { await store.put(cacheKey("\(i)"), [1]) } }
        }
        let isAtSecondPart = AsyncStream<Void>.makeStream()
        let isClosing = DispatchSemaphore(value: 0)
        let asked = Mutex(0)
        let removed = AsyncStream<Int>.makeStream()
        store.removeAll(where: { _ in
            let count = asked.withLock { count in
                count += 1
                return count
            }
            if count == 513 {
                isAtSecondPart.continuation.yield()
                isClosing.wait()
            }
            return true
        }) { removed.continuation.yield($0) }
        _ = await isAtSecondPart.stream.first { _ in true }
        #expect(store.unkeptRemoval == nil)
        let closed = AsyncStream<Void>.makeStream()
        store.close { closed.continuation.yield() }
        isClosing.signal()
        #expect(await removed.stream.first { _ in true } == 512)
        #expect(store.unkeptRemoval?.code == .unavailable)
        _ = await closed.stream.first { _ in true }
        #expect(self.directory.writerLockText?.hasSuffix("\nclosed\n") == true)
        let again = try self.world.open(self.directory)
        #expect(self.world.reported.isEmpty)
        #expect(again.statistics().disk?.objects == 88)
        try QueueAudit(self.directory).expectSound()
        await again.closed()
    }
}
