import LarderControl
import LarderDisk
import Testing

@testable import larder

@Suite("What the cache verbs show")
struct CacheTextTests {
    static let row = CacheRow(
        url: "http://h/a", status: 200, bytes: 1536, ageMilliseconds: 5000,
        freshForMilliseconds: 55_000, hits: 3, tier: .disk)

    @Test("list, for people")
    func list() {
        var text = CacheListText(width: 80)
        var stale = Self.row
        stale.url = "http://h/\u{1B}b"
        stale.freshForMilliseconds = 0
        stale.tier = .both
        let lines = text.add(Self.row) + text.add(stale) + text.finish()
        #expect(
            lines == [
                "URL                  SIZE  AGE  FRESH FOR  HITS  TIER",
                "http://h/a        1.5 KiB  5 s       55 s     3  disk",
                "http://h/\\u{1b}b  1.5 KiB  5 s      stale     3  memory+disk",
            ])
    }

    static let partial = CachePartial(
        ranges: [.init(first: 0, last: 99), .init(first: 200, last: 12_387)], storedBytes: 12_288,
        completeLength: 4 << 20)

    @Test("list and show, of a response that is not all there")
    func partial() throws {
        var row = Self.row
        row.partial = Self.partial
        var text = CacheListText(width: 200)
        let lines = text.add(row) + text.finish()
        #expect(lines.last?.hasSuffix("3  disk, partial, 2 ranges, 12 KiB of 4 MiB") == true)
        var object = Self.object
        object.partial = Self.partial
        object.sha256 = nil
        let shown = CacheShowText.lines(object, nowMicroseconds: 951_782_490_000_000)
        #expect(
            shown.contains(
                "body       partial, 2 ranges, 12 KiB of 4 MiB (bytes 0-99, 200-12387)"))
        let resident = CachePartial(
            PartialObject(ranges: [0...99, 200...12_387], completeLength: 4 << 20))
        #expect(resident == Self.partial)
        object.partial?.completeLength = nil
        #expect(object.partial?.text == "partial, 2 ranges, 12 KiB of unknown length")
        #expect(
            String(decoding: RowJSON.line(row), as: UTF8.self).contains(
                "\"partial\":{\"completeLength\":4194304,\"ranges\":[{\"first\":0,\"last\":99},"))
    }

    @Test("list, for tools that take columns: a space between two, none inside")
    func columns() {
        var text = CacheListText(width: nil)
        var row = Self.row
        row.url = "http://h/a b\u{7}"
        row.method = "POST"
        row.partial = Self.partial
        row.lastUsedMicroseconds = 1_700_000_000_999_999
        #expect(
            text.add(row) == ["http://h/a%20b\\u{7} POST 200 1536 5 55 1700000000 3 disk,partial"])
        #expect(text.finish().isEmpty)
        #expect(
            CacheListText.header.split(separator: " ").count
                == text.add(Self.row).first?.split(separator: " ").count)
    }

    @Test("a table's rows wait for their widths, and can be had sooner; later rows keep to them")
    func settling() {
        var text = CacheListText(width: 60)
        #expect(text.add(Self.row).isEmpty)
        #expect(text.settle().count == 2)
        #expect(text.settle().isEmpty)
        var long = Self.row
        long.url = "http://h/" + String(repeating: "x", count: 80)
        let line = text.add(long).first ?? ""
        #expect(line.contains("…") && line.count <= 60)
        #expect(text.finish().isEmpty)
    }

    static let object = CacheObject(
        id: 7, method: "GET", url: "http://h/a",
        variant: [.init(name: "Accept-Encoding", value: "gzip"), .init(name: "X", value: "")],
        status: 200, reason: "OK", fields: [.init(name: "ETag", value: "\"1\"\r\nForged: yes")],
        trailers: [], requestTimeMicroseconds: 951_782_400_000_000,
        responseTimeMicroseconds: 951_782_400_250_000,
        storedTimeMicroseconds: 951_782_400_250_000, lastUsedMicroseconds: 951_782_460_000_000,
        freshness: .init(
            lifetimeMilliseconds: 60_000, source: "max-age", currentAgeMilliseconds: 90_000),
        isInvalidated: true, bodyBytes: 2048, hits: 1, tier: .disk, sha256: "ab")

    @Test("show")
    func show() {
        #expect(
            CacheShowText.lines(Self.object, nowMicroseconds: 951_782_490_000_000) == [
                "key        GET http://h/a", "variant    Accept-Encoding: gzip; X absent",
                "tier       disk, 1 hit", "requested  2000-02-29 00:00:00 UTC (90 s ago)",
                "received   2000-02-29 00:00:00 UTC (89 s ago), after 250 ms",
                "stored     2000-02-29 00:00:00 UTC (89 s ago)",
                "last used  2000-02-29 00:01:00 UTC (30 s ago)",
                "freshness  lifetime 60 s (max-age) - age 90 s = -30 s: stale, but invalidated: must be "
                    + "validated before use",
                "body       2 KiB (2,048 bytes), SHA-256 ab", "", "HTTP 200 OK",
                "ETag: \"1\"\\u{d}\\u{a}Forged: yes",
            ])
    }

    private static let figures = CacheFigures(
        objects: 2, bodyBytes: 2048, usedBytes: 8192, fileBytes: 16_384, capacityBytes: 10 << 30,
        hits: 9, evictions: 1, damaged: 0, freeBytes: 8192)

    @Test("stats, without a proxy")
    func stats() {
        var report = CacheStatsReport(
            session: "default", kind: "default", directory: "/c", running: nil, disk: Self.figures)
        #expect(
            CacheStatsText.lines(report, nowMicroseconds: 0) == [
                "session    default (default)", "directory  /c", "proxy      not running",
                "disk       2 objects, bodies 2 KiB, 1 evicted, 9 hits since it was made",
                "file       16 KiB, never more than 10 GiB: in use 8 KiB, free 8 KiB",
                "writer     none",
            ])
        report.disk?.writer = 7
        report.disk?.damaged = 3
        report.disk?.failures = 1000
        report.disk?.garbage = 2
        report.durability = CacheStatsReport.diskDurability
        report.setAside = [
            .init(name: "cache.mdb.damaged-1\n", bytes: 1024),
            .init(name: "cache.mdb.damaged-2", bytes: 1),
        ]
        #expect(
            CacheStatsText.lines(report, nowMicroseconds: 0).suffix(7) == [
                "under way  0 being written, 2 being deleted", "writer     process 7",
                "damaged    3 dropped", "failures   1,000 of the disk",
                "survives   kill -9: all that was committed; power failure: all but the last commit",
                "set aside  cache.mdb.damaged-1\\u{a}, 1 KiB",
                "           cache.mdb.damaged-2, 1 B",
            ])
    }

    @Test(
        "stats for Prometheus: each metric with its type, and all samples of one session's labels")
    func metrics() {
        var report = CacheStatsReport(
            session: "default", kind: "default", directory: "/c", running: nil, disk: Self.figures)
        let stopped = CacheStatsMetrics.lines(report)
        #expect(
            stopped.filter { !$0.hasPrefix("#") } == [
                #"larder_up{session="default"} 0"#,
                #"larder_objects{session="default",tier="disk"} 2"#,
                #"larder_used_bytes{session="default",tier="disk"} 8192"#,
                #"larder_capacity_bytes{session="default",tier="disk"} 10737418240"#,
            ])
        var running = SessionStatistics(session: "default", kind: "default")
        running.requests = 4
        running.misses = 1
        running.collapsed = 3
        running.reasons = ["odd\"\\\n": 3]
        report.running = running
        let lines = CacheStatsMetrics.lines(report)
        #expect(lines.first == "# HELP larder_up Whether a proxy serves the session.")
        #expect(lines.contains("# TYPE larder_requests_total counter"))
        #expect(lines.contains(#"larder_requests_total{session="default"} 4"#))
        #expect(lines.contains(#"larder_misses_total{session="default"} 1"#))
        #expect(lines.contains(#"larder_collapsed_total{session="default"} 3"#))
        #expect(
            lines.contains(#"larder_decisions_total{session="default",reason="odd\"\\\n"} 3"#))
        #expect(lines.count { $0.contains("TYPE larder_objects ") } == 1)
        #expect(!lines.contains { $0.contains(#"tier="disk""#) })
    }

    @Test("stats tell apart who was answered by an origin, and who by another request's fetch")
    func collapsed() {
        var running = SessionStatistics(session: "default", kind: "default")
        running.requests = 50
        running.misses = 1
        running.collapsed = 49
        var report = CacheStatsReport(
            session: "default", kind: "default", directory: nil, running: running, disk: nil)
        let lines = CacheStatsText.lines(report, nowMicroseconds: 0)
        for line in [
            "requests  50, hit ratio 0.0% (0 hits, 0 validated, 1 misses, 49 collapsed, 0 failed)",
            "answered  from memory 0 (0.0%), from disk 0 (0.0%), by origins 1 (2.0%), by another "
                + "request's fetch 49 (98.0%)",
        ] { #expect(lines.contains(line), "\(lines)") }
        // A proxy of an older release tells nothing of the kind.
        report.running?.collapsed = nil
        let older = CacheStatsText.lines(report, nowMicroseconds: 0)
        #expect(!older.contains { $0.contains("collapsed") || $0.contains("fetch") })
    }

    @Test("stats, with a proxy")
    func running() {
        var running = SessionStatistics(
            session: "default", kind: "default", memory: .init(hits: 2))
        running.requests = 4
        running.hits = 2
        running.validated = 1
        running.misses = 1
        running.bytesServed = 4096
        running.bytesFromCache = 1024
        var report = CacheStatsReport(
            session: "default", kind: "default", directory: "/c", running: running, disk: nil)
        #expect(
            CacheStatsText.lines(report, nowMicroseconds: 0) == [
                "session    default (default)", "directory  /c",
                "requests   4, hit ratio 75.0% (2 hits, 1 validated, 1 misses, 0 failed)",
                "answered   from memory 2 (50.0%), from disk 1 (25.0%), by origins 1 (25.0%)",
                "served     4 KiB, from the cache 1 KiB (25.0%)",
                "memory     0 objects, 0 B of 0 B, 0 evicted, 2 hits",
                "disk       nothing stored yet",
            ])
        running.gapFetches = 5
        running.bodiesResumed = 2
        running.partsKept = 3
        running.backgroundFetches = 1
        running.pid = 8
        running.startedMicroseconds = 951_782_400_000_000
        running.stored = 1
        running.storesRefused = 3
        running.storesTooSlow = 2
        running.clientsCutOff = 1
        running.cancelled = 2
        running.storeFailures = 4
        running.acts = ["challenge-answered": 2, "credential-injected": 7]
        running.trouble = DiskTrouble(
            cause: "/c/cache.mdb: no space left", microseconds: 951_782_401_000_000, isOver: false)
        report.running = running
        let lines = CacheStatsText.lines(report, nowMicroseconds: 951_782_490_000_000)
        for line in [
            "proxy      process 8, for 90 s, since 2000-02-29 00:00:00 UTC",
            "requests   4, hit ratio 75.0% (2 hits, 1 validated, 1 misses, 0 failed, 2 cancelled)",
            "fetches    5 gaps filled, 2 bodies resumed, 3 parts kept, 1 background validations",
            "stored     1 response, 3 refused, for 2 of which the disk was too slow",
            "cut off    1 client that took nothing while others waited",
            "acts       credential-injected 7", "           challenge-answered 2",
            "failures   4 of the disk",
            "last       2000-02-29 00:00:01 UTC, /c/cache.mdb: no space left; nothing is stored for "
                + "now",
        ] { #expect(lines.contains(line), "\(line)") }
        report.running?.trouble?.isOver = true
        #expect(
            CacheStatsText.lines(report, nowMicroseconds: 0).last?.hasSuffix("; stored again since")
                == true)
    }
}
