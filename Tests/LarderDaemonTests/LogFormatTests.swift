import LarderConfig
import LarderHTTP
import Testing

@testable import LarderDaemon

@Suite("The access log's formats")
struct LogFormatTests {
    static func entry(
        method: String = "GET", target: String = "http://h/a", client: String = "192.0.2.1",
        agent: String? = "curl/8"
    ) -> AccessLogEntry {
        var entry = AccessLogEntry(
            end: Timestamp(microseconds: 971_186_136_012_345), duration: .milliseconds(52),
            client: client, method: method, target: target, status: 200, bytesSent: 1234,
            outcome: .miss)
        entry.origin = "198.51.100.7"
        entry.contentType = "text/html; charset=utf-8"
        entry.userAgent = agent
        entry.cacheStatus = "larder; fwd=uri-miss"
        entry.reason = "nothing-stored"
        return entry
    }

    static func line(_ format: LogSettings.AccessFormat, _ entry: AccessLogEntry) -> String {
        String(decoding: AccessLogFormatter(format).line(entry), as: UTF8.self)
    }

    @Test("Squid's native one")
    func squid() {
        #expect(
            Self.line(.squid, Self.entry())
                == "971186136.012     52 192.0.2.1 TCP_MISS/200 1234 GET http://h/a - "
                + "HIER_DIRECT/198.51.100.7 text/html\n")
    }

    @Test(
        "Squid's names the origin without its port",
        arguments: [
            ("198.51.100.7:80", "198.51.100.7"), ("[2001:db8::7]:443", "2001:db8::7"),
            ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]", "2001:db8::7"),
            ("a.example", "a.example"),
        ])
    func peer(_ origin: String, _ peer: String) {
        var entry = Self.entry()
        entry.origin = origin
        #expect(Self.line(.squid, entry).hasSuffix("HIER_DIRECT/\(peer) text/html\n"))
    }

    @Test("tell a parent proxy from an origin")
    func parent() {
        var entry = Self.entry()
        entry.isParent = true
        #expect(Self.line(.squid, entry).hasSuffix("FIRSTUP_PARENT/198.51.100.7 text/html\n"))
        #expect(Self.line(.json, entry).contains(#""origin":"198.51.100.7","parent":true,"#))
        #expect(!Self.line(.json, Self.entry()).contains("parent"))
    }

    @Test("JSON lists what the session did by itself, where it did anything")
    func acts() {
        var entry = Self.entry()
        #expect(!Self.line(.json, entry).contains("acts"))
        entry.acts = ["challenge-answered", "redirect-followed"]
        #expect(
            Self.line(.json, entry).contains(
                #""reason":"nothing-stored","acts":["challenge-answered","redirect-followed"],"#))
    }

    @Test("JSON names the access rule that denied the request")
    func rule() {
        var entry = Self.entry()
        #expect(!Self.line(.json, entry).contains("\"rule\""))
        entry.rule = "access[0]"
        #expect(Self.line(.json, entry).contains(#""reason":"nothing-stored","rule":"access[0]","#))
    }

    @Test("tell the user, escaped, and JSON the number and the session of a local one, too")
    func users() {
        var entry = Self.entry(client: "unix:1000")
        entry.user = "al ice\"\u{1B}"
        entry.uid = 1000
        entry.session = "work"
        #expect(
            Self.line(.squid, entry)
                .contains(" unix:1000 TCP_MISS/200 1234 GET http://h/a al%20ice%22%1B HIER_DIRECT/")
        )
        #expect(Self.line(.combined, entry).hasPrefix("unix:1000 - al%20ice%22%1B ["))
        let json = Self.line(.json, entry)
        #expect(
            json.contains(
                #""session":"work","client":"unix:1000","user":"al ice\"\u001B","uid":1000,"method""#
            ))
        #expect(!Self.line(.json, Self.entry()).contains("\"uid\""))
    }

    @Test("Squid's, with nothing known")
    func bare() {
        let entry = AccessLogEntry(
            end: Timestamp(microseconds: -5), duration: .seconds(-1), client: "", method: "",
            target: "", status: 0, bytesSent: 0, outcome: .denied)
        #expect(
            Self.line(.squid, entry) == "0.000      0 - TCP_DENIED/000 0 - - - HIER_NONE/- -\n")
    }

    @Test("The combined one")
    func combined() {
        #expect(
            Self.line(.combined, Self.entry())
                == "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET http://h/a HTTP/1.1\" 200 1234 "
                + "\"-\" \"curl/8\"\n")
    }

    @Test("One JSON object")
    func json() {
        #expect(
            Self.line(.json, Self.entry())
                == "{\"time\":\"2000-10-10T13:55:36.012345Z\",\"client\":\"192.0.2.1\",\"method\":\"GET\","
                + "\"url\":\"http://h/a\",\"version\":\"HTTP/1.1\",\"status\":200,\"bytesSent\":1234,"
                + "\"bytesReceived\":0,\"durationMicroseconds\":52000,\"outcome\":\"miss\","
                + "\"cacheStatus\":\"larder; fwd=uri-miss\",\"reason\":\"nothing-stored\",\"origin\":\"198.51.100.7\","
                + "\"type\":\"text/html; charset=utf-8\",\"userAgent\":\"curl/8\"}\n")
    }

    static let hostile = [
        "http://h/\n1 2 3 TCP_HIT/200", "\r\n", "a b\tc", "\"quoted\" \\\\", "\u{1B}[2J", "\u{0}",
        "\u{7F}\u{9B}31m", "é\u{202E}x\u{2028}", "\" 200 1 \"-\" \"evil",
    ]

    @Test("A stranger's bytes forge no line and no field", arguments: Self.hostile)
    func hostileTexts(_ text: String) {
        for format in LogSettings.AccessFormat.allCases {
            let entry = Self.entry(method: text, target: text, client: text, agent: text)
            let plain = AccessLogFormatter(format).line(Self.entry())
            let line = AccessLogFormatter(format).line(entry)
            #expect(line.dropLast().allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            #expect(line.last == 0x0A)
            guard format != .json else {
                let text = String(decoding: line, as: UTF8.self).unicodeScalars
                #expect(text.allSatisfy { !(0x7F..<0xA0).contains($0.value) && $0.value != 0x2028 })
                continue
            }
            #expect(line.allSatisfy { $0 < 0x7F })
            // The agent of the combined format is quoted: what counts before it is the fields.
            let head = format == .squid ? line.count : Self.thirdQuote(line)
            let plainHead = format == .squid ? plain.count : Self.thirdQuote(plain)
            #expect(Self.fields(line[..<head]) == Self.fields(plain[..<plainHead]))
        }
    }

    private static func fields(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.split(separator: 0x20).count
    }

    private static func thirdQuote(_ line: [UInt8]) -> Int {
        line.indices.filter { line[$0] == UInt8(ascii: "\"") }.dropFirst(2).first ?? 0
    }

    @Test(
        "A quoted field ends where it should",
        arguments: [
            ("a\"b", "a\\\"b"), ("a\\", "a\\\\"), ("\n", "\\x0A"), ("é", "\\xC3\\xA9"),
        ])
    func quoted(_ text: String, _ expected: String) {
        var line: [UInt8] = []
        LogEscape.quoted(text, &line)
        #expect(String(decoding: line, as: UTF8.self) == expected)
    }

    @Test(
        "Dates",
        arguments: [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (951_868_800_000_000, "2000-03-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (1_735_689_599_000_000, "2024-12-31T23:59:59.000000Z"),
            (Int64.max, "9999-12-31T23:59:59.775807Z"), (Int64.min, "0000-01-01T00:00:00.224192Z"),
        ])
    func dates(_ microseconds: Int64, _ expected: String) {
        #expect(LogClock.internet(Timestamp(microseconds: microseconds)) == expected)
    }

    @Test(
        "Outcomes follow the cache status",
        arguments: [
            (CacheStatus(hit: true, ttl: 5), AccessLogEntry.Outcome.diskHit),
            (CacheStatus(hit: true, ttl: -5), .staleHit),
            (CacheStatus(forward: .uriMiss, forwardStatus: .init(200)), .miss),
            (.asked(.stale, 304, .confirmed), .validated),
            (.asked(.request, 304, .confirmed), .validated),
            (.asked(.stale, 200, .replaced), .refreshed),
            (.asked(.request, 200, .replaced), .refreshed),
            (.asked(.stale, 503, .standIn), .standIn), (.asked(.stale, nil, .standIn), .standIn),
            (.asked(.request, nil, .standIn), .standIn),
            (CacheStatus(forward: .request, forwardStatus: .init(200)), .miss),
            (CacheStatus(forward: .request, forwardStatus: .init(304)), .miss),
            (CacheStatus(forward: .stale), .miss),
            (CacheStatus(forward: .uriMiss, collapsed: true), .collapsed),
            (CacheStatus(forward: .bypass), .bypass), (CacheStatus(), .own),
            (CacheStatus(detail: "only-if-cached"), .onlyIfCachedMiss),
            (CacheStatus(detail: "return-cache-dont-load"), .onlyIfCachedMiss),
        ])
    func outcome(_ status: CacheStatus, _ expected: AccessLogEntry.Outcome) {
        #expect(AccessLogEntry.Outcome(status, fromMemory: false) == expected)
    }
}

extension CacheStatus {
    /// Of a request for which the origin was asked about a stored response.
    fileprivate static func asked(
        _ forward: Forward, _ status: UInt16?, _ validation: Validation
    ) -> CacheStatus {
        var told = CacheStatus(forward: forward, forwardStatus: status.map { StatusCode($0) })
        told.validation = validation
        return told
    }
}
