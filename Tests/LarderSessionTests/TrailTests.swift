import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Testing

@Suite("Where redirections led, and for whom and what a response counts by that")
struct TrailTests {
    private static let fresh: Fields = ["Cache-Control": "max-age=60", "ETag": "\"e\""]
    private static let stale: Fields = ["Cache-Control": "max-age=0", "ETag": "\"e\""]

    /// Answers two fetches: with a redirection, and where that leads.
    private static func answer(
        _ bench: ChainBench, _ index: Int, by target: String, _ status: UInt16 = 200,
        with fields: Fields, _ body: String = ""
    ) throws {
        try #require(bench.upstream.fetches.count == index + 1)
        bench.upstream.fetches[index].answer(302, ["Location": target])
        try #require(bench.upstream.fetches.count == index + 2)
        bench.upstream.fetches[index + 1].answer(status, fields, body)
    }

    @Test("who waits for a validation gets what it validates only where he may be led")
    func validated() throws {
        let bench = ChainBench(follows: true)
        bench.perform()
        try Self.answer(bench, 0, by: "http://inner.example/", with: Self.stale, "inner")
        let inside = bench.perform().client
        let outside = bench.perform(permits: { _, uri in uri.host != "inner.example" }).client
        try #require(bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].answer(302, ["Location": "http://inner.example/"])
        bench.upstream.fetches[3].answer(304, Self.stale)
        #expect(inside.wholeBody == "inner")
        try #require(bench.upstream.fetches.count == 5)
        bench.upstream.fetches[4].answer(302, ["Location": "http://inner.example/"], "moved")
        #expect(outside.wholeBody == "moved")
    }

    @Test("a validation keeps with the response where it was led itself")
    func freshened() throws {
        let bench = ChainBench(follows: true)
        bench.perform()
        try Self.answer(bench, 0, by: "http://a.example/?1", with: Self.stale, "one")
        let again = bench.perform().client
        try Self.answer(bench, 2, by: "http://a.example/?2", 304, with: Self.fresh)
        #expect(again.wholeBody == "one")
        for (closed, isHit) in [("/?1", true), ("/?2", false)] {
            let client = bench.perform(permits: { _, uri in uri.pathAndQuery != closed }).client
            #expect((client.wholeBody == "one") == isHit, "\(closed)")
        }
        #expect(bench.upstream.fetches.count == 5)
    }

    @Test("it counts with which method a client may be led there")
    func method() throws {
        let bench = ChainBench(follows: true)
        bench.perform()
        try Self.answer(bench, 0, by: "http://a.example/", with: Self.fresh, "one")
        for closed in [Method.get, .head] {
            let count = bench.upstream.fetches.count
            let client = bench.perform(method: .head, permits: { method, _ in method != closed })
                .client
            #expect((client.status == 200) == (closed == .get))
            #expect(bench.upstream.fetches.count == count + (closed == .get ? 0 : 1))
        }
    }

    @Test("nobody is shown it any more where redirections are not followed any more")
    func unfollowed() throws {
        let bench = ChainBench(jar: OneCookieJar(), follows: true)
        bench.perform()
        try Self.answer(bench, 0, by: "http://a.example/", with: Self.fresh, "one")
        #expect(bench.perform().client.wholeBody == "one")
        var configuration = bench.session.configuration
        configuration.followsRedirects = false
        bench.session.follow(configuration)
        let client = bench.perform().client
        #expect(client.calls == 0)
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("a HEAD that was led elsewhere says nothing of it (RFC 9111 §4.3.5)")
    func head() throws {
        for (target, isKept) in [("/v1", false), ("/v2", true)] {
            let bench = ChainBench(follows: true)
            bench.perform()
            try Self.answer(bench, 0, by: "/v1", with: Self.fresh, "one")
            bench.perform(
                "https://origin.example/", method: .head, ["Cache-Control": "no-cache"])
            let other: Fields = ["Cache-Control": "max-age=60", "ETag": "\"f\""]
            try Self.answer(bench, 2, by: target, with: other)
            let client = bench.perform().client
            #expect((client.wholeBody == "one") == isKept, "\(target)")
            #expect(bench.upstream.fetches.count == (isKept ? 4 : 5), "\(target)")
        }
    }

    private static func part(_ first: Int) -> Fields {
        [
            "Cache-Control": "max-age=60", "ETag": "\"e\"",
            "Content-Range": "bytes \(first)-\(first + 4)/10",
        ]
    }

    private static func range(_ bench: ChainBench, _ range: String) -> RecordingClient {
        bench.perform("https://origin.example/", ["Range": "bytes=\(range)"]).client
    }

    @Test("parts of one resource are not combined with those of another (RFC 9111 §3.4)")
    func parts() throws {
        for (target, isSame) in [("/v1", true), ("/v2", false)] {
            let bench = ChainBench(follows: true)
            _ = Self.range(bench, "0-4")
            try Self.answer(bench, 0, by: "/v1", 206, with: Self.part(0), "01234")
            #expect(Self.range(bench, "0-4").wholeBody == "01234")
            _ = Self.range(bench, "5-9")
            try Self.answer(bench, 2, by: target, 206, with: Self.part(5), "56789")
            let count = bench.upstream.fetches.count
            let whole = bench.perform().client
            #expect((whole.wholeBody == "0123456789") == isSame, "\(target)")
            #expect((bench.upstream.fetches.count == count) == isSame, "\(target)")
        }
    }

    @Test("nor where both were asked for at once")
    func partsAtOnce() throws {
        for (target, isSame) in [("/v1", true), ("/v2", false)] {
            let bench = ChainBench(follows: true)
            let clients = ["0-4", "5-9"].map { Self.range(bench, $0) }
            try #require(bench.upstream.fetches.count == 2)
            for (index, target) in ["/v1", target].enumerated() {
                bench.upstream.fetches[index].answer(302, ["Location": target])
            }
            try #require(bench.upstream.fetches.count == 4)
            bench.upstream.fetches[2].answer(206, Self.part(0), "01234")
            bench.upstream.fetches[3].answer(206, Self.part(5), "56789")
            #expect(clients.map(\.wholeBody) == ["01234", "56789"])
            let whole = bench.perform().client
            #expect((whole.wholeBody == "0123456789") == isSame, "\(target)")
            #expect((bench.upstream.fetches.count == 4) == isSame, "\(target)")
        }
    }

    @Test("what a part lacks is taken from where it came from alone")
    func gap() throws {
        for (target, isSame) in [("/v1", true), ("/v2", false)] {
            let bench = ChainBench(follows: true)
            _ = Self.range(bench, "0-4")
            try Self.answer(bench, 0, by: "/v1", 206, with: Self.part(0), "01234")
            let whole = bench.perform().client
            #expect(bench.sent(2, "Range") == "bytes=5-9")
            try Self.answer(bench, 2, by: target, 206, with: Self.part(5), "56789")
            #expect((whole.wholeBody == "0123456789") == isSame, "\(target)")
        }
    }

    @Test("a part is kept from whoever may not be led there")
    func keptPart() throws {
        let bench = ChainBench(follows: true)
        _ = Self.range(bench, "0-4")
        try Self.answer(bench, 0, by: "http://inner.example/", 206, with: Self.part(0), "01234")
        let outside = bench.perform(
            "https://origin.example/", ["Range": "bytes=0-4"],
            permits: { _, uri in uri.host != "inner.example" }
        ).client
        #expect(outside.calls == 0)
        #expect(bench.upstream.fetches.count == 3)
        #expect(Self.range(bench, "0-4").wholeBody == "01234")
    }
}
