import Dispatch
import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Capacities that change while a cache is in use (§8.1)")
struct CacheCapacityTests {
    /// Runs work on many threads at once, none of them the tests' own.
    private func atOnce(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) async {
        await withCheckedContinuation { continuation in
            let group = DispatchGroup()
            for number in 0..<count {
                DispatchQueue(label: "test.\(number)").async(group: group) { work(number) }
            }
            group.notify(queue: .global()) { continuation.resume() }
        }
    }

    @Test("may be set by many at once, while responses come and go, and hold in the end")
    func atOnce() async throws {
        let directory = CacheDirectory()
        let cache = directory.cache()
        await self.atOnce(8) { number in
            for round in 0..<4 {
                let text = "http://origin.example/\(number)/\(round)"
                guard let request = try? cacheRequest(text),
                    let cached = try? cachedText("text", for: text)
                else { return }
                cache.storeCachedResponse(cached, for: request)
                cache.diskCapacity = [0, 2 << 20, 8 << 20, 1 << 20][(number + round) % 4]
                cache.memoryCapacity = [1 << 20, 0, 100_000][(number + round) % 3]
                _ = cache.cachedResponse(for: request)
                if round == 2 { cache.removeAllCachedResponses() }
                _ = cache.currentDiskUsage + cache.currentMemoryUsage
            }
        }
        cache.diskCapacity = 8 << 20
        cache.memoryCapacity = 0
        let request = try cacheRequest("http://origin.example/last")
        cache.storeCachedResponse(
            try cachedText("last", for: "http://origin.example/last"), for: request)
        #expect(cache.cachedResponse(for: request)?.text == "last")
        #expect(cache.diskCapacity == 8 << 20 && cache.currentDiskUsage > 0)
        #expect(cache.currentMemoryUsage == 0)
        cache.diskCapacity = 0
        #expect(cache.currentDiskUsage == 0)
        #expect(cache.cachedResponse(for: request) == nil)
    }

    @Test("of any number are as large as can be, and kept on disk, also those of several caches")
    func unlimited() async throws {
        let directories = (0..<3).map { _ in CacheDirectory() }
        let caches = directories.map {
            URLCache(memoryCapacity: 0, diskCapacity: .max, diskPath: $0.path)
        }
        let text = "http://origin.example/"
        let request = try cacheRequest(text)
        for cache in caches {
            cache.storeCachedResponse(try cachedText("kept", for: text), for: request)
        }
        for cache in caches {
            #expect(cache.cachedResponse(for: request)?.text == "kept")
            #expect(cache.currentDiskUsage > 0)
        }
    }

    @Test("may change while sessions load, whose answers are whole")
    func loading() async throws {
        let body = String(repeating: "x", count: 40_000)
        let origin = try await ScriptedOrigin.answering { _ in response(body: body) }
        let directory = CacheDirectory()
        let cache = directory.cache()
        let session = cacheSession(cache)
        let url = try cacheURL(origin.url("/"))
        async let changes: Void = self.atOnce(2) { number in
            for round in 0..<10 {
                cache.diskCapacity = [0, 2 << 20, 8 << 20][(number + round) % 3]
                cache.memoryCapacity = [1 << 20, 0][round % 2]
            }
        }
        for number in 0..<60 {
            let (data, _) = try await session.data(from: url.appending(path: "\(number % 20)"))
            #expect(data.count == body.utf8.count)
        }
        await changes
        session.invalidateAndCancel()
        await origin.stop()
    }
}
