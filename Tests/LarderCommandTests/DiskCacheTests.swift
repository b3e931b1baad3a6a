import ArgumentParser
import Foundation
import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import larder

/// Tells when a sink has ended.
private final class EndObserver: ObjectSinkObserver {
    private let ended: @Sendable (SinkOutcome) -> Void

    init(_ ended: @escaping @Sendable (SinkOutcome) -> Void) { self.ended = ended }

    func sink(written offset: UInt64) {}
    func sinkEnded(_ outcome: SinkOutcome) { self.ended(outcome) }
}

@Suite("The cache's file, read by a command", .timeLimit(.minutes(10)))
struct DiskCacheTests {
    private static let urls = ["http://a.example/1", "http://a.example/2", "http://b.example/1"]

    /// Runs `body` with a cache that holds one response for each URL, written by a store that has
    /// been closed.
    private func withCache(
        _ body: (_ directory: String, _ cache: DiskCache) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-command-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var session = SessionSettings(name: .default)
        session.cache.disk = .mebibytes(16)
        let before = try DiskCache(directory: directory, session: session)
        #expect(before.map { _ in true } == nil)
        let now = Timestamp(microseconds: wallClockMicroseconds())
        let store = try DiskStore.open(
            DiskConfiguration(directory: directory, capacity: .mebibytes(16)), clock: { now },
            report: { Issue.record("\($0)") })
        for url in Self.urls { try await self.put(url, into: store, at: now) }
        await withCheckedContinuation { done in store.close { done.resume() } }
        let cache = try #require(try DiskCache(directory: directory, session: session))
        try await body(directory, cache)
    }

    private func put(
        _ url: String, _ fields: Fields = [:], asked: Fields = [:],
        body: [UInt8] = Array("hello".utf8), into store: DiskStore, at now: Timestamp
    ) async throws {
        let uri = try #require(TargetURI(text: url))
        var all: Fields = ["Cache-Control": "max-age=3600", "Content-Type": "text/plain"]
        all.append(contentsOf: fields)
        var stored = StoredHead(
            status: .ok, reason: "OK", fields: all, requestTime: now, responseTime: now)
        stored.varyingFields = asked
        let (key, head) = Storability.place(
            stored, for: Request(method: .get, uri: uri, fields: asked),
            configuration: PolicyConfiguration())
        let outcome = await withCheckedContinuation { done in
            let sink = store.store(
                head, for: key, length: UInt64(body.count), replacing: [],
                observer: EndObserver { done.resume(returning: $0) })
            sink?.write(ByteBuffer(bytes: body))
            sink?.commit(trailers: Fields())
        }
        guard case .visible = outcome else {
            Issue.record("\(outcome)")
            return
        }
    }

    @Test("finds what answers several queries, under the URL that it was stored for")
    func search() async throws {
        try await self.withCache { directory, cache in
            try await self.writing(in: directory) { store, now in
                try await self.put(
                    "http://c.example/p?a=1", ["No-Vary-Search": "params=(\"a\")"], into: store,
                    at: now)
            }
            let found = try cache.objects(for: "http://c.example/p?a=2")
            #expect(found.map(\.url) == ["http://c.example/p?a=1"])
            let object = try #require(found.first)
            var body: [UInt8] = []
            try cache.readBody(of: object) { body += $0 }
            #expect(body == Array("hello".utf8))
            #expect(try cache.objects(for: "http://c.example/p?b=1").isEmpty)
            var urls: [String] = []
            try cache.forEach(ListFilter(), step: { _ in }) {
                urls.append($0.row.url)
                return true
            }
            #expect(urls.contains("http://c.example/p?a=1"))
        }
    }

    @Test("reads the body of each variant where it was found, and looks for their URL once")
    func variants() async throws {
        try await self.withCache { directory, cache in
            let languages = ["de", "en", "fr"]
            try await self.writing(in: directory) { store, now in
                for language in languages {
                    try await self.put(
                        "http://c.example/v", ["Vary": "Accept-Language"],
                        asked: ["Accept-Language": language], body: Array(language.utf8),
                        into: store, at: now)
                }
            }
            let objects = try cache.objects(for: "http://c.example/v")
            #expect(objects.compactMap { $0.variant.first?.value }.sorted() == languages)
            for var object in objects {
                // A look for this would find nothing, and every look reads all variants of a URL.
                object.url = "http://c.example/elsewhere"
                var body: [UInt8] = []
                try cache.readBody(of: object) { body += $0 }
                #expect(String(decoding: body, as: UTF8.self) == object.variant.first?.value)
            }
        }
    }

