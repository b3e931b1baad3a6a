import LarderHTTP
import LarderStore
import Testing

@testable import LarderSession

@Suite("Another variant, whose content an origin says is the answer (RFC 9111 §4.1)")
struct OtherVariantTests {
    @Test("is asked about by its strong tag, and served as one of the request's own (§4.1)")
    func otherVariant() {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Vary", "Foo")
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(200, fields, "one")
        bench.clock.advance(.seconds(30))
        let client = bench.perform("/", ["Foo": "2"]).client
        let fetch = bench.upstream.fetches[1]
        #expect(fetch.request.fields.string("If-None-Match") == "\"a\"")
        #expect(fetch.request.fields.string("If-Modified-Since") == nil)
        fetch.answer(304, ["ETag": "\"a\"", "Cache-Control": "max-age=600", "Allow-Foo": "2"])
        #expect(client.wholeBody == "one")
        #expect(
            client.cacheStatus
                == "larder; fwd=vary-miss; fwd-status=304; ttl=600; detail=no-matching-variant")
        #expect(client.field("Allow-Foo") == "2")
        // The other is what it was (§4.3.4: those that the request could have chosen are updated).
        let first = bench.perform("/", ["Foo": "1"]).client
        #expect(first.cacheStatus == "larder; hit; ttl=30")
        #expect(first.field("Allow-Foo") == nil)
        let second = bench.perform("/", ["Foo": "2"]).client
        #expect(second.cacheStatus == "larder; hit; ttl=600")
        #expect(second.wholeBody == "one")
        #expect(second.field("Allow-Foo") == "2")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("and does not vary any more takes the place of what the request selected before (§4.3.4)")
    func deselected() {
        let bench = Bench()
        var fields: Fields = [
            "ETag": "\"1\"", "Cache-Control": "max-age=1, stale-while-revalidate=60",
        ]
        fields.append("Vary", "Foo")
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(200, fields, "one")
        bench.perform("/", ["Foo": "2"])
        bench.upstream.fetches[1].answer(
            200, ["ETag": "\"2\"", "Cache-Control": "max-age=60"], "two")
        bench.clock.advance(.seconds(2))
        let client = bench.perform("/", ["Foo": "1", "Cache-Control": "no-cache"]).client
        let asked = bench.upstream.fetches[2].request.fields.string("If-None-Match")
        #expect(asked?.contains("\"1\"") == true && asked?.contains("\"2\"") == true)
        bench.upstream.fetches[2].answer(304, ["ETag": "\"2\""])
        #expect(client.wholeBody == "two")
        for value in ["1", "2", "3"] {
            #expect(bench.perform("/", ["Foo": value]).client.wholeBody == "two")
        }
        #expect(bench.upstream.fetches.count == 3)
        #expect(bench.session.store.statistics().memory.objects == 1)
    }

    @Test("leaves what was stored for another query, and what bears the tag that it names")
    func notDeselected() {
        let bench = Bench()
        var fields = bench.fresh
        fields.set("ETag", "\"n\"")
        fields.append("No-Vary-Search", "params=(\"u\")")
        bench.perform("/p?u=1")
        bench.upstream.fetches[0].answer(200, bench.fresh, "exact")
        bench.perform("/p?u=2")
        bench.upstream.fetches[1].answer(200, fields, "all")
        bench.perform("/p?u=1", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[2].answer(304, ["ETag": "\"a\""])
        #expect(bench.perform("/p?u=3").client.wholeBody == "all")
        #expect(bench.perform("/p?u=1").client.wholeBody == "exact")
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("leaves what the request selected where the answer is for its login alone (§3.5)")
    func deselectedForOne() {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Vary", "Foo")
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(200, fields, "one")
        bench.perform("/", ["Foo": "2"])
        bench.upstream.fetches[1].answer(
            200, ["ETag": "\"2\"", "Cache-Control": "max-age=60"], "two")
        bench.perform(
            "/", ["Foo": "1", "Cache-Control": "no-cache", "Authorization": "Basic YTpi"])
        bench.upstream.fetches[2].answer(304, ["ETag": "\"2\""])
        #expect(bench.perform("/", ["Foo": "1"]).client.wholeBody == "one")
    }

    @Test(
        "is served, and not kept, where the answer may not be stored (§4.1, §5.2.2.5)",
        arguments: [
            (["Foo": "2"], ["ETag": "\"a\"", "Cache-Control": "no-store"]),
            (["Foo": "2", "Authorization": "Basic YTpi"], ["ETag": "\"a\""]),
        ] as [(Fields, Fields)])
    func otherVariantOnce(_ asked: Fields, _ answer: Fields) {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Vary", "Foo")
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(200, fields, "one")
        let client = bench.perform("/", asked).client
        bench.upstream.fetches[1].answer(304, answer)
        #expect(client.wholeBody == "one")
        #expect(bench.session.store.statistics().memory.objects == 1)
        #expect(
            bench.perform("/", ["Foo": "1"]).client.cacheStatus?.hasPrefix("larder; hit") == true)
    }

    @Test("that is a part is none that would do, be its tag the same (§4.1, §4.3.4)")
    func otherVariantsPart() {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Vary", "Foo")
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(200, fields, "hello")
        bench.perform("/", ["Foo": "2", "Range": "bytes=0-1"])
        fields.append("Content-Range", "bytes 0-1/5")
        bench.upstream.fetches[1].answer(206, fields, "he")
        let client = bench.perform("/", ["Foo": "3"]).client
        let fetch = bench.upstream.fetches[2]
        #expect(fetch.request.fields.string("If-None-Match") == "\"a\"")
        fetch.answer(304, ["ETag": "\"a\"", "Cache-Control": "max-age=60"])
        #expect(client.wholeBody == "hello")
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("is not, where the 304 leaves out whom its head allows to read it")
    func otherSite() {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Vary", "Origin")
        fields.append("Access-Control-Allow-Origin", "http://a")
        bench.perform("/", ["Origin": "http://a"])
        bench.upstream.fetches[0].answer(200, fields, "one")
        let client = bench.perform("/", ["Origin": "http://b"]).client
        bench.upstream.fetches[1].answer(304, ["ETag": "\"a\""])
        #expect(client.answer == nil)
        let again = bench.upstream.fetches[2]
        #expect(again.request.fields.string("If-None-Match") == nil)
        fields.set("Access-Control-Allow-Origin", "http://b")
        again.answer(200, fields, "one")
        #expect(client.field("Access-Control-Allow-Origin") == "http://b")
    }
}
