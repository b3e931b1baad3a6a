import Foundation
import LarderDisk
import LarderEngine
import LarderHTTP
import Testing

@testable import URLLoading

@Suite("A URLCache of several processes (§8)")
struct CacheProcessTests {
    private static let url = "http://origin.example/a"

    /// As another process does it: finds what is there, and stores its own in its place.
    private static func use(_ path: String, finds: String?, stores: String) throws -> Bool {
        let cache = URLCache(memoryCapacity: 0, diskCapacity: 8 << 20, diskPath: path)
        let request = try cacheRequest(Self.url)
        guard cache.cachedResponse(for: request)?.text == finds else { return false }
        cache.storeCachedResponse(try cachedText(stores, for: Self.url), for: request)
        return cache.cachedResponse(for: request)?.text == stores
    }

    @Test("keeps for the next process what one stored last, however that ended")
    func oneAfterAnother() async throws {
        let directory = CacheDirectory()
        await #expect(processExitsWith: .exitCode(7)) { [path = directory.path as String] in
            exit(try Self.use(path, finds: nil, stores: "first") ? 7 : 1)
        }
        await #expect(processExitsWith: .exitCode(8)) { [path = directory.path as String] in
            _exit(try Self.use(path, finds: "first", stores: "second") ? 8 : 1)
        }
        #expect(try Self.use(directory.path, finds: "second", stores: "third"))
        #expect(directory.names == ["responses"])
    }

    @Test("stays with its responses when its capacity changes, also where a place before is free")
    func resized() async throws {
        let directory = CacheDirectory()
        let request = try cacheRequest(Self.url)
        // As another process has it.
        let other = try DiskStore.open(
            DiskConfiguration(directory: directory.path + "/responses", capacity: .mebibytes(8)),
            clock: { SystemClock().now() }, report: { _ in })
        let cache = directory.cache(memory: 0)
        cache.storeCachedResponse(try cachedText("own", for: Self.url), for: request)
        await withCheckedContinuation { continuation in
            other.close { continuation.resume() }
        }
        for capacity in [16 << 20, 6 << 20] {
            cache.diskCapacity = capacity
            #expect(cache.cachedResponse(for: request)?.text == "own")
        }
        // Nothing is left to find there, so that it is the first that is free.
        cache.diskCapacity = 0
        cache.diskCapacity = 8 << 20
        cache.storeCachedResponse(try cachedText("new", for: Self.url), for: request)
        #expect(cache.cachedResponse(for: request)?.text == "new")
        #expect(DiskStore.isThere(directory.path + "/responses"))
        #expect(!DiskStore.isThere(directory.path + "/responses-2"))
    }

    @Test("gives each of several at a time responses of its own")
    func atATime() async throws {
        let directory = CacheDirectory()
        let cache = directory.cache(memory: 0)
        let request = try cacheRequest(Self.url)
        cache.storeCachedResponse(try cachedText("parent", for: Self.url), for: request)
        await #expect(processExitsWith: .exitCode(9)) { [path = directory.path as String] in
            exit(try Self.use(path, finds: nil, stores: "child") ? 9 : 1)
        }
        #expect(cache.cachedResponse(for: request)?.text == "parent")
        // The next of the same number finds what the last one there stored.
        await #expect(processExitsWith: .exitCode(9)) { [path = directory.path as String] in
            exit(try Self.use(path, finds: "child", stores: "child") ? 9 : 1)
        }
        cache.removeAllCachedResponses()
        #expect(cache.cachedResponse(for: request) == nil)
        #expect(directory.names?.sorted() == ["responses", "responses-2"])
    }
}