    @Test("knows what its group has made invalid (RFC 9875 §2.2.1)")
    func groups() async throws {
        try await self.withCache { directory, cache in
            try await self.writing(in: directory) { store, now in
                for name in ["a", "b"] {
                    try await self.put(
                        "http://c.example/\(name)", ["Cache-Groups": "\"\(name)\""], into: store,
                        at: now)
                }
                let origin = try #require(TargetURI(text: "http://c.example/"))
                store.noteInvalidation(
                    ofGroup: CacheGroups.name(of: "b", at: origin), at: now + .seconds(1))
            }
            for (name, isInvalidated) in [("a", false), ("b", true)] {
                let url = "http://c.example/\(name)"
                #expect(try cache.objects(for: url).map(\.isInvalidated) == [isInvalidated])
                let uri = try #require(TargetURI(text: url))
                #expect(try cache.heads(for: uri).map(\.head.isInvalidated) == [isInvalidated])
            }
        }
    }

    /// Runs `body` with a store that is open to write, and closed afterwards.
    private func writing(
        in directory: String, _ body: (DiskStore, Timestamp) async throws -> Void
    ) async throws {
        let now = Timestamp(microseconds: wallClockMicroseconds())
        let store = try DiskStore.open(
            DiskConfiguration(directory: directory, capacity: .mebibytes(16)), clock: { now },
            report: { Issue.record("\($0)") })
        try await body(store, now)
        await withCheckedContinuation { done in store.close { done.resume() } }
    }

    @Test("is exported as it is at the beginning, also after the clock was set back")
    func exported() async throws {
        try await self.withCache { directory, _ in
            let inspector = try DiskInspector(directory: directory)
            let source = try ExportSource(inspector, startMicroseconds: 0)
            var count = 0
            try inspector.forEachObject { object in
                try source.check(object)
                var later = object
                later.id = try inspector.nextID()
                #expect(throws: ExportRefusal.later) { try source.check(later) }
                count += 1
                return true
            }
            #expect(count == Self.urls.count)
        }
    }

