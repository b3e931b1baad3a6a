import Foundation
import LarderCredentials
import LarderHTTP
import LarderSession
import LarderStore
import LarderPolicy
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Loads and the cache (§8.4)")
struct HTTPCachePolicyTests {
    /// An origin whose responses are numbered, with these fields; 304 to a request with the tag `"t"`.
    private func origin(
        _ fields: String..., cache: String? = "max-age=600"
    ) async throws -> ScriptedOrigin {
        let count = Event(0)
        return try await ScriptedOrigin.answering { request in
            if request["If-None-Match"] == "\"t\"" {
                return "HTTP/1.1 304 Not Modified\r\nETag: \"t\"\r\nX-New: 1\r\n\r\n"
            }
            let number = count.change { count in
                count += 1
                return count
            }
            var text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
            if let cache { text += "Cache-Control: \(cache)\r\n" }
            for field in fields { text += "\(field)\r\n" }
            return text + "\r\n\(number)"
        }
    }

    private func request(
        _ url: String, _ policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy
    ) -> URLRequest {
        URLRequest(
            url: URL(string: url) ?? URL(fileURLWithPath: "/"), cachePolicy: policy)
    }

    @Test("answer what is fresh from the cache, as a private cache shows it, at once")
    func fresh() async throws {
        let origin = try await self.origin("ETag: \"t\"")
        let engine = SessionEngine(.ephemeral)
        let first = try await engine.heard(self.request(origin.url("/")))
        #expect(first.answer?.isFromCache == false)
        #expect(first.answer?.head?.fields.contains(FieldName(.age)) == false)
        let second = try await engine.heard(self.request(origin.url("/")))
        #expect(second.calls == ["answered", "measured"])
        #expect(second.answer?.isFromCache == true)
        #expect(second.measured?.source == .cache)
        #expect(second.measured?.bodyBytes == 1)
        #expect(second.text == "1")
        let age = try #require(second.answer?.head?.fields.string(FieldName(.age)))
        #expect((0..<60).contains(Int(age) ?? -1))
        #expect(second.answer?.head?.fields.string(FieldName(.contentLength)) == "1")
        #expect(second.answer?.head?.fields.contains(FieldName(.cacheStatus)) == false)
        #expect(origin.count == 1)
        await origin.stop()
    }

    @Test("ask once more where what is stored is stale, and answer with it when it still holds")
    func stale() async throws {
        let origin = try await self.origin("ETag: \"t\"", cache: "max-age=0")
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(self.request(origin.url("/")))
        let second = try await engine.heard(self.request(origin.url("/")))
        #expect(second.status == 200)
        #expect(second.text == "1")
        #expect(second.answer?.isFromCache == false)
        #expect(second.answer?.head?.fields.string(FieldName("X-New")) == "1")
        #expect(origin.requests.value.last?["If-None-Match"] == "\"t\"")
        await origin.stop()
    }

    @Test(
        "never read the cache where they are to reload, and still fill it",
        arguments: [
            NSURLRequest.CachePolicy.reloadIgnoringLocalCacheData,
            .reloadIgnoringLocalAndRemoteCacheData,
        ])
    func reload(_ policy: NSURLRequest.CachePolicy) async throws {
        let origin = try await self.origin()
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(self.request(origin.url("/")))
        let second = try await engine.heard(self.request(origin.url("/"), policy))
        #expect(second.text == "2")
        let third = try await engine.heard(self.request(origin.url("/")))
        #expect(third.text == "2")
        #expect(third.answer?.isFromCache == true)
        let tells = policy == .reloadIgnoringLocalAndRemoteCacheData
        #expect(origin.requests.value.last?["Cache-Control"] == (tells ? "no-cache" : nil))
        #expect(origin.requests.value.last?["Pragma"] == (tells ? "no-cache" : nil))
        await origin.stop()
    }

    @Test(
        "answer with what is stored whatever its age, where they are told to",
        arguments: [
            NSURLRequest.CachePolicy.returnCacheDataElseLoad, .returnCacheDataDontLoad,
        ])
    func cacheData(_ policy: NSURLRequest.CachePolicy) async throws {
        let origin = try await self.origin("ETag: \"t\"", cache: "max-age=0")
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(self.request(origin.url("/")))
        let second = try await engine.heard(self.request(origin.url("/"), policy))
        #expect(second.text == "1")
        #expect(second.answer?.isFromCache == true)
        #expect(origin.count == 1)
        await origin.stop()
    }

