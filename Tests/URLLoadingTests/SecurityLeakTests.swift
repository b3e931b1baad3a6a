import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("What must be kept to itself (§5, §6, §16)", .timeLimit(.minutes(5)))
struct SecurityLeakTests {
    private static let fields = [
        "Authorization": "Bearer s3cr3t-a", "Cookie": "c=s3cr3t-c",
        "Proxy-Authorization": "Basic s3cr3t-p",
    ]

    @Test("a redirection to another host or port takes no secret along, in whatever way it comes")
    func redirected() async throws {
        let other = try await ScriptedOrigin.answering { _ in response(body: "elsewhere") }
        for status in [301, 302, 303, 307, 308] {
            for host in ["127.0.0.1", "localhost"] {
                let location = "http://\(host):\(other.port)/\(status)"
                let origin = try await ScriptedOrigin.answering { _ in
                    response("\(status) X", "Location: \(location)", "Set-Cookie: s=s3cr3t-s")
                }
                let session = URLSession.alone { $0.httpShouldSetCookies = false }
                let url = origin.url("/").replacingOccurrences(of: "//", with: "//u:s3cr3t-u@")
                var request = URLRequest(url: try #require(URL(string: url)))
                request.allHTTPHeaderFields = Self.fields
                let loaded = await session.loaded(request)
                #expect(loaded.text == "elsewhere")
                session.invalidateAndCancel()
                await origin.stop()
            }
        }
        #expect(other.count == 10)
        for head in other.requests.value {
            #expect(!head.fields.joined().contains("s3cr3t"), "\(head.fields)")
        }
        await other.stop()
    }

    @Test("an error shows no password of the URL, and names the URL all the same")
    func errors() async throws {
        let session = URLSession.alone()
        let loaded = try await session.loaded("http://user:s3cr3t@127.0.0.1:1/p?q")
        let error = try #require(loaded.error)
        #expect(error.code == .cannotConnectToHost)
        #expect(!shown(error).contains("s3cr3t"))
        #expect(!shown(error.userInfo).contains("s3cr3t"))
        #expect((error.userInfo[NSURLErrorFailingURLErrorKey] as? URL)?.path == "/p")
        let text = error.userInfo["NSErrorFailingURLStringKey"] as? String
        #expect(text?.hasSuffix("127.0.0.1:1/p?q") == true)
        let bad = try await session.loaded("nonsense://user:s3cr3t@host/")
        #expect(bad.code == .unsupportedURL && !shown(bad.error as Any).contains("s3cr3t"))
        session.invalidateAndCancel()
    }

    @Test("no description or dump of what a task has shows a secret")
    func descriptions() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response("200 OK", "Set-Cookie: s=s3cr3t-s", body: "x")
        }
        let delegate = MetricsKeeper()
        let session = URLSession.alone(delegate) {
            (configuration: URLSessionConfiguration) in
            configuration.httpAdditionalHeaders = ["Authorization": "s3cr3t", "Cookie": "s3cr3t"]
            configuration.connectionProxyDictionary = [
                "ExceptionsList": ["*"], "HTTPProxy": "h", "HTTPPort": 1, "HTTPUser": "u",
                "HTTPPassword": "s3cr3t",
            ]
        }
        let url = origin.url("/").replacingOccurrences(of: "//", with: "//u:s3cr3t-u@")
        var request = URLRequest(url: try #require(URL(string: url)))
        request.allHTTPHeaderFields = Self.fields
        let task = session.dataTask(with: request)
        task.resume()
        try await delegate.metrics.wait(for: "the metrics") { $0 != nil }
        let metrics = try #require(delegate.metrics.value)
        let received = try #require(task.response)
        let cached = CachedURLResponse(response: received, data: Data())
        let things: [(String, Any)] = [
            ("task", task), ("session", session), ("configuration", session.configuration),
            ("request", request), ("NSURLRequest", request as NSURLRequest),
            ("mutable", (request as NSURLRequest).mutableCopy()), ("response", received),
            ("metrics", metrics), ("transaction", metrics.transactionMetrics.first as Any),
            ("cached", cached), ("storage", session.configuration.httpCookieStorage as Any),
            ("cookies", session.configuration.httpCookieStorage?.cookies as Any),
        ]
        for (name, thing) in things {
            #expect(!shown(thing).contains("s3cr3t"), "\(name): \(shown(thing))")
        }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("files of a cache hold no secret of the requests, nor a password of the URL")
    func cacheFile() async throws {
        let directory = CacheDirectory()
        let origin = try await ScriptedOrigin.answering { _ in
            response("200 OK", "Vary: Cookie, Authorization", body: "a body to be found")
        }
        let cache = directory.cache(memory: 0)
        let session = URLSession.alone { $0.urlCache = cache }
        let url = origin.url("/").replacingOccurrences(of: "//", with: "//u:s3cr3t-u@")
        var request = URLRequest(url: try #require(URL(string: url)))
        request.allHTTPHeaderFields = Self.fields
        #expect(await session.loaded(request).status == 200)
        // By the program itself.
        let stored = try cachedText("a body to be found", for: url)
        cache.storeCachedResponse(stored, for: request)
        let varying = try cachedText(
            "a body to be found", for: url + "varying", fields: ["Vary": "Authorization, Cookie"])
        var asked = request
        asked.url = URL(string: url + "varying")
        cache.storeCachedResponse(varying, for: asked)
        #expect(cache.cachedResponse(for: asked) != nil)
        let plain = CachedURLResponse(
            response: URLResponse(
                url: try #require(URL(string: url)), mimeType: "x/y", expectedContentLength: 1,
                textEncodingName: nil), data: Data("x".utf8))
        cache.storeCachedResponse(plain, for: request)
        #expect(cache.cachedResponse(for: request) != nil)
        var ftp = URLRequest(url: try #require(URL(string: "odd://u:s3cr3t-o@host/")))
        ftp.allHTTPHeaderFields = Self.fields
        cache.storeCachedResponse(plain, for: ftp)
        session.invalidateAndCancel()
        await origin.stop()
        var found = 0
        let names = FileManager.default.enumerator(atPath: directory.path)?.allObjects ?? []
        for case let name as String in names {
            guard let bytes = FileManager.default.contents(atPath: "\(directory.path)/\(name)")
            else { continue }
            found += 1
            #expect(bytes.range(of: Data("s3cr3t".utf8)) == nil, "\(name)")
        }
        #expect(found > 0)
    }
}

private final class MetricsKeeper: NSObject, URLSessionDataDelegate, Sendable {
    let metrics = Event<URLSessionTaskMetrics?>(nil)

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.metrics.change { $0 = metrics }
    }
}
