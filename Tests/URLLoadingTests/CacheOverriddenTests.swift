import Dispatch
import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// A cache in a dictionary of its own.
final class OwnCache: URLCache, @unchecked Sendable {
    private let held = Mutex<[URL: CachedURLResponse]>([:])
    private let calls = Mutex<[String]>([])
    private let urls = Mutex<[ObjectIdentifier: URL]>([:])

    var heard: [String] { self.calls.withLock { $0 } }

    func know(_ task: URLSessionDataTask, asksFor url: URL) {
        self.urls.withLock { $0[ObjectIdentifier(task)] = url }
    }

    private func url(of task: URLSessionDataTask) -> URL? {
        self.urls.withLock { $0[ObjectIdentifier(task)] }
    }

    func put(_ cached: CachedURLResponse, at url: URL) {
        self.held.withLock { $0[url] = cached }
    }

    override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
    ) {
        self.calls.withLock { $0.append("store \(cachedResponse.text)") }
        guard let url = self.url(of: dataTask) else { return }
        self.held.withLock { $0[url] = cachedResponse }
    }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.calls.withLock { $0.append("get") }
        let cached = self.url(of: dataTask).flatMap { url in
            self.held.withLock { $0[url] }
        }
        completionHandler(cached)
        // Once is what a session listens to.
        completionHandler(nil)
    }

    override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        self.calls.withLock { $0.append("remove") }
    }
}

@Suite("A subclass of URLCache (§8.1)")
struct OverriddenCacheTests {
    private func cache() -> OwnCache {
        OwnCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    }

    /// Loads what may be stored for a minute.
    private func engine(_ cache: URLCache) -> CacheEngine {
        CacheEngine(cache) { _ in
            .init(fields: ["Cache-Control": "max-age=60"], body: "loaded")
        }
    }

    @Test("is asked and told by its methods that take a task")
    func heard() async throws {
        let cache = self.cache()
        let (engine, url) = (self.engine(cache), "http://origin.example/a")
        #expect(try await engine.load(url).isHit == false)
        #expect(cache.heard == ["get", "store loaded"])
        let again = try await engine.load(url)
        #expect(again.text == "loaded")
        #expect(again.isHit)
        #expect(cache.heard == ["get", "store loaded", "get"])
        // Nothing went behind its back.
        #expect(cache.cachedResponse(for: try cacheRequest(url)) == nil)
    }