    @Test(
        "answer with what nothing but they could use: neither freshness nor a validator (§4.3, §8.4)",
        arguments: [nil, "Cache-Control: no-cache", "Cache-Control: max-age=0, must-revalidate"])
    func unusable(_ line: String?) async throws {
        let lines = [line, "Content-Length: 5"].compactMap(\.self).joined(separator: "\r\n")
        let origin = try await ScriptedOrigin.answering { _ in
            "HTTP/1.1 200 OK\r\n\(lines)\r\n\r\nhello"
        }
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(self.request(origin.url("/")))
        let second = try await engine.heard(self.request(origin.url("/")))
        #expect(second.answer?.isFromCache == false)
        for policy in [
            NSURLRequest.CachePolicy.returnCacheDataElseLoad, .returnCacheDataDontLoad,
        ] {
            let offline = try await engine.heard(self.request(origin.url("/"), policy))
            #expect(offline.text == "hello")
            #expect(offline.answer?.isFromCache == true)
        }
        #expect(origin.count == 2)
        await origin.stop()
    }

    @Test("store nothing of a response that forbids it")
    func forbidden() async throws {
        let origin = try await self.origin(cache: "no-store")
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(self.request(origin.url("/")))
        let offline = try await engine.heard(
            self.request(origin.url("/"), .returnCacheDataDontLoad))
        #expect(offline.error?.code == .resourceUnavailable)
        await origin.stop()
    }

    @Test("load what is not stored under ElseLoad, and fail with -1008 under DontLoad")
    func absent() async throws {
        let origin = try await self.origin()
        let engine = SessionEngine(.ephemeral)
        let offline = try await engine.heard(
            self.request(origin.url("/"), .returnCacheDataDontLoad))
        #expect(offline.calls == ["failed", "measured"])
        #expect(offline.error?.code == .resourceUnavailable)
        #expect(origin.connections.value == 0)
        let loaded = try await engine.heard(
            self.request(origin.url("/"), .returnCacheDataElseLoad))
        #expect(loaded.text == "1")
        await origin.stop()
    }

    @Test("validate what is fresh where they are to revalidate")
    func revalidating() async throws {
        let origin = try await self.origin("ETag: \"t\"")
        let engine = SessionEngine(.ephemeral)
        _ = try await engine.heard(self.request(origin.url("/")))
        let second = try await engine.heard(
            self.request(origin.url("/"), .reloadRevalidatingCacheData))
        #expect(second.text == "1")
        #expect(second.status == 200)
        #expect(origin.count == 2)
        await origin.stop()
    }

    @Test("follow the session's policy, unless the request has one of its own")
    func precedence() async throws {
        let origin = try await self.origin()
        let settings = URLSessionConfiguration.ephemeral
        settings.requestCachePolicy = .returnCacheDataDontLoad
        let engine = SessionEngine(settings)
        let offline = try await engine.heard(self.request(origin.url("/")))
        #expect(offline.error?.code == .resourceUnavailable)
        let loaded = try await engine.heard(
            self.request(origin.url("/"), .reloadIgnoringLocalCacheData))
        #expect(loaded.text == "1")
        await origin.stop()
    }

    @Test("neither read nor fill the cache where they are downloads (§3.4)")
    func download() async throws {
        let origin = try await self.origin()
        let engine = SessionEngine(.ephemeral)
        func load(_ uses: Bool) async throws -> String {
            try await engine.heard(self.request(origin.url("/"))) { $0.usesCache = uses }.text
        }
        #expect(try await load(false) == "1")
        #expect(try await load(true) == "2")
        #expect(try await load(false) == "3")
        #expect(try await load(true) == "2")
        await origin.stop()
    }

    @Test("store what somebody decides who looks at it, or nothing", arguments: [true, false])
    func decided(_ stores: Bool) async throws {
        let origin = try await self.origin()
        let engine = SessionEngine(.ephemeral)
        let probe = LoadProbe(storing: { proposed in
            #expect(proposed.data == Data("1".utf8))
            return stores ? proposed : nil
        })
        let load = engine.load(
            LoadOrder(request: self.request(origin.url("/")), task: URLSessionTask()),
            observer: probe)
        try await probe.heard.wait(for: "the decision") { $0.bodyEnd != nil }
        #expect(probe.heard.value.answer?.storing != nil)
        let second = try await engine.heard(self.request(origin.url("/")))
        #expect(second.text == (stores ? "1" : "2"))
        withExtendedLifetime(load) {}
        await origin.stop()
    }

