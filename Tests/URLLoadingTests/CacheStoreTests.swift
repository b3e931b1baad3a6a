import Foundation
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// An origin that answers each request as it is told to.
final class CannedUpstream: Upstream {
    struct Canned: Sendable {
        var status: UInt16 = 200
        var fields = Fields()
        var body = ""
    }

    private final class Fetch: UpstreamFetch {
        func resume() {}
        func cancel() {}
    }

    private let answer: @Sendable (Request) -> Canned
    private let asked = Mutex<[Request]>([])

    init(_ answer: @escaping @Sendable (Request) -> Canned) {
        self.answer = answer
    }

    var requests: [Request] { self.asked.withLock { $0 } }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        self.asked.withLock { $0.append(request) }
        let canned = self.answer(request)
        _ = receiver.upstream(
            head: ResponseHead(status: StatusCode(canned.status), fields: canned.fields),
            bodyLength: .unknown,
            connection: UpstreamConnectionFacts(remoteAddress: "192.0.2.1:80"))
        if !canned.body.isEmpty {
            _ = receiver.upstream(piece: ByteBuffer(string: canned.body))
        }
        receiver.upstream(finished: Fields())
        return Fetch()
    }
}

/// A client that has the whole answer.
private final class WholeAnswer: ExchangeClient {
    private let whole = Mutex<(text: String, status: UInt16, note: String)?>(nil)
    private let done: @Sendable () -> Void

    init(_ done: @escaping @Sendable () -> Void) {
        self.done = done
    }

    var text: String? { self.whole.withLock { $0?.text } }
    var isHit: Bool { self.whole.withLock { $0?.note.contains("; hit") } ?? false }

    func exchange(informational head: ResponseHead) {}

    func exchange(answered answer: Answer) {
        let note = answer.head.fields.string("Cache-Status") ?? ""
        let finish = { @Sendable (text: String) in
            self.whole.withLock { $0 = (text, answer.head.status.rawValue, note) }
            self.done()
        }
        switch answer.body {
        case .none: finish("")
        case .resident(let bytes): finish(String(buffer: bytes))
        case .source(let source):
            BodyCollector(source) { pieces in
                finish(pieces?.map { String(buffer: $0) }.joined() ?? "broken off")
            }.begin()
        }
    }

    func exchange(failed failure: ExchangeFailure) {
        self.whole.withLock { $0 = ("failed", failure.status.rawValue, "") }
        self.done()
    }
}

/// An engine over a cache, as a session has it.
struct CacheEngine {
    let cache: URLCache
    let session: Session
    let upstream: CannedUpstream

    init(_ cache: URLCache, _ answer: @escaping @Sendable (Request) -> CannedUpstream.Canned) {
        self.cache = cache
        self.upstream = CannedUpstream(answer)
        self.session = Session(
            configuration: SessionConfiguration(policy: PolicyConfiguration(kind: .private)),
            store: cache.engineStore, upstream: self.upstream, clock: SystemClock(),
            timers: DispatchTimers())
    }

    /// Loads a URL, and has `decide` say what becomes of what is to be stored; nil: it is stored, when
    /// this returns.
    func load(
        _ url: String, asks: Bool = false, policy: RequestCachePolicy = .useProtocol,
        _ decide: ((any PendingStoring) -> Void)? = nil
    ) async throws -> (text: String, isHit: Bool) {
        let request = URLRequest(url: try cacheURL(url))
        let task = URLSessionDataTask()
        (self.cache as? OwnCache)?.know(task, asksFor: try cacheURL(url))
        let offer = self.cache.storingOffer(for: task, request, asks: asks)
        let target = try #require(CacheAddress.target(of: try cacheURL(url)))
        let exchange = Request(uri: target)
        let held = Mutex<(WholeAnswer, any Exchange)?>(nil)
        await withCheckedContinuation { continuation in
            let client = WholeAnswer { continuation.resume() }
            let running = self.cache.lending(to: task, exchange) {
                self.session.perform(
                    exchange, body: nil,
                    options: ExchangeOptions(cachePolicy: policy, storing: offer), client: client)
            }
            held.withLock { $0 = (client, running) }
        }
        if let pending = offer.pending {
            if let decide {
                decide(pending)
            } else {
                await withCheckedContinuation { continuation in
                    pending.decide(pending.proposedResponse()) { continuation.resume() }
                }
            }
        }
        let client = try #require(held.withLock { $0?.0 })
        return (try #require(client.text), client.isHit)
    }
}

@Suite("What a session stores in a URLCache (§4.3, §8.3)")
struct CacheStoreTests {
    private let directory = CacheDirectory()
    private let url = "http://origin.example/a"