    @Test("may answer with what makes no sense")
    func odd() async throws {
        let cache = self.cache()
        let (engine, url) = (self.engine(cache), "http://origin.example/a")
        let plain = URLResponse(
            url: try cacheURL("other:thing"), mimeType: nil, expectedContentLength: -7,
            textEncodingName: nil)
        let odd = try #require(
            HTTPURLResponse(
                url: try cacheURL("other:thing"), statusCode: 304, httpVersion: nil,
                headerFields: ["Vary": "*", "Content-Length": "-1", "Age": "x"]))
        for response in [plain, odd] {
            cache.put(
                CachedURLResponse(response: response, data: Data("odd".utf8)), at: try cacheURL(url)
            )
            _ = try await engine.load(url)
        }
    }

    @Test(
        "answers nobody but whose response it is, if it changes nothing (RFC 9111 §4.1)",
        arguments: [true, false], [true, false])
    func secrets(isCookie: Bool, isChanged: Bool) async throws {
        let field = isCookie ? "Cookie" : "Authorization"
        let origin = try await ScriptedOrigin.answering { request in
            response("200 OK", "Vary: \(field)", body: request[field] ?? "nobody")
        }
        let jar = HTTPCookieStorage()
        let diary = CacheDiary { _, proposed, answer in
            guard isChanged else { return answer(proposed) }
            answer(CachedURLResponse(response: proposed.response, data: proposed.data))
        }
        let session = URLSession.alone(diary) {
            $0.urlCache = IdleCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
            $0.httpCookieStorage = jar
        }
        for (user, count) in [("A", 1), ("A", 1), (nil, 2), ("B", 3), ("B", 3)] {
            jar.removeCookies(since: .distantPast)
            var request = try cacheRequest(origin.url("/"))
            if let user, isCookie {
                jar.setCookie(try made("sid", user, domain: "127.0.0.1"))
            } else {
                request.setValue(user.map { "sid=\($0)" }, forHTTPHeaderField: "Authorization")
            }
            let account = try await diary.run(session.dataTask(with: request))
            #expect(account.text == user.map { "sid=\($0)" } ?? "nobody")
            #expect(origin.count == count)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test(
        "may have responses of its own, but none for secrets that nobody knows",
        arguments: [
            ("Accept", true), ("Cookie", false), ("accept, authorization", false),
        ])
    func ownVariants(_ vary: String, _ isHit: Bool) async throws {
        let cache = self.cache()
        let (engine, url) = (self.engine(cache), "http://origin.example/a")
        let own = try cachedText(
            "own", for: url, fields: ["Vary": vary, "Cache-Control": "max-age=60"])
        cache.put(own, at: try cacheURL(url))
        #expect(try await engine.load(url).isHit == isHit)
    }

    @Test("may keep what it is given, and look at it later")
    func keeping() async throws {
        let cache = KeepingCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        _ = try await self.engine(cache).load("http://origin.example/a")
        #expect(cache.kept.withLock { $0 }?.text == "loaded")
    }

    @Test("holds up nobody but its own tasks while it stores")
    func waiting() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let cache = WaitingCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let (session, other) = (cacheSession(cache), cacheSession(nil))
        let url = try cacheURL(origin.url("/"))
        let held = Event<Data?>(nil)
        session.dataTask(with: url) { data, _, _ in held.change { $0 = data ?? Data() } }.resume()
        try await cache.isStoring.wait(for: "the storing") { $0 }
        // By the same way to origins, and by another one.
        let (file, _) = try await session.download(from: url)
        try? FileManager.default.removeItem(at: file)
        #expect(try await other.data(from: url).0 == Data("hello".utf8))
        cache.goesOn.signal()
        try await held.wait(for: "the task's end") { $0 != nil }
        #expect(held.value == Data("hello".utf8))
        try await cache.wasTold.wait(for: "the end of the storing") { $0 != nil }
        #expect(cache.wasTold.value == true)
        session.invalidateAndCancel()
        other.invalidateAndCancel()
        await origin.stop()
    }

    @Test("lends its bodies for validations, and gets them back when they become many bytes")
    func remembered() async throws {
        let cache = GivingCache(memoryCapacity: 0, diskCapacity: 0, diskPath: nil)
        let store = OverriddenCacheStore(cache)
        let request = Request(
            uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"))
        let key = CacheKey(method: .get, uri: request.uri)
        for _ in 0..<4 {
            let asking = OverriddenCacheStore.Asking(task: URLSessionDataTask(), request: request)
            await withCheckedContinuation { continuation in
                OverriddenCacheStore.$asking.withValue(asking) {
                    store.lookup(key) { _ in continuation.resume() }
                }
            }
        }
        let given = cache.given.withLock { $0 }
        // The queue may still be about to leave the block that answered.
        try await Released.wait { given[0].response == nil && given[1].response == nil }
        #expect(given[2].response != nil && given[3].response != nil)
    }

    @Test("is asked, and told of changes, behind whoever looks up or changes")
    func behind() async throws {
        let cache = SlowCache(memoryCapacity: 0, diskCapacity: 0, diskPath: nil)
        let store = OverriddenCacheStore(cache)
        let request = Request(
            uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"))
        let key = CacheKey(method: .get, uri: request.uri)
        let found = Event<[StoredObject]>([])
        let asking = OverriddenCacheStore.Asking(task: URLSessionDataTask(), request: request)
        OverriddenCacheStore.$asking.withValue(asking) {
            store.lookup(key) { objects in found.change { $0 = objects } }
        }
        cache.goesOn.signal()
        try await found.wait(for: "the answer") { !$0.isEmpty }
        let object = try #require(found.value.first)
        store.update(object.id, of: key, head: object.head, written: nil)
        cache.goesOn.signal()
        try await cache.wasTold.wait(for: "both calls") { $0.count == 2 }
        #expect(cache.wasTold.value == ["get in time", "store in time"])
    }

    @Test("is heard once, whatever it answers")
    func once() {
        let heard = Event<[Int]>([])
        let answer = OnceAnswered<Int> { number in heard.change { $0.append(number) } }
        for number in 1...3 { answer.take(number) }
        #expect(heard.value == [1])
    }

    @Test("says by its capacities how large a body may be (§8.3)")
    func capacities() async throws {
        let cache = NarrowCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        for (size, isStored) in [(100, true), (101, false)] {
            let engine = CacheEngine(cache) { _ in
                .init(
                    fields: ["Cache-Control": "max-age=60"],
                    body: String(repeating: "x", count: size))
            }
            _ = try await engine.load("http://origin.example/\(size)")
            #expect((cache.kept.withLock { $0.take() } != nil) == isStored)
        }
    }
}

/// Changes nothing.
private final class IdleCache: URLCache, @unchecked Sendable {}

/// Keeps what it is given last, and does not look at it.
private class KeepingCache: URLCache, @unchecked Sendable {
    let kept = Mutex<CachedURLResponse?>(nil)

    override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
    ) {
        self.kept.withLock { $0 = cachedResponse }
    }
}

