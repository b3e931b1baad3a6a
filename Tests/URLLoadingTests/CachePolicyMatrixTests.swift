import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The six request cache policies, in sessions (§8.4)")
struct CachePolicyMatrixTests {
    /// What is stored, by the path that it is stored for.
    enum Stored: String, CaseIterable, Sendable {
        case fresh, stale, absent, mustRevalidate, noCache, noStore

        var control: String {
            switch self {
            case .fresh, .absent: "max-age=600"
            case .stale: "max-age=0"
            case .mustRevalidate: "max-age=0, must-revalidate"
            case .noCache: "no-cache, max-age=600"
            case .noStore: "no-store"
            }
        }

        var isThere: Bool { self != .absent && self != .noStore }
    }

    /// What a second request does.
    enum Outcome: Equatable, Sendable {
        case cached
        /// The origin is asked whether it still holds, and it does.
        case validated
        case loaded
        case failed
    }

    static func expected(_ policy: NSURLRequest.CachePolicy, _ stored: Stored) -> Outcome {
        switch policy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: return .loaded
        case .returnCacheDataElseLoad: return stored.isThere ? .cached : .loaded
        case .returnCacheDataDontLoad: return stored.isThere ? .cached : .failed
        case .reloadRevalidatingCacheData: return stored.isThere ? .validated : .loaded
        default:
            if stored == .fresh { return .cached }
            return stored.isThere ? .validated : .loaded
        }
    }

    static let policies: [NSURLRequest.CachePolicy] = [
        .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad,
        .returnCacheDataDontLoad, .reloadIgnoringLocalAndRemoteCacheData,
        .reloadRevalidatingCacheData,
    ]

    private static func answer(_ request: Message) -> String {
        let control = Stored(rawValue: String(request.target.dropFirst()))?.control
        if request["If-None-Match"] == "\"v1\"" {
            return response("304 Not Modified", "ETag: \"v1\"", cache: control)
        }
        return response("200 OK", "ETag: \"v1\"", body: "hello", cache: control)
    }

    @Test(
        "do with what is fresh, stale, absent or to be validated what the table says",
        arguments: Self.policies, [true, false])
    func table(_ policy: NSURLRequest.CachePolicy, ofSession: Bool) async throws {
        let origin = try await ScriptedOrigin.answering { Self.answer($0) }
        let directory = CacheDirectory()
        let cache = directory.cache()
        let (first, diary) = (cacheSession(cache), CacheDiary())
        let session = cacheSession(
            cache, diary, ofSession ? policy : .useProtocolCachePolicy)
        for stored in Stored.allCases {
            let url = try cacheURL(origin.url("/\(stored.rawValue)"))
            if stored != .absent { _ = try await first.data(from: url) }
            let before = origin.count
            var request = URLRequest(url: url)
            if !ofSession { request.cachePolicy = policy }
            let account = try await diary.run(session.dataTask(with: request))
            let asked = origin.requests.value.dropFirst(before)
            let comment: Comment = "\(policy.rawValue) \(stored)"
            switch Self.expected(policy, stored) {
            case .cached:
                #expect(asked.isEmpty && account.fetches == [.localCache], comment)
                #expect(account.proposed.isEmpty, comment)
            case .validated:
                #expect(asked.map { $0["If-None-Match"] } == ["\"v1\""], comment)
            case .loaded:
                #expect(asked.map { $0["If-None-Match"] } == [nil], comment)
                #expect(account.fetches == [.networkLoad], comment)
                #expect(account.proposed.count == (stored == .noStore ? 0 : 1), comment)
            case .failed:
                #expect(asked.isEmpty && account.code == .resourceUnavailable, comment)
                #expect(account.response == nil && account.data.isEmpty, comment)
                continue
            }
            let isForRemote = policy == .reloadIgnoringLocalAndRemoteCacheData
            for request in asked {
                #expect((request["Cache-Control"] == "no-cache") == isForRemote, comment)
                #expect((request["Pragma"] == "no-cache") == isForRemote, comment)
            }
            #expect(account.error == nil && account.text == "hello", comment)
            #expect(account.http?.statusCode == 200, comment)
            #expect(account.http?.value(forHTTPHeaderField: "ETag") == "\"v1\"", comment)
        }
        session.invalidateAndCancel()
        first.invalidateAndCancel()
        await origin.stop()
    }

    @Test("make what an unsafe request has changed be asked for again", arguments: ["POST", "PUT"])
    func unsafe(_ method: String) async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let directory = CacheDirectory()
        let session = cacheSession(directory.cache())
        let url = try cacheURL(origin.url("/a"))
        for _ in 0..<2 { _ = try await session.data(from: url) }
        #expect(origin.count == 1)
        var request = URLRequest(url: url)
        request.httpMethod = method
        _ = try await session.upload(for: request, from: Data("new".utf8))
        _ = try await session.data(from: url)
        #expect(origin.requests.value.map(\.method) == ["GET", method, "GET"])
        session.invalidateAndCancel()
        await origin.stop()
    }
}

