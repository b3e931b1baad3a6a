import Foundation
import Testing

@testable import URLLoading

@Suite("What leaves a URLCache (§8.1)")
struct CacheRemovalTests {
    private let directory = CacheDirectory()

    private func fill(_ cache: URLCache, _ count: Int, size: Int = 10) throws -> [URLRequest] {
        try (0..<count).map { number in
            let url = "http://example.com/\(number)"
            let text = String(repeating: "x", count: size)
            let request = try cacheRequest(url)
            cache.storeCachedResponse(try cachedText(text, for: url), for: request)
            return request
        }
    }

    @Test(
        "is all of it, or one request's",
        arguments: [(1 << 20, 8 << 20), (0, 8 << 20), (1 << 20, 0)])
    func removal(memory: Int, disk: Int) throws {
        let cache = self.directory.cache(memory: memory, disk: disk)
        let requests = try self.fill(cache, 5)
        cache.removeCachedResponse(for: requests[2])
        #expect(
            requests.map { cache.cachedResponse(for: $0) != nil } == [
                true, true, false, true, true,
            ])
        cache.removeAllCachedResponses()
        #expect(requests.allSatisfy { cache.cachedResponse(for: $0) == nil })
        #expect(cache.currentDiskUsage == 0)
        #expect(cache.currentMemoryUsage == 0)
    }

    @Test(
        "is what was stored after a date",
        arguments: [(1 << 20, 8 << 20), (0, 8 << 20), (1 << 20, 0)])
    func since(memory: Int, disk: Int) throws {
        let cache = self.directory.cache(memory: memory, disk: disk)
        let early = try cacheRequest("http://example.com/early")
        cache.storeCachedResponse(try cachedText("a", for: "http://example.com/early"), for: early)
        let date = Date()
        let late = try self.fill(cache, 3)
        cache.removeCachedResponses(since: date)
        #expect(cache.cachedResponse(for: early) != nil)
        #expect(late.allSatisfy { cache.cachedResponse(for: $0) == nil })
        cache.removeCachedResponses(since: .distantPast)
        #expect(cache.cachedResponse(for: early) == nil)
    }

    @Test("is what no longer fits when memory's capacity falls, at once; the disk's copy stays")
    func memoryFalls() throws {
        let cache = self.directory.cache(memory: 1 << 20, disk: 8 << 20)
        let requests = try self.fill(cache, 20, size: 4_000)
        #expect(cache.currentMemoryUsage > 80_000)
        cache.memoryCapacity = 30_000
        #expect(cache.currentMemoryUsage <= 30_000)
        #expect(requests.allSatisfy { cache.cachedResponse(for: $0) != nil })
        cache.memoryCapacity = 0
        #expect(cache.currentMemoryUsage == 0)
        cache.memoryCapacity = 1 << 20
        _ = try self.fill(cache, 1)
        #expect(cache.currentMemoryUsage > 0)
    }

    @Test("is everything when memory's capacity falls to 0 and there is no disk")
    func memoryAlone() throws {
        let cache = self.directory.cache(memory: 1 << 20, disk: 0)
        let requests = try self.fill(cache, 3)
        cache.memoryCapacity = 0
        #expect(requests.allSatisfy { cache.cachedResponse(for: $0) == nil })
    }

    @Test("is the file when the disk's capacity falls to 0; memory's copy stays")
    func diskFallsToNone() throws {
        let cache = self.directory.cache(memory: 1 << 20, disk: 8 << 20)
        let requests = try self.fill(cache, 3)
        #expect(self.directory.names?.count == 1)
        cache.diskCapacity = 0
        #expect(self.directory.names == [])
        #expect(cache.currentDiskUsage == 0)
        #expect(requests.allSatisfy { cache.cachedResponse(for: $0) != nil })
        // What memory knows of the old file means nothing in the next.
        cache.diskCapacity = 8 << 20
        let others = try self.fill(cache, 6)
        cache.memoryCapacity = 0
        #expect(others.allSatisfy { cache.cachedResponse(for: $0) != nil })
        #expect(self.directory.names?.count == 1)
    }

    @Test("is what was used longest ago when the disk's capacity falls, at once")
    func diskFalls() throws {
        let cache = self.directory.cache(memory: 0, disk: 16 << 20)
        let requests = try self.fill(cache, 40, size: 100_000)
        #expect(cache.currentDiskUsage > 4_000_000)
        cache.diskCapacity = 2 << 20
        #expect(cache.currentDiskUsage <= 2 << 20)
        let found = requests.map { cache.cachedResponse(for: $0) != nil }
        #expect(!found[0])
        #expect(found.last == true)
        #expect(found.count { $0 } > 10)
        cache.diskCapacity = 16 << 20
        let more = try self.fill(cache, 40, size: 100_000)
        #expect(more.allSatisfy { cache.cachedResponse(for: $0) != nil })
    }

    @Test("is not what came last when the disk's capacity falls, though others were used oftener")
    func diskFallsAfterUses() throws {
        let cache = self.directory.cache(memory: 0, disk: 16 << 20)
        let early = try self.fill(cache, 35, size: 115_000)
        for request in early { #expect(cache.cachedResponse(for: request) != nil) }
        let late = try (0..<5).map { number in
            let url = "http://example.com/late/\(number)"
            let request = try cacheRequest(url)
            let text = String(repeating: "x", count: 115_000)
            cache.storeCachedResponse(try cachedText(text, for: url), for: request)
            return request
        }
        cache.diskCapacity = 2 << 20
        // Each waits for the writer, which makes room as far as it must.
        for _ in 0..<5 { #expect(cache.currentDiskUsage <= 2 << 20) }
        #expect(late.allSatisfy { cache.cachedResponse(for: $0) != nil })
        let left = early.count { cache.cachedResponse(for: $0) != nil }
        #expect(left > 5 && left < 15)
    }

    @Test("is what the directory held when that was taken away behind its back")
    func directoryGone() throws {
        let cache = self.directory.cache(memory: 0, disk: 8 << 20)
        let requests = try self.fill(cache, 2)
        try FileManager.default.removeItem(atPath: self.directory.path)
        try FileManager.default.createDirectory(
            atPath: self.directory.path, withIntermediateDirectories: true)
        #expect(requests.allSatisfy { cache.cachedResponse(for: $0) == nil })
        let again = try self.fill(cache, 2)
        _ = again.map { cache.cachedResponse(for: $0) }
    }
}