/// Has a response of four MiB, a new one each time, which it does not keep.
private final class GivingCache: URLCache, @unchecked Sendable {
    // Invariant: nothing of it changes but what is weak.
    final class Given: @unchecked Sendable {
        private(set) weak var response: CachedURLResponse?

        init(_ response: CachedURLResponse) {
            self.response = response
        }
    }

    let given = Mutex<[Given]>([])

    override func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard
            let response = HTTPURLResponse(
                url: URL(fileURLWithPath: "/"), statusCode: 200, httpVersion: nil,
                headerFields: nil)
        else { return completionHandler(nil) }
        let cached = CachedURLResponse(response: response, data: Data(count: 4 << 20))
        self.given.withLock { $0.append(Given(cached)) }
        completionHandler(cached)
    }
}

/// The same, with a disk of 2000 bytes.
private final class NarrowCache: KeepingCache, @unchecked Sendable {
    override var diskCapacity: Int {
        get { 2000 }
        set {}
    }
}

/// Comes back from no call before it is told to.
private final class SlowCache: URLCache, @unchecked Sendable {
    let goesOn = DispatchSemaphore(value: 0)
    let wasTold = Event<[String]>([])

    private func wait(_ call: String) {
        // A guard against hanging, no more.
        let result = self.goesOn.wait(timeout: .now() + .seconds(60))
        self.wasTold.change { $0.append(result == .success ? call + " in time" : call) }
    }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.wait("get")
        let url = URL(fileURLWithPath: "/")
        let response = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        completionHandler(response.map { CachedURLResponse(response: $0, data: Data([1])) })
    }

    override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
    ) {
        self.wait("store")
    }
}

/// Does not come back from storing before it is told to.
private final class WaitingCache: URLCache, @unchecked Sendable {
    let isStoring = Event(false)
    let goesOn = DispatchSemaphore(value: 0)
    /// Whether that was in time.
    let wasTold = Event<Bool?>(nil)

    override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
    ) {
        self.isStoring.change { $0 = true }
        // A guard against hanging, no more.
        let result = self.goesOn.wait(timeout: .now() + .seconds(60))
        self.wasTold.change { $0 = result == .success }
    }
}
