import Foundation
import Glibc
import LarderLMDB
import LarderStore
import Testing

@testable import LarderDisk

@Suite("What is seen to where nobody asks for it", .timeLimit(.minutes(10)))
struct IdleUpkeepTests {
    private let start = ContinuousClock.now

    private func after(_ seconds: Int, _ milliseconds: Int = 0) -> ContinuousClock.Instant {
        self.start + .seconds(seconds) + .milliseconds(milliseconds)
    }

    @Test("the last commit is brought to the disk a second after it, and once")
    func synchronizes() {
        var upkeep = IdleUpkeep()
        var isDue = upkeep.synchronizes(isOnDisk: false, at: self.start)
        #expect(!isDue)
        #expect(upkeep.due == self.after(1))
        upkeep.committed(nil)
        isDue = upkeep.synchronizes(isOnDisk: false, at: self.after(0, 900))
        #expect(!isDue)
        #expect(upkeep.due == self.after(1, 900))
        isDue = upkeep.synchronizes(isOnDisk: false, at: self.after(1, 900))
        #expect(isDue)
        isDue = upkeep.synchronizes(isOnDisk: true, at: self.after(1, 900))
        #expect(!isDue)
        #expect(upkeep.due == nil)
    }

    @Test("a last commit that the disk does not take is tried again when that is to be")
    func failed() {
        var upkeep = IdleUpkeep()
        _ = upkeep.synchronizes(isOnDisk: false, at: self.start)
        upkeep.synchronizingFailed(until: self.after(10))
        var isDue = upkeep.synchronizes(isOnDisk: false, at: self.after(9))
        #expect(!isDue)
        #expect(upkeep.due == self.after(10))
        isDue = upkeep.synchronizes(isOnDisk: false, at: self.after(10))
        #expect(isDue)
    }

    @Test("dead readers are looked for where the file has grown, and every five seconds at most")
    func readers() {
        var upkeep = IdleUpkeep()
        var isDue = upkeep.looksForReaders(at: self.start)
        #expect(!isDue)
        // That is how it was opened, when they were looked for.
        upkeep.committed(100)
        isDue = upkeep.looksForReaders(at: self.after(100))
        #expect(!isDue)
        upkeep.committed(100)
        isDue = upkeep.looksForReaders(at: self.after(100))
        #expect(!isDue)
        upkeep.committed(101)
        isDue = upkeep.looksForReaders(at: self.after(100))
        #expect(isDue)
        upkeep.committed(102)
        isDue = upkeep.looksForReaders(at: self.after(104))
        #expect(!isDue)
        // It need not grow again.
        #expect(upkeep.due == self.after(105))
        upkeep.committed(102)
        isDue = upkeep.looksForReaders(at: self.after(105))
        #expect(isDue)
        #expect(upkeep.due == nil)
    }

    @Test("a removal is on the disk before long, though nothing is written after it")
    func removal() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        await store.put(cacheKey("a"), pattern(10_000))
        let environment = store.core.environment
        for isRemoval in [false, true] {
            if isRemoval { _ = await store.removed(cacheKey("a")) }
            let limit = ContinuousClock.now + .seconds(30)
            while !environment.isOnDisk {
                try #require(ContinuousClock.now < limit)
                await Task.yield()
            }
        }
        await store.closed()
    }

    @Test("a reader whose process ended in the midst of reading is forgotten with the next growth")
    func deadReader() async throws {
        let directory = try TemporaryDirectory()
        let world = World()
        var store = try world.open(directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.closed()
        store = try world.open(directory)
        let data = directory.data
        await #expect(processExitsWith: .exitCode(7)) { [data = data as String] in
            let environment = try Environment.open(
                path: data, options: EnvironmentOptions(isReadOnly: true))
            try environment.read { (_) throws(LMDBError) in exit(7) }
        }
        await store.put(cacheKey("b"), pattern(1_000_000))
        await store.flushed()
        #expect(try store.core.environment.clearStaleReaders() == 0)
        await store.closed()
    }
}
