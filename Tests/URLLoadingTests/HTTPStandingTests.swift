import Foundation
import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Answers of a cache that are given again without judging anew")
struct HTTPStandingTests {
    final class Clock: WallClock {
        private let time = Mutex(Timestamp(seconds: 1_000_000))

        func now() -> Timestamp { self.time.withLock { $0 } }
        func advance(_ seconds: Int64) { self.time.withLock { $0 = $0 + .seconds(seconds) } }
    }

    /// A session over a cache, and an origin whose responses are numbered.
    final class Bench: Sendable {
        let clock = Clock()
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let cookies = HTTPCookieStorage()
        let upstream: ScriptedUpstream
        let engine: LoadingEngine
        let url: URL

        init(_ fields: Fields) throws {
            let count = Atomic<Int>(0)
            self.upstream = ScriptedUpstream { _, receiver, _ in
                let number = count.add(1, ordering: .relaxed).newValue
                let text = String(repeating: "x", count: number)
                _ = receiver.upstream(
                    head: ResponseHead(status: StatusCode(200), fields: fields),
                    bodyLength: .known(UInt64(number)), connection: UpstreamConnectionFacts())
                _ = receiver.upstream(piece: .init(string: text))
                receiver.upstream(finished: Fields())
            }
            let settings = URLSessionConfiguration.ephemeral
            settings.urlCache = self.cache
            settings.httpCookieStorage = self.cookies
            var surroundings = SessionEngine.Surroundings()
            let (upstream, clock) = (self.upstream, self.clock)
            surroundings.upstream = { _ in upstream }
            surroundings.clock = clock
            self.engine = try LoadingEngine(settings, surroundings)
            self.url = try #require(URL(string: "http://origin.example/a"))
        }

        var request: URLRequest { URLRequest(url: self.url) }

        func load(
            _ request: URLRequest? = nil, _ change: (inout LoadOrder) -> Void = { _ in }
        ) async throws -> LoadProbe.Heard {
            let probe = LoadProbe()
            var order = LoadOrder(request: request ?? self.request, task: URLSessionTask())
            change(&order)
            HTTPLoad(self.engine, order, probe).begin()
            return try await probe.ended()
        }

        /// Whether an answer to the plain request is kept.
        var isKept: Bool {
            let order = LoadOrder(request: self.request, task: URLSessionTask())
            guard let question = StandingLoads.Question(order),
                case .known = self.engine.standing.find(question)
            else { return false }
            return true
        }
    }

    private static let fresh: Fields = ["Cache-Control": "max-age=100", "ETag": "\"t\""]

    @Test("are what judging gives, but for the age")
    func same() async throws {
        let bench = try Bench(Self.fresh)
        _ = try await bench.load()
        let judged = try await bench.load()
        #expect(bench.isKept)
        bench.clock.advance(7)
        let before = bench.engine.caching.counters().requests
        let again = try await bench.load()
        #expect(bench.engine.caching.counters().requests == before + 1)
        #expect(again.calls == judged.calls)
        #expect(again.answer?.isFromCache == true)
        #expect(again.measured?.source == .cache)
        #expect(again.text == judged.text)
        var head = try #require(again.answer?.head)
        #expect(head.fields.string(FieldName(.age)) == "7")
        #expect(head.fields.string(FieldName(.contentLength)) == "1")
        head.fields.remove(FieldName(.age))
        var other = try #require(judged.answer?.head)
        other.fields.remove(FieldName(.age))
        #expect(head == other)
        #expect(bench.upstream.requests.value.count == 1)
    }

