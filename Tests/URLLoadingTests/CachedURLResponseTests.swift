import Foundation
import LarderHTTP
import Synchronization
import Testing

@testable import URLLoading

@Suite("CachedURLResponse (§8.2)")
struct CachedURLResponseTests {
    private func plain(_ url: String) throws -> URLResponse {
        URLResponse(
            url: try cacheURL(url), mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
    }

    @Test("is equal by response, body and policy; user info does not count")
    func equality() throws {
        let data = Data([1, 2, 3])
        let one = CachedURLResponse(
            response: try self.plain("http://h/"), data: data, userInfo: ["a": 1],
            storagePolicy: .allowed)
        let same = CachedURLResponse(response: one.response, data: Data([1, 2, 3]))
        #expect(one.isEqual(same))
        #expect(one.hash == same.hash)
        #expect(!one.isEqual(CachedURLResponse(response: one.response, data: Data([1, 2]))))
        #expect(
            !one.isEqual(
                CachedURLResponse(
                    response: one.response, data: data, storagePolicy: .allowedInMemoryOnly)))
        #expect(!one.isEqual(NSObject()))
        #expect(!one.isEqual(nil))
    }

    @Test("may be kept anywhere, without user info, unless it says otherwise")
    func defaults() throws {
        let cached = CachedURLResponse(response: try self.plain("http://h/"), data: Data())
        #expect(cached.storagePolicy == .allowed)
        #expect(cached.userInfo == nil)
        #expect(cached.copy() as? CachedURLResponse === cached)
    }

    @Test("survives an archive, but for what no property list holds")
    func coding() throws {
        let cached = try cachedText(
            "body", for: "http://h/a", fields: ["X-A": "b"],
            userInfo: ["a": "b", "thing": NSObject()], policy: .allowedInMemoryOnly)
        let archive = try NSKeyedArchiver.archivedData(
            withRootObject: cached, requiringSecureCoding: true)
        let again = try #require(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: archive))
        #expect(again.text == "body")
        #expect(again.storagePolicy == .allowedInMemoryOnly)
        #expect(again.userInfo?["a"] as? String == "b")
        #expect(again.userInfo?.count == 1)
        let response = try #require(again.response as? HTTPURLResponse)
        #expect(response.statusCode == 200)
        #expect(response.url?.absoluteString == "http://h/a")
        #expect(response.allHeaderFields["X-A"] as? String == "b")
    }

    @Test("is not read from an archive that lacks a part of it", arguments: ["response", "data"])
    func incomplete(missing: String) throws {
        let cached = try cachedText("body", for: "http://h/a")
        let parts = ["response": CacheNote(cached).encoded(withFields: true), "data": cached.data]
        let coder = NSKeyedArchiver(requiringSecureCoding: true)
        for (key, part) in parts where key != missing { coder.encode(part as NSData, forKey: key) }
        let reader = try NSKeyedUnarchiver(forReadingFrom: coder.encodedData)
        #expect(CachedURLResponse(coder: reader) == nil)
    }

    private func archived(_ cached: CachedURLResponse) throws -> CachedURLResponse? {
        let archive = try NSKeyedArchiver.archivedData(
            withRootObject: cached, requiringSecureCoding: true)
        return try NSKeyedUnarchiver.unarchivedObject(
            ofClass: CachedURLResponse.self, from: archive)
    }

    @Test("keeps in an archive what request it was loaded for, where it was loaded")
    func loadedFor() throws {
        let made = try cachedText("body", for: "http://h/a", fields: ["Vary": "Cookie"])
        #expect(try #require(try self.archived(made)).varyingFields == nil)
        for fields in [Fields(), ["Cookie": "sealed-1", "accept": "x, y"]] {
            let loaded = made.loaded(for: fields)
            #expect(loaded.isEqual(made) && loaded.loaded(for: ["A": "b"]) === loaded)
            let again = try #require(try self.archived(loaded)).varyingFields
            #expect(again?.pairs.map(\.value) == fields.pairs.map(\.value))
        }
    }

    @Test("survives an archive also without a URL")
    func nowhere() throws {
        for response in [URLResponse(), HTTPURLResponse()] {
            let cached = CachedURLResponse(response: response, data: Data([1]))
            let again = try #require(try self.archived(cached))
            #expect(again.isEqual(cached) && again.response.url == nil)
            #expect(type(of: again.response) == type(of: response))
        }
    }

    @Test("reads a proposed body once, when it is asked for")
    func lazy() throws {
        let reads = Atomic(0)
        let count = { reads.load(ordering: .relaxed) }
        let body = CachedBody(reading: {
            reads.add(1, ordering: .relaxed)
            return Data([7])
        })
        let cached = CachedURLResponse(
            response: try self.plain("http://h/"), body: body, varyingFields: Fields())
        #expect(count() == 0)
        #expect(cached.data == Data([7]))
        #expect(cached.data == Data([7]))
        #expect(count() == 1)
    }

    @Test("a note that is damaged is none, and never a trap")
    func damagedNotes() throws {
        let cached = try cachedText("body", for: "http://h/a", userInfo: ["a": ["b": [1, 2]]])
        let bytes = CacheNote(cached).encoded(withFields: true)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x55
            _ = CacheNote(damaged)?.response()
            #expect(CacheNote(bytes.prefix(index))?.response() == nil)
        }
        for odd in [["status": -7, "http": true, "url": "http://h/"], ["url": 7], [:]]
            as [[String: Any]]
        {
            let data = try PropertyListSerialization.data(
                fromPropertyList: odd, format: .binary, options: 0)
            #expect((CacheNote(data)?.response() == nil) == !(odd["url"] is String))
        }
    }
}
