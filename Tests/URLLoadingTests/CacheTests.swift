import Foundation
import Synchronization
import Testing

@testable import URLLoading

/// Looks for the shared cache at its end.
private final class AskingCache: URLCache, @unchecked Sendable {
    static let hasFoundNext = Mutex(false)

    deinit {
        let isNext = !(URLCache.shared is AskingCache)
        Self.hasFoundNext.withLock { $0 = isNext }
    }
}

@Suite("URLCache (§8.1, §8.5)")
struct CacheTests {
    private let directory = CacheDirectory()
    private let url = "https://example.com/path"

    @Test(
        "finds at once what was stored, with any share of memory and disk",
        arguments: [
            (1 << 20, 8 << 20), (0, 8 << 20), (1 << 20, 0),
        ])
    func roundTrip(memory: Int, disk: Int) throws {
        let cache = self.directory.cache(memory: memory, disk: disk)
        let cached = try cachedText("body", for: self.url, fields: ["ETag": "\"1\"", "X-A": "b"])
        for round in 0..<20 {
            let request = try cacheRequest("\(self.url)?\(round)")
            cache.storeCachedResponse(cached, for: request)
            let found = try #require(cache.cachedResponse(for: request))
            #expect(found.text == "body")
            let response = try #require(found.response as? HTTPURLResponse)
            #expect(response.statusCode == 200)
            #expect(response.allHeaderFields["X-A"] as? String == "b")
        }
    }

    @Test("tells requests apart by method, scheme, port, path and query, not by fragment (§8.3)")
    func key() throws {
        let cache = self.directory.cache(disk: 0)
        cache.storeCachedResponse(
            try cachedText("a", for: "http://h/q?x=1"), for: try cacheRequest("http://h/q?x=1"))
        #expect(cache.cachedResponse(for: try cacheRequest("http://h/q?x=1#part"))?.text == "a")
        for other in ["https://h/q?x=1", "http://h/q?x=9", "http://h/q", "http://h:81/q?x=1"] {
            #expect(cache.cachedResponse(for: try cacheRequest(other)) == nil, "\(other)")
        }
        for method in ["POST", "HEAD", "PUT"] {
            let request = try cacheRequest("http://h/q?x=1", method: method)
            #expect(cache.cachedResponse(for: request) == nil)
            cache.storeCachedResponse(try cachedText(method, for: "http://h/q?x=1"), for: request)
            #expect(cache.cachedResponse(for: request)?.text == method)
        }
        #expect(cache.cachedResponse(for: try cacheRequest("http://h/q?x=1"))?.text == "a")
    }

    @Test("keeps a variant for each value of the fields that Vary names (§8.3)")
    func vary() throws {
        let cache = self.directory.cache()
        let fields = ["Vary": "Accept-Language"]
        for language in ["de", "fr"] {
            cache.storeCachedResponse(
                try cachedText(language, for: self.url, fields: fields),
                for: try cacheRequest(self.url, fields: ["Accept-Language": language]))
        }
        for language in ["de", "fr"] {
            let request = try cacheRequest(self.url, fields: ["Accept-Language": language])
            #expect(cache.cachedResponse(for: request)?.text == language)
        }
        let other = try cacheRequest(self.url, fields: ["Accept-Language": "it"])
        #expect(cache.cachedResponse(for: other) == nil)
        // What a request leaves to the session is no difference.
        #expect(cache.cachedResponse(for: try cacheRequest(self.url)) != nil)
    }