    @Test("are not kept of what is asked for once, or varies, or belongs to a group")
    func unkept() async throws {
        let once = try Bench(Self.fresh)
        _ = try await once.load()
        #expect(!once.isKept)
        for more: Fields in [["Vary": "Cookie"], ["Vary": "Accept"], ["Cache-Groups": "\"g\""]] {
            var fields = Self.fresh
            fields.append(contentsOf: more)
            let bench = try Bench(fields)
            for _ in 0..<3 { #expect(try await bench.load().text == "x") }
            #expect(!bench.isKept, "\(more)")
        }
    }

    @Test("are to requests of the same bytes, and of no more than a few thousand")
    func questions() throws {
        func question(_ url: String, _ fields: [String: String]? = nil) throws
            -> StandingLoads.Question?
        {
            var request = URLRequest(url: try #require(URL(string: url)))
            request.allHTTPHeaderFields = fields
            return StandingLoads.Question(LoadOrder(request: request, task: URLSessionTask()))
        }
        let plain = try #require(try question("http://h.test/"))
        #expect(try question("http://h.test/", [:]) == plain)
        #expect(try question("http://h.test/a") != plain)
        #expect(try question("http://h.test/", ["A": "1"]) != plain)
        let composed = try #require(try question("http://h.test/", ["A": "\u{E9}"]))
        #expect(try question("http://h.test/", ["A": "\u{E9}"]) == composed)
        #expect(try question("http://h.test/", ["A": "e\u{301}"]) != composed)
        let long = String(repeating: "x", count: 4_096)
        #expect(try question("http://h.test/\(long)") == nil)
        #expect(try question("http://h.test/", ["A": long]) == nil)
        #expect(try question("ftp://h.test/") == nil)
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let text: String
        let act: @Sendable (Bench) async throws -> URLRequest

        init(
            _ name: String, gets text: String,
            _ act: @escaping @Sendable (Bench) async throws -> URLRequest
        ) {
            self.testDescription = name
            self.text = text
            self.act = act
        }
    }

    private static let changes: [Change] = [
        Change("nothing", gets: "x") { $0.request },
        Change("the end of its freshness", gets: "xx") { bench in
            bench.clock.advance(100)
            return bench.request
        },
        Change("its removal", gets: "xx") { bench in
            bench.cache.removeCachedResponse(for: bench.request)
            return bench.request
        },
        Change("the removal of all", gets: "xx") { bench in
            bench.cache.removeAllCachedResponses()
            return bench.request
        },
        Change("memory that is taken away", gets: "xx") { bench in
            bench.cache.memoryCapacity = 0
            return bench.request
        },
        Change("what the program stores in its place", gets: "own") { bench in
            bench.cache.storeCachedResponse(
                try cachedText(
                    "own", for: bench.url.absoluteString, fields: ["Cache-Control": "max-age=9"]),
                for: bench.request)
            return bench.request
        },
        Change("a request that reloads", gets: "xx") { bench in
            var request = bench.request
            request.cachePolicy = .reloadIgnoringLocalCacheData
            _ = try await bench.load(request)
            return bench.request
        },
        Change("an unsafe request", gets: "xxx") { bench in
            var request = bench.request
            request.httpMethod = "POST"
            _ = try await bench.load(request)
            return bench.request
        },
        Change("a policy of the request's own", gets: "xx") { bench in
            var request = bench.request
            request.cachePolicy = .reloadIgnoringLocalCacheData
            return request
        },
        Change("a directive of the request's own", gets: "xx") { bench in
            var request = bench.request
            request.setValue("no-store, no-cache", forHTTPHeaderField: "Cache-Control")
            return request
        },
        Change("a range", gets: "") { bench in
            var request = bench.request
            request.setValue("bytes=5-", forHTTPHeaderField: "Range")
            return request
        },
        Change("a field that says nothing to a cache", gets: "x") { bench in
            var request = bench.request
            request.setValue("a", forHTTPHeaderField: "X-A")
            return request
        },
        Change("cookies, by which it does not vary", gets: "x") { bench in
            bench.cookies.setCookies(
                HTTPCookie.cookies(
                    withResponseHeaderFields: ["Set-Cookie": "a=b"], for: bench.url),
                for: bench.url, mainDocumentURL: nil)
            return bench.request
        },
    ]

    @Test("end with what changes them", arguments: Self.changes)
    func ends(_ change: Change) async throws {
        let bench = try Bench(Self.fresh)
        for _ in 0..<3 { #expect(try await bench.load().text == "x") }
        #expect(bench.isKept)
        let asked = try await change.act(bench)
        #expect(try await bench.load(asked).text == change.text)
    }
}
