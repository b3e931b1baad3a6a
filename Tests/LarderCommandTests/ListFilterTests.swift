import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy
import Testing

@testable import larder

@Suite("Which stored responses a listing is about")
struct ListFilterTests {
    private static func row(_ url: String, _ change: (inout CacheRow) -> Void = { _ in })
        -> CacheRow
    {
        var row = CacheRow(
            url: url, status: 200, bytes: 1000, ageMilliseconds: 1, freshForMilliseconds: 1,
            hits: 0, tier: .disk)
        change(&row)
        return row
    }

    @Test(
        "--host is one host, or all below it, or both: for list, purge and export",
        arguments: [
            ("h.example", "http://h.example/", true),
            ("H.Example", "https://h.example:8443/x", true),
            ("h.example", "http://a.h.example/", false), ("example", "http://h.example/", false),
            ("*.example", "http://h.example/", true), ("*.example", "http://a.h.example/", true),
            ("*.example", "http://example/", false), ("*.h.example", "http://xh.example/", false),
            (".example", "http://example/", true), (".example", "http://a.h.example/", true),
            (".h.example", "http://xh.example/", false), (".H.example", "http://h.example/", true),
            ("::1", "http://[::1]:80/", true), ("[::1]", "http://[::1]/", true),
            ("h", "ftp://user@h/", true), ("user", "ftp://user@h/", false),
            ("h", "http://x/?//h/", false),
        ])
    func host(_ host: String, _ url: String, _ expected: Bool) throws {
        let list = try ListArguments.parse(["--host", host]).filter
        let purge = try PurgeFilter(
            try SelectionArguments.parse(["--host", host]).selection())
        let export = try PurgeFilter(
            try CacheExport.parse(["--host", host, "a.warc"]).selection())
        let key = CacheKey(method: .get, uri: try #require(TargetURI(text: url)))
        #expect(list.matches(Self.row(url)) == expected)
        #expect(purge.matches(key) == expected)
        #expect(export.matches(key) == expected)
    }

    @Test(
        "What is no host is refused by list, purge and export",
        arguments: ["", ".", "*.", "..h", "*..h", "http://h/", "h:80", "h*", "*", "a b", "u@h"])
    func noHost(_ text: String) {
        #expect(throws: (any Error).self) { try ListArguments.parse(["--host", text]) }
        #expect(throws: (any Error).self) { try SelectionArguments.parse(["--host", text]) }
        #expect(throws: (any Error).self) { try CacheExport.parse(["--host", text, "a.warc"]) }
        #expect(throws: ControlRefusal.self) { try PurgeFilter(.host(text)) }
    }

    @Test(
        "Sizes are bytes, or have the unit that other tools give them",
        arguments: [
            ("0", 0), ("1536", 1536), ("64k", 65_536), ("64K", 65_536), ("1.5M", 1_572_864),
            ("10 MiB", 10 << 20), ("1G", 1 << 30), ("2TiB", 2 << 40), ("1kB", 1000), ("-1", nil),
            ("+1", nil), ("", nil), ("K", nil), ("1X", nil), ("99999999999999999999", nil),
        ] as [(String, UInt64?)])
    func size(_ text: String, _ expected: UInt64?) {
        #expect(SizeArgument(argument: text)?.bytes == expected)
    }

    @Test(
        "A status is a code or a class of codes",
        arguments: [
            ("200", 200, true), ("404", 410, false), ("4xx", 410, true), ("4XX", 399, false),
            ("5xx", 500, true),
        ])
    func status(_ text: String, _ status: Int, _ expected: Bool) throws {
        let pattern = try #require(StatusPattern(argument: text))
        #expect(
            ListFilter(status: pattern).matches(Self.row("http://h/") { $0.status = status })
                == expected)
    }

    @Test(
        "What is no status is refused", arguments: ["", "20", "2000", "0xx", "xxx", "-20", "+20"])
    func noStatus(_ text: String) {
        #expect(StatusPattern(argument: text) == nil)
    }

    @Test("A pattern that fits nothing is refused: by list, purge and export")
    func emptyPattern() {
        #expect(throws: (any Error).self) { try ListArguments.parse(["--pattern", ""]) }
        #expect(throws: (any Error).self) { try SelectionArguments.parse(["--pattern", ""]) }
        #expect(throws: (any Error).self) { try CacheExport.parse(["--pattern", "", "a.warc"]) }
    }

    @Test(
        "A method is a token (RFC 9110 §9.1), in capitals",
        arguments: [("get", "GET"), ("QUERY", "QUERY"), ("G T", nil), ("", nil), ("GET,", nil)])
    func method(_ text: String, _ expected: String?) {
        let parsed = try? ListArguments.parse(["--method", text]).filter
        #expect(parsed?.method == expected)
        #expect((parsed == nil) == (expected == nil))
    }