    @Test("finds what no session would be given: a part, and what answers one request alone")
    func unusable() throws {
        let cache = self.directory.cache()
        for (status, fields) in [(206, ["Content-Range": "bytes 0-3/9"]), (200, ["Vary": "*"])] {
            let url = "\(self.url)/\(status)"
            let response = try #require(
                HTTPURLResponse(
                    url: try cacheURL(url), statusCode: status, httpVersion: nil,
                    headerFields: fields))
            let request = try cacheRequest(url)
            cache.storeCachedResponse(
                CachedURLResponse(response: response, data: Data("body".utf8)), for: request)
            #expect(cache.cachedResponse(for: request)?.text == "body")
        }
    }

    @Test("has one response of a request, the last")
    func replaced() throws {
        for memory in [1 << 20, 0] {
            let cache = self.directory.cache(memory: memory)
            let request = try cacheRequest(self.url)
            cache.storeCachedResponse(try cachedText("first", for: self.url), for: request)
            cache.storeCachedResponse(try cachedText("second", for: self.url), for: request)
            #expect(cache.cachedResponse(for: request)?.text == "second")
            cache.removeCachedResponse(for: request)
            #expect(cache.cachedResponse(for: request) == nil)
        }
    }

    @Test("keeps responses of schemes that no engine loads, as what they are")
    func otherSchemes() throws {
        let cache = self.directory.cache(memory: 0)
        let url = try cacheURL("custom:thing/one")
        let response = URLResponse(
            url: url, mimeType: "text/plain", expectedContentLength: 4, textEncodingName: "utf-8")
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data("body".utf8)),
            for: URLRequest(url: url))
        let found = try #require(cache.cachedResponse(for: URLRequest(url: url)))
        #expect(found.text == "body")
        #expect(!(found.response is HTTPURLResponse))
        #expect(found.response.mimeType == "text/plain")
        #expect(found.response.textEncodingName == "utf-8")
        #expect(found.response.expectedContentLength == 4)
        #expect(found.response.url == url)
    }

    @Test("stores by the policy of the response (§8.2)")
    func policies() throws {
        let cache = self.directory.cache()
        let request = try cacheRequest(self.url)
        cache.storeCachedResponse(
            try cachedText("no", for: self.url, policy: .notAllowed), for: request)
        #expect(cache.cachedResponse(for: request) == nil)
        #expect(self.directory.names == [])
        cache.storeCachedResponse(
            try cachedText("memory", for: self.url, policy: .allowedInMemoryOnly), for: request)
        let found = try #require(cache.cachedResponse(for: request))
        #expect(found.text == "memory")
        #expect(found.storagePolicy == .allowedInMemoryOnly)
        #expect(self.directory.names == [])
        #expect(cache.currentDiskUsage == 0)
        cache.storeCachedResponse(try cachedText("both", for: self.url), for: request)
        #expect(cache.cachedResponse(for: request)?.text == "both")
        #expect(self.directory.names?.count == 1)
        // In its place, and so no longer on the disk either.
        cache.storeCachedResponse(
            try cachedText("memory", for: self.url, policy: .allowedInMemoryOnly), for: request)
        cache.memoryCapacity = 0
        #expect(cache.cachedResponse(for: request) == nil)
    }

    @Test("keeps user info; of what has no property list, only in memory (§8.2)")
    func userInfo() throws {
        let request = try cacheRequest(self.url)
        let thing = NSObject()
        do {
            let cache = self.directory.cache()
            let info: [AnyHashable: Any] = [
                "text": "a", "number": 7, "list": ["x", "y"], "data": Data([1, 2]), "thing": thing,
            ]
            cache.storeCachedResponse(
                try cachedText("body", for: self.url, userInfo: info), for: request)
            let found = try #require(cache.cachedResponse(for: request)?.userInfo)
            #expect(found["thing"] as? NSObject === thing)
            #expect(found["text"] as? String == "a")
        }
        let found = try #require(
            self.directory.cache().cachedResponse(for: request)?.userInfo)
        #expect(found["text"] as? String == "a")
        #expect(found["number"] as? Int == 7)
        #expect(found["list"] as? [String] == ["x", "y"])
        #expect(found["data"] as? Data == Data([1, 2]))
        #expect(found["thing"] == nil)
    }

    @Test("finds again what another cache on the path stored, also while that is being closed")
    func reopened() throws {
        for round in 0..<10 {
            let request = try cacheRequest("\(self.url)/\(round)")
            do {
                let cache = self.directory.cache()
                cache.storeCachedResponse(try cachedText("\(round)", for: self.url), for: request)
            }
            #expect(self.directory.cache().cachedResponse(for: request)?.text == "\(round)")
        }
        #expect(self.directory.names == ["responses"])
    }

    @Test("is one with others on the same directory, whatever that is called")
    func shared() throws {
        let one = self.directory.cache()
        let link = self.directory.path + "-link"
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: self.directory.path)
        defer { try? FileManager.default.removeItem(atPath: link) }
        let two = URLCache(memoryCapacity: 2 << 20, diskCapacity: 9 << 20, diskPath: link)
        let request = try cacheRequest(self.url)
        one.storeCachedResponse(try cachedText("a", for: self.url), for: request)
        #expect(two.cachedResponse(for: request)?.text == "a")
        two.removeCachedResponse(for: request)
        #expect(one.cachedResponse(for: request) == nil)
        #expect(one.memoryCapacity == 2 << 20)
        #expect(one.diskCapacity == 9 << 20)
    }

    @Test("is not taken for one whose directory was removed, whichever inode its own gets")
    func inodes() throws {
        var others: [URLCache] = []
        for round in 0..<20 {
            let directory = CacheDirectory()
            let cache = directory.cache(memory: 0)
            let request = try cacheRequest(self.url)
            #expect(cache.cachedResponse(for: request) == nil)
            cache.storeCachedResponse(try cachedText("\(round)", for: self.url), for: request)
            #expect(directory.names == ["responses"])
            try FileManager.default.removeItem(atPath: directory.path)
            others.append(cache)
        }
    }

    @Test("with no capacity on disk makes neither a file nor a directory, ever")
    func noDisk() throws {
        let cache = self.directory.cache(disk: 0)
        let request = try cacheRequest(self.url)
        cache.storeCachedResponse(try cachedText("a", for: self.url), for: request)
        #expect(cache.cachedResponse(for: request)?.text == "a")
        cache.removeAllCachedResponses()
        #expect(cache.currentDiskUsage == 0)
        #expect(self.directory.names == nil)
    }

    @Test("is let go of behind the one that is shared from then on")
    func replaced() async {
        await #expect(processExitsWith: .exitCode(7)) {
            URLCache.shared = AskingCache(memoryCapacity: 0, diskCapacity: 0)
            URLCache.shared = URLCache(memoryCapacity: 0, diskCapacity: 0)
            exit(AskingCache.hasFoundNext.withLock { $0 } ? 7 : 1)
        }
    }

    @Test("goes on in memory where its path cannot be used")
    func unusablePath() throws {
        let cache = URLCache(
            memoryCapacity: 1 << 20, diskCapacity: 8 << 20, diskPath: "/dev/null/cache")
        let request = try cacheRequest(self.url)
        cache.storeCachedResponse(try cachedText("a", for: self.url), for: request)
        #expect(cache.cachedResponse(for: request)?.text == "a")
        cache.removeCachedResponse(for: request)
        #expect(cache.cachedResponse(for: request) == nil)
    }

    @Test("takes capacities and dates that are no sensible numbers")
    func oddNumbers() throws {
        let cache = self.directory.cache(memory: -1, disk: -5)
        #expect(cache.memoryCapacity == 0)
        #expect(cache.diskCapacity == 0)
        cache.memoryCapacity = .max
        cache.storeCachedResponse(
            try cachedText("a", for: self.url), for: try cacheRequest(self.url))
        for seconds in [Double.infinity, -Double.infinity, .nan, 1e300] {
            cache.removeCachedResponses(since: Date(timeIntervalSince1970: seconds))
        }
        cache.memoryCapacity = .min
        #expect(cache.memoryCapacity == 0)
    }
}
