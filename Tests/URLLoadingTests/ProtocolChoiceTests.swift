import Foundation
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Which URLProtocol loads a request (§10)")
struct ProtocolChoiceTests {
    /// Knows requests by the last component of their path, which is in the class's name.
    class Named: URLProtocol {
        class var names: [String] { [] }
        override class func canInit(with request: URLRequest) -> Bool {
            self.names.contains(request.url?.lastPathComponent ?? "")
        }
    }
    final class First: Named { override class var names: [String] { ["first", "both"] } }
    final class Second: Named { override class var names: [String] { ["second", "both"] } }
    /// Has its own word about tasks.
    final class ByTask: Named {
        override class var names: [String] { ["both"] }
        override class func canInit(with task: URLSessionTask) -> Bool { false }
    }
    /// Loads another request instead.
    final class Canonical: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { true }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            var request = request
            request.url = URL(string: "http://canonical/")
            return request
        }
        override func startLoading() {
            self.client?.urlProtocol(
                self,
                didFailWithError: URLError(
                    .badURL,
                    userInfo: [
                        "is": self.request.url?.absoluteString ?? "", "task": self.task != nil,
                    ]))
        }
    }

    private static func chosen(_ path: String, _ classes: [AnyClass]?) -> String? {
        let request = URLRequest(url: URL(string: "http://choice.test/\(path)")!)
        let loader = ProtocolLoader.loader(
            for: request, task: URLSessionDataTask(), classes: classes)
        return (loader as? ProtocolLoader)?.name
    }

    @Test("is the first of the configuration's that says yes")
    func order() {
        #expect(Self.chosen("both", [First.self, Second.self]) == "First")
        #expect(Self.chosen("both", [Second.self, First.self]) == "Second")
        #expect(Self.chosen("second", [First.self, Second.self]) == "Second")
        #expect(Self.chosen("both", [ByTask.self, First.self]) == "First")
        #expect(Self.chosen("other", [First.self]) == nil)
        #expect(Self.chosen("both", [NSObject.self, First.self]) == "First")
        #expect(Self.chosen("both", []) == nil && Self.chosen("both", nil) == nil)
    }

    @Test("are behind them the registered ones, newest first")
    func registered() {
        // Not known to any other test: registration is the process's.
        final class Old: Named { override class var names: [String] { ["registered"] } }
        final class New: Named { override class var names: [String] { ["registered"] } }
        final class Own: Named { override class var names: [String] { ["registered"] } }
        #expect(URLProtocol.registerClass(Old.self) && URLProtocol.registerClass(New.self))
        #expect(!URLProtocol.registerClass(NSObject.self))
        #expect(Self.chosen("registered", []) == "New")
        #expect(Self.chosen("registered", nil) == "New")
        #expect(Self.chosen("registered", [Own.self]) == "Own")
        #expect(URLProtocol.registerClass(Old.self))
        #expect(Self.chosen("registered", []) == "Old")
        URLProtocol.unregisterClass(Old.self)
        #expect(Self.chosen("registered", []) == "New")
        URLProtocol.unregisterClass(New.self)
        #expect(Self.chosen("registered", []) == nil)
    }

    @Test("loads the canonical form, made with the task")
    func canonical() async throws {
        let recorder = LoadRecorder()
        let order = try LoadOrder.of("http://a/")
        let loader = ProtocolLoader.loader(
            for: order.request, task: order.task, classes: [Canonical.self])
        _ = loader?.load(order, observer: recorder)
        try await recorder.hears("measured")
        let info = (recorder.error.withLock { $0 } as? URLError)?.userInfo
        #expect(info?["is"] as? String == "http://canonical/" && info?["task"] as? Bool == true)
    }

    @Test("does nothing by itself, and does not trap")
    func defaults() throws {
        let request = URLRequest(url: try #require(URL(string: "http://a/")))
        #expect(!URLProtocol.canInit(with: request))
        #expect(!URLProtocol.canInit(with: URLSessionDataTask()))
        #expect(URLProtocol.canonicalRequest(for: request) == request)
        #expect(URLProtocol.requestIsCacheEquivalent(request, to: request))
        let bare = URLProtocol(request: request, cachedResponse: nil, client: nil)
        bare.startLoading()
        bare.stopLoading()
        #expect(bare.request == request && bare.client == nil && bare.task == nil)
        let tasked = URLProtocol(task: URLSessionDataTask(), cachedResponse: nil, client: nil)
        #expect(tasked.request.url == nil && tasked.task != nil)
    }
}

@Suite("Caches and content of a program's URLProtocol (§10)")
struct ProtocolCacheTests {
    /// Has one stored response, and notes what is stored.
    final class NotingCache: URLCache, @unchecked Sendable {
        let stored = Event<[CachedURLResponse]>([])
        let found = Mutex<CachedURLResponse?>(nil)
        let lookUps = Event(0)

        override func storeCachedResponse(
            _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
        ) {
            self.stored.change { $0.append(cachedResponse) }
        }