    @Test(
        "A URL is named as it is stored: without a fragment, without a user (RFC 9110 §7.1)",
        arguments: [
            ("http://h/a#b", "http://h/a"), ("http://h/?q#b?c", "http://h/?q"), ("x#y", "x"),
            ("http://h/a@b", "http://h/a@b"), ("http://h?@", "http://h?@"),
            ("ftp://u@h/", "ftp://u@h/"), ("http://u:p@h/", nil), ("HTTPS://u@h", nil),
        ])
    func url(_ text: String, _ expected: String?) {
        #expect((try? CacheShow.parse([text]))?.url == expected)
        #expect((try? Explain.parse([text]))?.url == expected)
        #expect(
            (try? SelectionArguments.parse([text]).selection()) == expected.map { .url($0) })
        #expect(
            (try? CacheExport.parse(["a.warc", text]).selection()) == expected.map { .url($0) })
    }

    private struct Case {
        var filter: ListFilter
        var expected: Bool
    }

    @Test("Each argument looks at its own fact, and all of them must fit")
    func facts() {
        let url = "http://h/dir/a.deb"
        let partial = CachePartial(ranges: [], storedBytes: 0, completeLength: nil)
        let cases: [(ListFilter, (inout CacheRow) -> Void, Bool)] = [
            (ListFilter(), { _ in }, true), (ListFilter(largerThan: 999), { _ in }, true),
            (ListFilter(largerThan: 1000), { _ in }, false),
            (ListFilter(smallerThan: 1001), { _ in }, true),
            (ListFilter(smallerThan: 1000), { _ in }, false),
            (ListFilter(isFresh: true), { _ in }, true),
            (ListFilter(isFresh: true), { $0.freshForMilliseconds = 0 }, false),
            (ListFilter(isFresh: false), { $0.freshForMilliseconds = 0 }, true),
            (ListFilter(isPartial: true), { _ in }, false),
            (ListFilter(isPartial: true), { $0.partial = partial }, true),
            (ListFilter(tier: .disk), { _ in }, true),
            (ListFilter(tier: .disk), { $0.tier = .both }, true),
            (ListFilter(tier: .memory), { $0.tier = .both }, true),
            (ListFilter(tier: .memory), { _ in }, false),
            (ListFilter(method: "POST"), { $0.method = "POST" }, true),
            (ListFilter(method: "POST"), { _ in }, false),
            (ListFilter(pattern: Glob("*.deb")), { _ in }, true),
            (ListFilter(pattern: Glob("*.de")), { _ in }, false),
            (ListFilter(pattern: Glob("*.deb"), largerThan: 1000), { _ in }, false),
        ]
        for (index, (filter, change, expected)) in cases.enumerated() {
            #expect(filter.matches(Self.row(url, change)) == expected, "case \(index)")
        }
    }

    @Test("What is known early never passes by what fits in the end")
    func early() throws {
        let urls = [
            "http://h.example/a.deb", "http://x.h.example:81/a.deb?b", "ftp://u@h.example/a.deb",
            "https://[::1]/c",
        ]
        var filters = [ListFilter(), ListFilter(largerThan: 999), ListFilter(smallerThan: 999)]
        filters += ["h.example", "*.h.example", "::1"].map {
            ListFilter(host: HostSelector($0))
        }
        filters += ["*.deb", "http://*", "*?b", "ftp://h.example/*"].map {
            ListFilter(pattern: Glob($0))
        }
        filters += ["200", "404"].map { ListFilter(status: StatusPattern(argument: $0)) }
        var passed = 0
        for url in urls {
            // As a listing shows it: without the user.
            let key = CacheKey(bytes: Array(" GET \(url)".utf8))
            let row = Self.row(key.parts.uri)
            let facts = ListingFacts(key: key, status: 200, bodyLength: 1000)
            for filter in filters {
                if filter.matches(row) {
                    #expect(filter.mayMatch(facts))
                } else if !filter.mayMatch(facts) {
                    passed += 1
                }
            }
        }
        #expect(passed > 10)
        let search = ListingFacts(
            key: CacheKey(bytes: Array(" GET http://h/p#".utf8)), status: 200, bodyLength: 1)
        #expect(ListFilter(pattern: Glob("http://h/p?a=1")).mayMatch(search))
    }

    @Test(
        "Arguments that contradict one another are refused",
        arguments: [
            ["--stale", "--fresh"], ["--json", "--null"], ["--reverse"], ["--limit", "-1"],
            ["--tier", "tape"], ["--sort", "colour"], ["--host", "http://h/"],
        ])
    func contradictions(_ arguments: [String]) {
        #expect(throws: (any Error).self) { try CacheList.parse(arguments) }
    }

    @Test("--url is another word for --pattern")
    func words() throws {
        for word in ["--url", "--pattern"] {
            let filter = try CacheList.parse([word, "*.deb"]).which.filter
            #expect(filter.pattern == Glob("*.deb"))
        }
    }
}