@Suite("A cached answer, in sessions (§8.3, §8.4)")
struct CacheHitTests {
    private static var now: String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date())
    }

    @Test("has the stored fields and an age, and nothing of a proxy")
    func fields() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response(
                "200 OK", "Content-Type: text/plain", "X-Own: 1", "Age: 17",
                "Date: \(Self.now)", body: "hello")
        }
        let directory = CacheDirectory()
        let diary = CacheDiary()
        let session = cacheSession(directory.cache(), diary)
        let url = try cacheURL(origin.url("/a"))
        let loaded = try await diary.run(session.dataTask(with: url))
        let cached = try await diary.run(session.dataTask(with: url))
        #expect(cached.fetches == [.localCache] && cached.text == "hello")
        var fields = try #require(cached.http?.allHeaderFields as? [String: String])
        let age = try #require(fields.removeValue(forKey: "Age").flatMap { Int($0) })
        #expect((17...137).contains(age))
        var original = try #require(loaded.http?.allHeaderFields as? [String: String])
        original["Age"] = nil
        #expect(fields == original)
        #expect(cached.http?.mimeType == "text/plain" && cached.http?.url == url)
        #expect(cached.http?.expectedContentLength == 5)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("answers a HEAD, whose own answer is none to a GET")
    func heads() async throws {
        let origin = try await ScriptedOrigin.answering { request in
            request.method == "HEAD"
                ? "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\n"
                : response(body: "hello")
        }
        let directory = CacheDirectory()
        let diary = CacheDiary()
        let session = cacheSession(directory.cache(), diary)
        var head = URLRequest(url: try cacheURL(origin.url("/a")))
        head.httpMethod = "HEAD"
        let get = URLRequest(url: try cacheURL(origin.url("/a")))
        #expect(try await diary.run(session.dataTask(with: head)).text == "")
        #expect(try await diary.run(session.dataTask(with: get)).text == "hello")
        let again = try await diary.run(session.dataTask(with: head))
        #expect(again.text == "" && again.fetches == [.localCache])
        #expect(try await diary.run(session.dataTask(with: get)).fetches == [.localCache])
        #expect(origin.requests.value.map(\.method) == ["HEAD", "GET"])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("is a redirection where a program stored one; a session stores none (§4.3)")
    func redirections() async throws {
        let origin = try await ScriptedOrigin.answering { request in
            request.target == "/old"
                ? response("301 Moved Permanently", "Location: /new", body: "moved")
                : response(body: "hello")
        }
        let directory = CacheDirectory()
        let diary = CacheDiary()
        let cache = directory.cache()
        let session = cacheSession(cache, diary)
        let url = try cacheURL(origin.url("/old"))
        for number in 0..<3 {
            let account = try await diary.run(session.dataTask(with: url))
            #expect(account.text == "hello" && account.http?.url?.path == "/new")
            #expect(account.fetches.count == 2)
            #expect((account.fetches.last == .localCache) == (number > 0))
            #expect((account.fetches.first == .localCache) == (number == 2))
            guard number == 1 else { continue }
            let fields = ["Location": "/new", "Cache-Control": "max-age=600"]
            let redirection = try #require(
                HTTPURLResponse(
                    url: url, statusCode: 301, httpVersion: "HTTP/1.1", headerFields: fields))
            cache.storeCachedResponse(
                CachedURLResponse(response: redirection, data: Data()), for: URLRequest(url: url))
        }
        #expect(origin.requests.value.map(\.target) == ["/old", "/new", "/old"])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("is the variant that the request selects (Vary)")
    func variants() async throws {
        let origin = try await ScriptedOrigin.answering { request in
            response(
                "200 OK", "Vary: X-Kind", body: "kind \(request["X-Kind"] ?? "none")")
        }
        let directory = CacheDirectory()
        let diary = CacheDiary()
        let session = cacheSession(directory.cache(), diary)
        for kind in ["a", "b", nil, "a", "b", nil] {
            var request = URLRequest(url: try cacheURL(origin.url("/a")))
            request.setValue(kind, forHTTPHeaderField: "X-Kind")
            let account = try await diary.run(session.dataTask(with: request))
            #expect(account.text == "kind \(kind ?? "none")")
        }
        #expect(origin.count == 3)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("is none to a download, nor does one leave any")
    func downloads() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "hello") }
        let directory = CacheDirectory()
        let cache = directory.cache()
        let session = cacheSession(cache, nil, .returnCacheDataElseLoad)
        for path in ["/a", "/a", "/b"] {
            let url = try cacheURL(origin.url(path))
            if path == "/b" { _ = try await session.data(from: url) }
            let (file, _) = try await session.download(from: url)
            #expect(try Data(contentsOf: file) == Data("hello".utf8))
            try FileManager.default.removeItem(at: file)
        }
        #expect(origin.count == 4)
        let request = URLRequest(url: try cacheURL(origin.url("/a")))
        #expect(cache.cachedResponse(for: request) == nil)
        session.invalidateAndCancel()
        await origin.stop()
    }
}
