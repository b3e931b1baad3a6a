import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("willCacheResponse, in sessions (§4.3)")
struct CacheDecisionTests {
    private typealias Answer = @Sendable (CachedURLResponse?) -> Void

    /// What is stored after one task whose delegate decides so.
    private func stored(
        _ storing: @escaping CacheDiary.Storing, memory: Int = 1 << 20, disk: Int = 8 << 20
    ) async throws -> (found: CachedURLResponse?, again: CachedURLResponse?, cache: URLCache) {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let directory = CacheDirectory()
        let cache = directory.cache(memory: memory, disk: disk)
        let diary = CacheDiary(storing: storing)
        let session = cacheSession(cache, diary)
        let url = try cacheURL(origin.url("/a"))
        let account = try await diary.run(session.dataTask(with: url))
        #expect(account.error == nil && account.text == "hello")
        #expect(account.proposed.count == 1)
        let found = cache.cachedResponse(for: URLRequest(url: url))
        cache.memoryCapacity = 0
        let again = cache.cachedResponse(for: URLRequest(url: url))
        session.invalidateAndCancel()
        await origin.stop()
        return (found, again, cache)
    }

    @Test("nil stores nothing, in memory or on disk")
    func none() async throws {
        let (found, again, cache) = try await self.stored { _, _, answer in answer(nil) }
        #expect(found == nil && again == nil)
        #expect(cache.currentMemoryUsage == 0 && cache.currentDiskUsage == 0)
    }

    @Test("what the delegate makes of it is stored: data, user info and fields")
    func modified() async throws {
        let (found, again, _) = try await self.stored { _, proposed, answer in
            answer(
                CachedURLResponse(
                    response: proposed.response, data: proposed.data + Data(" there".utf8),
                    userInfo: ["key": "value"], storagePolicy: .allowed))
        }
        for cached in [found, again] {
            #expect(cached?.text == "hello there")
            #expect(cached?.userInfo?["key"] as? String == "value")
        }
    }

    @Test("a policy of memory alone never reaches the disk, and one of nowhere nothing")
    func policies() async throws {
        for policy in [URLCache.StoragePolicy.allowedInMemoryOnly, .notAllowed] {
            let (found, again, cache) = try await self.stored { _, proposed, answer in
                answer(
                    CachedURLResponse(
                        response: proposed.response, data: proposed.data, userInfo: nil,
                        storagePolicy: policy))
            }
            #expect((found != nil) == (policy == .allowedInMemoryOnly))
            #expect(again == nil && cache.currentDiskUsage == 0)
        }
    }

    @Test(
        "data may be read lazily, by a proposed response that outlives its task",
        arguments: [true, false], [1 << 20, 0])
    func lazy(isStored: Bool, memory: Int) async throws {
        let kept = Mutex<CachedURLResponse?>(nil)
        let (found, _, _) = try await self.stored(
            { _, proposed, answer in
                kept.withLock { $0 = proposed }
                answer(isStored ? proposed : nil)
            }, memory: memory)
        #expect(found?.text == (isStored ? "hello" : nil))
        #expect(kept.withLock { $0 }?.text == "hello")
    }

    @Test("an answer that comes late holds the task back, and is heeded")
    func slow() async throws {
        let (found, _, _) = try await self.stored { _, proposed, answer in
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(50)) {
                answer(proposed)
            }
        }
        #expect(found?.text == "hello")
    }

    @Test("a task that is cancelled meanwhile leaves nothing, whatever is answered then")
    func cancelled() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let directory = CacheDirectory()
        let cache = directory.cache()
        let answers = Mutex<(CachedURLResponse, Answer)?>(nil)
        let diary = CacheDiary { task, proposed, answer in
            answers.withLock { $0 = (proposed, answer) }
            task.cancel()
        }
        let session = cacheSession(cache, diary)
        let url = try cacheURL(origin.url("/a"))
        let account = try await diary.run(session.dataTask(with: url))
        #expect(account.code == .cancelled)
        if let (proposed, answer) = answers.withLock({ $0 }) {
            answer(proposed)
            answer(proposed)
        }
        #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
        #expect(cache.currentDiskUsage == 0)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("what was removed while the delegate thinks does not come back")
    func removed() async throws {
        let caches = Mutex<URLCache?>(nil)
        let (found, again, _) = try await self.stored { task, proposed, answer in
            // Of the task's own session: set before it runs.
            if let request = task.currentRequest {
                caches.withLock { $0 }?.removeCachedResponse(for: request)
            }
            answer(proposed)
        }
        // Nobody set the cache here: this is the rule without a removal.
        #expect(found != nil && again != nil)
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let directory = CacheDirectory()
        let cache = directory.cache()
        caches.withLock { $0 = cache }
        for removesAll in [false, true] {
            for isReplaced in [false, true] {
                let diary = CacheDiary { task, proposed, answer in
                    if removesAll {
                        cache.removeAllCachedResponses()
                    } else if let request = task.currentRequest {
                        cache.removeCachedResponse(for: request)
                    }
                    answer(
                        isReplaced
                            ? CachedURLResponse(response: proposed.response, data: Data("x".utf8))
                            : proposed)
                }
                let session = cacheSession(cache, diary)
                let url = try cacheURL(origin.url("/\(removesAll)\(isReplaced)"))
                _ = try await diary.run(session.dataTask(with: url))
                #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
                #expect(cache.currentDiskUsage == 0)
                session.invalidateAndCancel()
            }
        }
        await origin.stop()
    }

    @Test("is not called for what is longer than a twentieth of the cache, which is not stored")
    func tooLong() async throws {
        let body = String(repeating: "x", count: (1 << 20) / 20 + 1)
        let chunk = String(body.utf8.count, radix: 16)
        let origin = try await ScriptedOrigin.answering { request in
            request.target == "/known"
                ? response(body: body)
                : "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked"
                    + "\r\n\r\n\(chunk)\r\n\(body)\r\n0\r\n\r\n"
        }
        let directory = CacheDirectory()
        let cache = directory.cache(memory: 8 << 20, disk: 1 << 20)
        let diary = CacheDiary()
        let session = cacheSession(cache, diary)
        for path in ["/known", "/unknown"] {
            let url = try cacheURL(origin.url(path))
            let account = try await diary.run(session.dataTask(with: url))
            #expect(account.data.count == body.utf8.count && account.proposed.isEmpty)
            #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }
}