    private static let fresh: @Sendable (Request) -> CannedUpstream.Canned = { _ in
        .init(fields: ["Cache-Control": "max-age=60", "X-A": "b"], body: "loaded")
    }

    @Test(
        "is found by the API, and what the API stored answers a session", arguments: [1 << 20, 0])
    func both(memory: Int) async throws {
        let cache = self.directory.cache(memory: memory)
        let engine = CacheEngine(cache, Self.fresh)
        #expect(try await engine.load(self.url).isHit == false)
        #expect(try await engine.load(self.url).isHit)
        let found = try #require(cache.cachedResponse(for: try cacheRequest(self.url)))
        #expect(found.text == "loaded")
        #expect((found.response as? HTTPURLResponse)?.allHeaderFields["X-A"] as? String == "b")
        let own = "http://origin.example/own"
        cache.storeCachedResponse(
            try cachedText("own", for: own, fields: ["Cache-Control": "max-age=60"]),
            for: try cacheRequest(own))
        let answer = try await engine.load(own)
        #expect(answer.text == "own")
        #expect(answer.isHit)
        cache.removeCachedResponse(for: try cacheRequest(own))
        #expect(try await engine.load(own).text == "loaded")
    }

    @Test("may vary by what sessions send of themselves, also where the API stored it")
    func varying() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "origin") }
        let cache = self.directory.cache(disk: 0)
        let session = cacheSession(cache)
        for field in ["Accept", "Accept-Encoding", "Accept-Language", "User-Agent"] {
            let url = origin.url("/\(field)")
            for text in ["first", "own"] {
                cache.storeCachedResponse(
                    try cachedText(
                        text, for: url, fields: ["Cache-Control": "max-age=60", "Vary": field]),
                    for: try cacheRequest(url))
            }
            #expect(cache.cachedResponse(for: try cacheRequest(url))?.text == "own")
            #expect(try await session.data(from: try cacheURL(url)).0 == Data("own".utf8))
        }
        #expect(origin.count == 0)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test(
        "is of unknown length where it was decoded, and of the announced one where not",
        arguments: [("gzip", "3", -1), ("identity", "6", 6)] as [(String, String, Int64)])
    func decoded(coding: String, announced: String, length: Int64) async throws {
        let request = try cacheRequest(self.url)
        do {
            let cache = self.directory.cache()
            let engine = CacheEngine(cache) { _ in
                .init(
                    fields: [
                        "Cache-Control": "max-age=60", "Content-Encoding": coding,
                        "Content-Length": announced,
                    ], body: "loaded")
            }
            _ = try await engine.load(self.url, asks: true) { pending in
                let proposed = pending.proposedResponse()
                #expect(proposed.response.expectedContentLength == length)
                pending.decide(proposed)
            }
            let found = try #require(cache.cachedResponse(for: request))
            #expect(found.text == "loaded" && found.response.expectedContentLength == length)
            cache.storeCachedResponse(
                CachedURLResponse(response: found.response, data: found.data), for: request)
        }
        // From the disk, as what the program stored.
        let found = try #require(self.directory.cache().cachedResponse(for: request)?.response)
        #expect(found.expectedContentLength == length)
        let field = (found as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Length")
        #expect(field == announced)
    }

    @Test("is forgotten by what is not safe, whichever task asks for it (RFC 9111 §4.4)")
    func invalidated() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "new", cache: nil) }
        let cache = self.directory.cache(disk: 0)
        let session = cacheSession(cache)
        let url = origin.url("/")
        cache.storeCachedResponse(
            try cachedText("old", for: url, fields: ["Cache-Control": "max-age=60"]),
            for: try cacheRequest(url))
        #expect(try await session.data(from: try cacheURL(url)).0 == Data("old".utf8))
        let (file, _) = try await session.download(for: try cacheRequest(url, method: "POST"))
        #expect(try Data(contentsOf: file) == Data("new".utf8))
        try? FileManager.default.removeItem(at: file)
        #expect(try await session.data(from: try cacheURL(url)).0 == Data("new".utf8))
        #expect(origin.count == 2)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("is what the program makes of the proposed response")
    func decided() async throws {
        let cache = self.directory.cache()
        let engine = CacheEngine(cache, Self.fresh)
        let request = try cacheRequest(self.url)
        let replaced = try cachedText(
            "replaced", for: self.url, fields: ["Cache-Control": "max-age=60"],
            userInfo: ["a": "b"])
        _ = try await engine.load(self.url, asks: true) { pending in
            #expect(pending.proposedResponse().text == "loaded")
            #expect(pending.proposedResponse() === pending.proposedResponse())
            pending.decide(nil)
            pending.decide(pending.proposedResponse())
        }
        #expect(cache.cachedResponse(for: request) == nil)
        _ = try await engine.load(self.url, asks: true) { $0.decide(replaced) }
        #expect(cache.cachedResponse(for: request)?.text == "replaced")
        #expect(cache.cachedResponse(for: request)?.userInfo?["a"] as? String == "b")
        let answer = try await engine.load(self.url, asks: true)
        #expect(answer.text == "replaced")
        #expect(answer.isHit)
        cache.removeAllCachedResponses()
        _ = try await engine.load(self.url, asks: true)
        #expect(cache.cachedResponse(for: request)?.text == "loaded")
    }

    @Test("reads a proposed body back also where memory has no room for it")
    func proposedFromDisk() async throws {
        let text = String(repeating: "0123456789", count: 20_000)
        let cache = self.directory.cache(memory: 0)
        let engine = CacheEngine(cache) { _ in
            .init(fields: ["Cache-Control": "max-age=60"], body: text)
        }
        _ = try await engine.load(self.url, asks: true) { pending in
            #expect(pending.proposedResponse().text == text)
            pending.decide(pending.proposedResponse())
        }
        #expect(cache.cachedResponse(for: try cacheRequest(self.url))?.text == text)
    }

    @Test("is not what a program makes of a body that could not be read back")
    func unreadable() async throws {
        let cache = self.directory.cache(memory: 0)
        let text = String(repeating: "0123456789", count: 20_000)
        let engine = CacheEngine(cache) { _ in
            .init(fields: ["Cache-Control": "max-age=60"], body: text)
        }
        let empty = Mutex(false)
        _ = try await engine.load(self.url, asks: true) { pending in
            let proposed = pending.proposedResponse()
            // What is being stored meanwhile is not stored.
            cache.diskCapacity = 16 << 20
            empty.withLock { $0 = proposed.data.isEmpty }
            pending.decide(CachedURLResponse(response: proposed.response, data: proposed.data))
        }
        #expect(empty.withLock { $0 })
        #expect(cache.cachedResponse(for: try cacheRequest(self.url)) == nil)
    }

    @Test(
        "varies by secrets as sessions seal them, whoever stored it",
        arguments: ["Authorization", "Cookie"])
    func secrets(_ field: String) async throws {
        let origin = try await ScriptedOrigin.answering { request in
            response("200 OK", "Vary: \(field)", body: "of \(request[field] ?? "nobody")")
        }
        let cache = self.directory.cache(disk: 0)
        let session = cacheSession(cache)
        func asked(_ path: String, _ secret: String?) throws -> URLRequest {
            try cacheRequest(origin.url(path), fields: secret.map { [field: $0] })
        }
        _ = try await session.data(for: try asked("/loaded", "a=1"))
        #expect(cache.cachedResponse(for: try asked("/loaded", "a=1"))?.text == "of a=1")
        #expect(cache.cachedResponse(for: try asked("/loaded", "b=2")) == nil)
        // What the program does not name matches whatever the session sent.
        let found = try #require(cache.cachedResponse(for: try asked("/loaded", nil)))
        cache.storeCachedResponse(found, for: try asked("/loaded", nil))
        _ = try await session.data(for: try asked("/loaded", "a=1"))
        #expect(origin.count == 1)
        cache.storeCachedResponse(
            try cachedText(
                "own", for: origin.url("/own"),
                fields: ["Cache-Control": "max-age=60", "Vary": field]),
            for: try asked("/own", "a=1"))
        let (own, _) = try await session.data(for: try asked("/own", "a=1"))
        #expect(own == Data("own".utf8) && origin.count == 1)
        let (other, _) = try await session.data(for: try asked("/own", nil))
        #expect(other == Data("of nobody".utf8))
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("keeps the octets of its fields, and shows them as a task's response does")
    func octets() async throws {
        let request = try cacheRequest(self.url)
        let name = Array("caf".utf8) + [0xE9]
        do {
            let cache = self.directory.cache()
            let engine = CacheEngine(cache) { _ in
                var fields: Fields = ["Cache-Control": "max-age=60"]
                fields.append("X-Name", name)
                return .init(fields: fields, body: "loaded")
            }
            _ = try await engine.load(self.url, asks: true) { pending in
                let proposed = pending.proposedResponse()
                let response = proposed.response as? HTTPURLResponse
                #expect(response?.value(forHTTPHeaderField: "X-Name") == "café")
                pending.decide(
                    CachedURLResponse(
                        response: proposed.response, data: proposed.data, userInfo: ["a": 1],
                        storagePolicy: .allowed))
            }
            let found = try #require(cache.cachedResponse(for: request))
            cache.storeCachedResponse(found, for: request)
        }
        // From the disk.
        let found = try #require(self.directory.cache().cachedResponse(for: request))
        let response = try #require(found.response as? HTTPURLResponse)
        #expect(response.allHeaderFields["X-Name"] as? String == "café")
        let address = try #require(CacheAddress(request))
        let head = StoredResponse.head(found, to: address, at: SystemClock().now())
        #expect(head.fields.first("X-Name").map { Array($0) } == name)
    }

    @Test("is no more than a twentieth of the capacity long", arguments: [1 << 20, 0])
    func twentieth(disk: Int) async throws {
        let capacity = 1 << 20
        let cache = self.directory.cache(memory: capacity, disk: disk)
        for (size, isStored) in [(capacity / 20, true), (capacity / 20 + 1, false)] {
            let engine = CacheEngine(cache) { _ in
                .init(
                    fields: ["Cache-Control": "max-age=60"],
                    body: String(repeating: "x", count: size))
            }
            let url = "\(self.url)/\(size)"
            _ = try await engine.load(url)
            #expect(try await engine.load(url).isHit == isStored)
        }
    }

    @Test("follows the request cache policies (§8.4)")
    func requestPolicies() async throws {
        let cache = self.directory.cache()
        let engine = CacheEngine(cache) { request in
            request.fields.contains(FieldName(.ifNoneMatch))
                ? .init(status: 304)
                : .init(
                    fields: ["Cache-Control": "max-age=60, must-revalidate", "ETag": "\"1\""],
                    body: "loaded")
        }
        #expect(try await engine.load(self.url, policy: .returnCacheDontLoad).text == "failed")
        _ = try await engine.load(self.url)
        for (policy, asked) in [
            (RequestCachePolicy.useProtocol, 0), (.reloadIgnoringLocal, 1), (.reloadIgnoringAll, 1),
            (.returnCacheElseLoad, 0), (.returnCacheDontLoad, 0), (.reloadRevalidating, 1),
        ] {
            let before = engine.upstream.requests.count
            #expect(try await engine.load(self.url, policy: policy).text == "loaded")
            #expect(engine.upstream.requests.count - before == asked, "\(policy)")
        }
        // Any age: also what must be validated.
        for control in ["max-age=0, must-revalidate", "no-cache", "max-age=0"] {
            cache.storeCachedResponse(
                try cachedText("old", for: self.url, fields: ["Cache-Control": control]),
                for: try cacheRequest(self.url))
            for policy in [RequestCachePolicy.returnCacheElseLoad, .returnCacheDontLoad] {
                #expect(try await engine.load(self.url, policy: policy).text == "old")
            }
        }
    }

    @Test(
        "follows the rules of a private cache (§8.3)",
        arguments: [
            ("private, max-age=60", nil, true), ("max-age=60", "Basic YQ==", true),
            ("s-maxage=60, max-age=0", nil, false), ("no-store", nil, false),
        ] as [(String, String?, Bool)])
    func privateRules(_ control: String, _ authorization: String?, _ isHit: Bool) async throws {
        let engine = CacheEngine(self.directory.cache()) { _ in
            .init(fields: ["Cache-Control": control, "ETag": "\"1\""], body: "loaded")
        }
        _ = try await engine.load(self.url)
        #expect(try await engine.load(self.url).isHit == isHit)
    }

    @Test("lies in a place of its own while another process has the first (§8)")
    func processes() async throws {
        let request = try cacheRequest(self.url)
        let other = try DiskStore.open(
            DiskConfiguration(
                directory: self.directory.path + "/responses", capacity: .mebibytes(8)),
            clock: { SystemClock().now() }, report: { _ in })
        do {
            let cache = self.directory.cache(memory: 0)
            #expect(cache.cachedResponse(for: request) == nil)
            cache.storeCachedResponse(try cachedText("second", for: self.url), for: request)
            #expect(cache.cachedResponse(for: request)?.text == "second")
        }
        #expect(self.directory.names?.sorted() == ["responses", "responses-2"])
        await withCheckedContinuation { continuation in
            other.close { continuation.resume() }
        }
        // With the other gone, the first place is free.
        let cache = self.directory.cache(memory: 0)
        #expect(cache.cachedResponse(for: request) == nil)
        cache.storeCachedResponse(try cachedText("first", for: self.url), for: request)
        #expect(cache.cachedResponse(for: request)?.text == "first")
    }
}