    /// Writes a HAR file of all; answers its entries, too, a line each.
    private func har(
        of directory: String, longestEntry: Int
    ) throws -> (summary: ExportSummary, entries: [Substring]) {
        let path = directory + "/archive.har"
        let output = try ArchiveFile(name: path, replaces: true)
        let inspector = try DiskInspector(directory: directory)
        let writer = HARWriter(
            output, source: try ExportSource(inspector, startMicroseconds: 0),
            longestEntry: longestEntry)
        try writer.begin()
        try inspector.forEachObject {
            try writer.write($0)
            return true
        }
        try writer.end()
        try output.finish()
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(text.utf8)) }
        let lines = text.split(separator: "\n").dropFirst().dropLast()
        return (writer.summary, lines.map { $0.hasSuffix(",") ? $0.dropLast() : $0 })
    }

    @Test(
        "is exported as HAR but for what no import would hold, to the byte",
        arguments: [
            Array(String(repeating: "\u{1}\"\\\n\tä", count: 500).utf8),
            [UInt8](repeating: 0xFF, count: 1000), [UInt8](repeating: 0xFF, count: 1001),
        ])
    func largeEntry(_ body: [UInt8]) async throws {
        try await self.withCache { directory, _ in
            try await self.writing(in: directory) { store, now in
                try await self.put("http://c.example/large", body: body, into: store, at: now)
            }
            let whole = try self.har(of: directory, longestEntry: 1 << 20)
            #expect(whole.summary.responses == 4)
            let longest = try #require(whole.entries.map(\.utf8.count).max())
            let exact = try self.har(of: directory, longestEntry: longest)
            #expect(exact.summary.leftOut == [:])
            for bound in [longest - 1, body.count - 1] {
                let less = try self.har(of: directory, longestEntry: bound)
                #expect(less.summary.leftOut["too-large", default: 0] >= 1)
                #expect(less.summary.responses == UInt64(less.entries.count))
                #expect(less.summary.records == less.summary.responses)
                #expect(less.summary.bodyBytes == less.summary.responses * 5)
            }
        }
    }

    @Test("is exported as HAR but for heads that are not UTF-8")
    func oddHead() async throws {
        try await self.withCache { directory, _ in
            try await self.writing(in: directory) { store, now in
                var fields = Fields()
                fields.append("X-Odd", [0x61, 0xFF] as [UInt8])
                try await self.put("http://c.example/odd", fields, into: store, at: now)
                try await self.put("http://c.example/even", ["X-Odd": "ä"], into: store, at: now)
            }
            let written = try self.har(of: directory, longestEntry: 1 << 20)
            #expect(written.summary.leftOut == ["head-not-text": 1])
            #expect(written.entries.count == 4)
            #expect(written.entries.contains { $0.contains("ä") })
        }
    }

    @Test("lists what is stored")
    func list() async throws {
        try await self.withCache { _, cache in
            var rows: [CacheRow] = []
            var walked = 0
            try cache.forEach(ListFilter(), step: { walked += $0 }) {
                rows.append($0.row)
                return true
            }
            #expect(walked == 3)
            #expect(rows.map(\.url).sorted() == Self.urls)
            #expect(rows.allSatisfy { $0.bytes == 5 && $0.isFresh && $0.tier == .disk })
            #expect(try cache.figures().objects == 3)
        }
    }

    @Test(
        "is left to the service whose it is, whatever root does to look into it",
        .enabled(if: geteuid() == 0, "only root can"))
    func foreign() async throws {
        try await self.withCache { directory, cache in
            for name in ["cache.lock", "cache.mdb-lock"] {
                try #require(unsafe unlink("\(directory)/\(name)") == 0)
            }
            for path in [directory, "\(directory)/cache.mdb"] {
                try #require(unsafe chown(path, 1, 1) == 0)
            }
            let file = FileManager.default.temporaryDirectory
                .appendingPathComponent("larder-command-\(UUID().uuidString).yaml")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data("sessions: { default: { cache: { directory: \(directory) } } }\n".utf8)
                .write(to: file)
            try cache.forEach(ListFilter(), step: { _ in }) { _ in true }
            try await CacheVerify.parse(["--config", file.path]).run()
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(Set(names) == ["cache.lock", "cache.mdb", "cache.mdb-lock"])
            for name in names {
                var status = stat()
                try #require(unsafe lstat("\(directory)/\(name)", &status) == 0)
                #expect(status.st_uid == 1 && status.st_gid == 1, "\(name)")
            }
        }
    }

    @Test("shows one, however its URL is written")
    func show() async throws {
        try await self.withCache { _, cache in
            let objects = try cache.objects(for: "HTTP://A.example:80/1")
            let object = try #require(objects.first)
            #expect(objects.count == 1 && object.status == 200)
            #expect(object.fields.first == CacheField(name: "Cache-Control", value: "max-age=3600"))
            #expect(object.freshness.source == "max-age")
            #expect(object.freshness.lifetimeMilliseconds == 3_600_000)
            var body: [UInt8] = []
            try cache.readBody(of: object) { body += $0 }
            #expect(body == Array("hello".utf8))
            #expect(try cache.objects(for: "http://a.example/3").isEmpty)
            #expect(throws: CommandFailure.self) { try cache.objects(for: "a.example/1") }
        }
    }

    @Test(
        "is purged where no proxy runs",
        arguments: [
            (.url("http://a.example/1"), 1), (.host("A.example"), 2), (.pattern("*/1"), 2),
            (.all, 3),
            (.host("c.example"), 0), (.pattern("http://a"), 0),
        ] as [(PurgeSelection, Int)])
    func purge(_ selection: PurgeSelection, _ expected: Int) async throws {
        try await self.withCache { _, cache in
            let removed = try await cache.purge(selection)
            #expect(removed == expected)
        }
    }
}

@Suite("What a purge is about")
struct PurgeFilterTests {
    @Test(
        "is asked of each key",
        arguments: [
            (.url("HTTP://H:80/a?b"), "http://h/a?b", true),
            (.url("http://h/a"), "http://h/a?b", false),
            (.host("h"), "https://h:8443/x", true), (.host("::1"), "http://[::1]:80/", true),
            (.host("[::1]"), "http://[::1]/", true), (.host("h"), "http://h.example/", false),
            (.pattern("http://*/a*"), "http://h/a?b", true), (.pattern("h"), "http://h/", false),
            (.all, "ftp://h/x", true),
        ] as [(PurgeSelection, String, Bool)])
    func matches(_ selection: PurgeSelection, _ url: String, _ expected: Bool) throws {
        let filter = try PurgeFilter(selection)
        let uri = try #require(TargetURI(text: url))
        #expect(filter.matches(CacheKey(method: .get, uri: uri)) == expected)
    }

    @Test("A URL that is none is refused")
    func invalid() {
        #expect(throws: ControlRefusal.self) { try PurgeFilter(.url("not a url")) }
    }
}