    @Test("store nothing in a session without a cache")
    func noCache() async throws {
        let origin = try await self.origin()
        let settings = URLSessionConfiguration.ephemeral
        settings.urlCache = nil
        let engine = SessionEngine(settings)
        _ = try await engine.heard(self.request(origin.url("/")))
        #expect(try await engine.heard(self.request(origin.url("/"))).text == "2")
        await origin.stop()
    }

    @Test("of a range are answered from what is whole, and never from bytes that were decoded")
    func range() async throws {
        let plain = try await self.origin()
        let coded = try await self.origin("Content-Encoding: br")
        let engine = SessionEngine(.ephemeral)
        for (origin, isServed) in [(plain, true), (coded, false)] {
            _ = try await engine.heard(self.request(origin.url("/")))
            var part = self.request(origin.url("/"))
            part.allHTTPHeaderFields = ["Range": "bytes=0-0"]
            let heard = try await engine.heard(part)
            #expect(heard.answer?.isFromCache == isServed)
            if isServed { #expect(heard.status == 206) }
            #expect(origin.count == (isServed ? 1 : 2))
            await origin.stop()
        }
        #expect(coded.requests.value.last?["Accept-Encoding"] == "identity")
    }

    @Test("with a credential are told apart by it, and no secret lies in the store (§8.3)")
    func secrets() async throws {
        let origin = try await self.origin("Vary: Authorization, Cookie")
        let running = try LoadingEngine(.ephemeral, SessionEngine.Surroundings())
        func load(_ secret: String) async throws -> String {
            let probe = LoadProbe()
            var asked = self.request(origin.url("/"))
            asked.allHTTPHeaderFields = ["Cookie": "crumb=\(secret)"]
            var order = LoadOrder(request: asked, task: URLSessionTask())
            order.authorization = .field(Secret("Bearer \(secret)"))
            HTTPLoad(running, order, probe).begin()
            return try await probe.ended().text
        }
        #expect(try await load("swordfish") == "1")
        #expect(try await load("swordfish") == "1")
        #expect(try await load("sardine") == "2")
        #expect(try await load("sardine") == "2")
        #expect(origin.requests.value.first?["Authorization"] == "Bearer swordfish")
        #expect(origin.requests.value.first?["Cookie"] == "crumb=swordfish")
        let uri = try #require(TargetURI(text: origin.url("/")))
        let stored = running.caching.store.lookupResident(CacheKey(method: .get, uri: uri)) ?? []
        #expect(stored.count == 2)
        for object in stored {
            let text = String(
                decoding: object.head.varyingFields.bytes + object.head.fields.bytes,
                as: UTF8.self)
            #expect(text.lowercased().contains("sealed-"))
            #expect(!text.contains("swordfish") && !text.contains("sardine"))
        }
        await origin.stop()
    }

    @Test("do not wait for each other: each asks for itself")
    func apart() async throws {
        let both = Event(0)
        let origin = try await ScriptedOrigin.answering { _ in
            both.change { $0 += 1 }
            try await both.wait(for: "both requests") { $0 == 2 }
            return response(body: "x")
        }
        let engine = SessionEngine(.ephemeral)
        async let one = engine.heard(origin.url("/"))
        async let other = engine.heard(origin.url("/"))
        let heard = try await [one, other]
        #expect(heard.allSatisfy { $0.text == "x" })
        await origin.stop()
    }

    @Test("that are cancelled in the middle end their transfer, and leave nothing stored")
    func cancelled() async throws {
        let left = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nETag: \"t\"\r\n"
                    + "Content-Length: 6\r\n\r\nabc")
            _ = try? await connection.request()
            left.change { $0 = true }
        }
        let engine = SessionEngine(.ephemeral)
        let probe = LoadProbe()
        let load = engine.load(
            LoadOrder(request: self.request(origin.url("/")), task: URLSessionTask()),
            observer: probe)
        try await probe.heard.wait(for: "three bytes") { $0.body.count == 3 }
        load.cancel()
        _ = try await probe.ended()
        try await left.wait(for: "the end of the connection") { $0 }
        let offline = try await engine.heard(
            self.request(origin.url("/"), .returnCacheDataDontLoad))
        #expect(offline.error?.code == .resourceUnavailable)
        await origin.stop()
    }
}