        override func getCachedResponse(
            for dataTask: URLSessionDataTask,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            self.lookUps.change { $0 += 1 }
            completionHandler(self.found.withLock { $0 })
        }
    }

    private static func cache() -> NotingCache {
        NotingCache(memoryCapacity: 1000, diskCapacity: 0, diskPath: nil)
    }

    @Test("what is stored is served where the protocol calls it valid")
    func valid() async throws {
        let cache = Self.cache()
        let response = URLResponse(
            url: URL(string: "http://a/")!, mimeType: "a/b", expectedContentLength: 1,
            textEncodingName: nil)
        let stored = CachedURLResponse(
            response: response, data: Data("kept".utf8), storagePolicy: .allowed)
        cache.found.withLock { $0 = stored }
        let script = ProtocolScript {
            guard let stored = $0.it.cachedResponse else { return $0.finish() }
            $0.client?.urlProtocol($0.it, cachedResponseIsValid: stored)
            $0.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder, cache: cache)
        #expect(try await recorder.body().pieces == [Data("kept".utf8)])
        #expect(
            recorder.answer.withLock { $0?.isFromCache } == true && recorder.response == response)
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
        let reload = LoadRecorder()
        _ = script.load(reload, cache: cache) { $0.cachePolicy = .reloadIgnoringLocalCacheData }
        _ = try await reload.body()
        #expect(cache.lookUps.value == 1)
    }

    @Test(
        "what may be stored is proposed, by the protocol's policy and the room there is",
        arguments: [
            (.allowed, 50, true), (.allowedInMemoryOnly, 1, true), (.notAllowed, 1, false),
            (.allowed, 51, false),
        ] as [(URLCache.StoragePolicy, Int, Bool)])
    func storing(policy: URLCache.StoragePolicy, size: Int, isStored: Bool) async throws {
        let text = String(repeating: "x", count: size)
        for announced in [true, false] {
            let cache = Self.cache()
            let script = ProtocolScript {
                $0.respond(200, announced ? ["Content-Length": "\(size)"] : [:], policy)
                for character in text { $0.load(String(character)) }
                $0.finish()
            }
            let recorder = LoadRecorder()
            _ = script.load(recorder, cache: cache)
            #expect(try await recorder.body().pieces.count == size)
            let storing = recorder.answer.withLock { $0?.storing }
            #expect(storing != nil || !isStored)
            guard let storing else {
                let body = recorder.answer.withLock { $0?.body as? QueuedBody }
                #expect(body?.isKept == false)
                continue
            }
            let proposed = storing.proposedResponse()
            #expect(proposed.storagePolicy == (isStored ? policy : .notAllowed))
            for _ in 0..<2 {
                await withCheckedContinuation { continuation in
                    storing.decide(proposed) { continuation.resume() }
                }
            }
            #expect(cache.stored.value.count == (isStored ? 1 : 0))
            if isStored { #expect(cache.stored.value.first?.data == Data(text.utf8)) }
        }
    }

    @Test("what is looked for is what the session's policy allows, where the request says nothing")
    func sessionPolicy() async throws {
        for (own, policy, count) in [
            (.useProtocolCachePolicy, .reloadIgnoringLocalCacheData, 0),
            (.returnCacheDataElseLoad, .reloadIgnoringLocalCacheData, 1),
            (.reloadIgnoringLocalCacheData, .returnCacheDataElseLoad, 0),
        ] as [(NSURLRequest.CachePolicy, NSURLRequest.CachePolicy, Int)] {
            let cache = Self.cache()
            let recorder = LoadRecorder()
            _ = ProtocolScript { $0.finish() }.load(recorder, cache: cache, policy: policy) {
                $0.cachePolicy = own
            }
            _ = try await recorder.body()
            #expect(cache.lookUps.value == count)
        }
    }

    @Test("what never answers is not waited for")
    func silent() async throws {
        final class Silent: URLCache, @unchecked Sendable {
            override func getCachedResponse(
                for dataTask: URLSessionDataTask,
                completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
            ) {}
        }
        let recorder = LoadRecorder()
        _ = ProtocolScript {
            $0.respond()
            $0.load("a")
            $0.finish()
        }.load(
            recorder, cache: Silent(memoryCapacity: 1000, diskCapacity: 0, diskPath: nil),
            patience: .milliseconds(1))
        #expect(try await recorder.body().pieces == [Data("a".utf8)])
    }

    /// Takes the query for no part of what it loads.
    private final class Unqueried: ScriptedProtocol {
        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            var request = request
            request.url = URL(string: "http://protocol.test/canonical")
            return request
        }
    }

    @Test("what is stored and looked for is the canonical request")
    func canonical() async throws {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let found = Event<[String?]>([])
        let script = ProtocolScript { instance in
            found.change { $0.append(instance.it.cachedResponse?.text) }
            instance.respond(200, [:], .allowed)
            instance.load("stored")
            instance.finish()
        }
        for _ in 0..<2 {
            let recorder = LoadRecorder()
            _ = script.load(recorder, by: Unqueried.self, cache: cache)
            _ = try await recorder.body()
            let storing = recorder.answer.withLock { $0?.storing }
            storing?.decide(storing?.proposedResponse())
        }
        #expect(found.value == [nil, "stored"])
        let request = try cacheRequest("http://protocol.test/canonical")
        #expect(cache.cachedResponse(for: request)?.text == "stored")
    }

    @Test("the room is what sessions have: a twentieth of the disk's, where there is one")
    func room() async throws {
        let directory = CacheDirectory()
        let cache = directory.cache(memory: 8 << 20, disk: 1 << 20)
        let recorder = LoadRecorder()
        _ = ProtocolScript {
            $0.respond(200, [:], .allowed)
            $0.load(String(repeating: "x", count: (1 << 20) / 20 + 1))
            $0.finish()
        }.load(recorder, cache: cache)
        _ = try await recorder.body()
        let proposed = recorder.answer.withLock { $0?.storing }?.proposedResponse()
        #expect(proposed?.storagePolicy == .notAllowed)
    }

    @Test("nothing is stored of what is no success", arguments: [199, 200, 299, 300, 404])
    func failures(_ status: Int) async throws {
        let recorder = LoadRecorder()
        _ = ProtocolScript {
            $0.respond(status, [:], .allowed)
            $0.finish()
        }.load(recorder, cache: Self.cache())
        _ = try await recorder.body()
        let isStored = recorder.answer.withLock { $0?.storing } != nil
        #expect(isStored == (200...299).contains(status))
    }

    @Test("what was removed during the load does not come back")
    func removed() async throws {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let request = ProtocolScript().request()
        for removes in [true, false] {
            let recorder = LoadRecorder()
            _ = ProtocolScript {
                $0.respond(200, [:], .allowed)
                $0.load("a")
                if removes { cache.removeAllCachedResponses() }
                $0.finish()
            }.load(recorder, cache: cache)
            _ = try await recorder.body()
            let storing = recorder.answer.withLock { $0?.storing }
            storing?.decide(storing?.proposedResponse())
            #expect((cache.cachedResponse(for: request) == nil) == removes)
        }
    }

    @Test("nothing is stored where the program does not want it")
    func notStored() async throws {
        let cache = Self.cache()
        let recorder = LoadRecorder()
        _ = ProtocolScript {
            $0.respond(200, [:], .allowed)
            $0.load("a")
            $0.finish()
        }.load(recorder, cache: cache)
        _ = try await recorder.body()
        recorder.answer.withLock { $0?.storing }?.decide(nil)
        #expect(cache.stored.value.isEmpty)
    }

    @Test("content of an upload is found as a stream, which waits for it")
    func content() async throws {
        let fed = FedContent()
        let read = Event<Data?>(nil)
        let script = ProtocolScript { instance in
            instance.respond()
            let stream = instance.it.request.httpBodyStream
            stream?.open()
            var all = Data()
            var room = [UInt8](repeating: 0, count: 3)
            while let count = unsafe stream?.read(&room, maxLength: 3), count > 0 {
                all.append(contentsOf: room[..<count])
            }
            #expect(stream?.streamStatus == .atEnd && stream?.hasBytesAvailable == false)
            read.change { $0 = all }
            instance.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder, body: UploadSource(source: fed, length: nil))
        try await fed.isAwaited.wait(for: "a reader") { $0 }
        fed.put(.piece(ByteBuffer(string: "abcd")))
        fed.put(.piece(ByteBuffer(string: "e")))
        fed.put(.end(trailers: Fields()))
        try await read.wait(for: "the content") { $0 != nil }
        #expect(read.value == Data("abcde".utf8))
        #expect(
            recorder.said.value.filter { $0.hasPrefix("sent") } == ["sent 3", "sent 4", "sent 5"])
    }

    @Test("a protocol that waits for content is woken when the load is cancelled")
    func abortedContent() async throws {
        let fed = FedContent()
        let result = Event<Int?>(nil)
        let script = ProtocolScript { instance in
            let stream = instance.it.request.httpBodyStream
            stream?.open()
            var byte: UInt8 = 0
            let count = unsafe stream?.read(&byte, maxLength: 1)
            result.change { $0 = count }
        }
        let recorder = LoadRecorder()
        let load = script.load(recorder, body: UploadSource(source: fed, length: nil))
        try await fed.isAwaited.wait(for: "a reader") { $0 }
        load?.cancel()
        try await result.wait(for: "the reader's end") { $0 != nil }
        #expect(result.value == -1 && fed.isCancelled.value)
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
    }

    @Test("data in a request stays data")
    func data() async throws {
        let fed = FedContent()
        let script = ProtocolScript { instance in
            let body = instance.it.request.httpBody
            #expect(body == Data("x".utf8) && instance.it.request.httpBodyStream == nil)
            instance.finish()
        }
        let recorder = LoadRecorder()
        _ = script.load(recorder, body: UploadSource(source: fed, length: 1)) {
            $0.httpBody = Data("x".utf8)
        }
        _ = try await recorder.body()
        #expect(fed.isCancelled.value)
    }
}
