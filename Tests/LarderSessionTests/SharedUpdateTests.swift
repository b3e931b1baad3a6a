import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderSession

@Suite("What one client's exchange changes for the others")
struct SharedUpdateTests {
    /// A bench that has stored `stale`, which needs a validation.
    private static func bench(_ fields: Fields = stale) -> Bench {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, fields, "old")
        return bench
    }

    private static let stale: Fields = ["Cache-Control": "max-age=0", "ETag": "\"a\""]

    @Test("those who wait for a head get a response that meets their own directives (RFC 9111 §4)")
    func directives() {
        let bench = Bench()
        bench.perform()
        let undemanding = bench.perform("/", ["Cache-Control": "min-fresh=50"]).client
        let demanding = bench.perform("/", ["Cache-Control": "min-fresh=100"]).client
        bench.upstream.fetches[0].answer(200, bench.fresh, "x")
        #expect(undemanding.wholeBody == "x")
        #expect(demanding.answer == nil && bench.upstream.fetches.count == 2)
    }

    @Test("a stale response stands in only for those who wait and would take it (RFC 9111 §4.2.4)")
    func standIn() {
        let bench = Self.bench([
            "Cache-Control": "max-age=1, stale-if-error=100", "ETag": "\"a\"",
        ])
        bench.clock.advance(.seconds(10))
        let first = bench.perform().client
        let second = bench.perform().client
        let strict = bench.perform("/", ["Cache-Control": "max-age=60"]).client
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].fail(.connectionRefused)
        #expect(first.wholeBody == "old" && second.wholeBody == "old")
        #expect(strict.answer == nil && bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].fail(.connectionRefused)
        #expect(strict.failure?.status == .badGateway)
    }

    @Test("a 304 to one client's credentials updates nothing for the others (RFC 9111 §3.5)")
    func credentials() {
        let bench = Self.bench()
        let asked: Fields = ["Authorization": "Basic YTpi"]
        let own = bench.perform("/", asked).client
        let waiting = bench.perform().client
        bench.upstream.fetches[1].answer(304, ["Cache-Control": "max-age=60", "X-User": "a"])
        #expect(own.wholeBody == "old" && own.field("X-User") == "a")
        #expect(waiting.answer == nil && bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].answer(304)
        #expect(waiting.wholeBody == "old" && waiting.field("X-User") == nil)
        // Unless it says that it may.
        bench.perform("/", asked)
        bench.upstream.fetches[3].answer(304, ["Cache-Control": "public, max-age=60"])
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test("fields of a 304 that are private go to the client it answers alone (RFC 9111 §5.2.2.7)")
    func privateFields() {
        let bench = Self.bench([
            "Cache-Control": "max-age=0, private=\"set-cookie\"", "ETag": "\"a\"",
        ])
        let own = bench.perform().client
        let waiting = bench.perform().client
        bench.upstream.fetches[1].answer(304, ["Set-Cookie": "s=1"])
        #expect(own.wholeBody == "old" && own.field("Set-Cookie") == "s=1")
        bench.upstream.fetches[2].answer(304)
        #expect(waiting.wholeBody == "old" && waiting.field("Set-Cookie") == nil)
    }

    @Test("cookies of a 304 are the client's whom it answers, and nobody waits the longer for it")
    func cookies() {
        let bench = Self.bench()
        let own = bench.perform().client
        let waiting = bench.perform().client
        bench.upstream.fetches[1].answer(
            304, ["Cache-Control": "max-age=60", "Set-Cookie": "s=1", "X-New": "1"])
        #expect(own.wholeBody == "old" && own.field("Set-Cookie") == "s=1")
        for client in [waiting, bench.perform().client] {
            #expect(client.wholeBody == "old" && client.field("Set-Cookie") == nil)
            #expect(client.field("X-New") == "1")
        }
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("nor are those of a HEAD, or of what is missing of a part, stored for all")
    func otherCookies() {
        let bench = Self.bench()
        bench.perform("/", method: .head)
        bench.upstream.fetches[1].answer(
            200, ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Set-Cookie": "s=1"])
        #expect(bench.perform().client.field("Set-Cookie") == nil)
        let parts = Bench()
        var representation = Representation(1000)
        representation.fields = ["Cache-Control": "max-age=60"]
        parts.store(0..<400, of: representation)
        let own = parts.ask()
        let waiting = parts.ask()
        representation.fields.append("Set-Cookie", "s=1")
        parts.upstream.fetches[1].part(400..<1000, of: representation)
        #expect(own.field("Set-Cookie") == "s=1")
        for client in [waiting, parts.ask()] {
            #expect(client.field("Set-Cookie") == nil)
            #expect(client.wholeBytes == representation.content)
        }
    }

    @Test("fields that no-cache names go along with a validation of the client's own (§5.2.2.4)")
    func noCacheFields() {
        let bench = Self.bench([
            "Cache-Control": "max-age=0, no-cache=\"x-now\"", "ETag": "\"a\"", "X-Now": "1",
        ])
        let own = bench.perform().client
        let waiting = bench.perform().client
        bench.upstream.fetches[1].answer(
            304, ["Cache-Control": "max-age=60, no-cache=\"x-now\""])
        #expect(own.field("X-Now") == "1" && waiting.field("X-Now") == nil)
        #expect(waiting.wholeBody == "old")
    }

    @Test("the same where what is missing of a part is filled (§5.2.2.4, §5.2.2.7)")
    func fieldsOfParts() {
        let bench = Bench()
        var representation = Representation(1000)
        representation.fields = [
            "Cache-Control": "max-age=60, no-cache=\"x-now\", private=\"x-own\"", "X-Now": "1",
        ]
        bench.store(0..<400, of: representation)
        let own = bench.ask()
        let waiting = bench.ask()
        representation.fields.append("X-Own", "s")
        bench.upstream.fetches[1].part(400..<1000, of: representation)
        #expect(own.field("X-Now") == "1" && own.field("X-Own") == "s")
        #expect(waiting.field("X-Now") == nil && waiting.field("X-Own") == nil)
        for client in [own, waiting, bench.ask()] {
            #expect(client.wholeBytes == representation.content)
        }
        #expect(bench.asked == 2)
    }

    @Test("an answer that is not stored makes what it replaces ask again (RFC 9111 §4.3.3)")
    func superseded() {
        let bench = Self.bench([
            "Cache-Control": "max-age=60, stale-if-error=600", "ETag": "\"a\"",
        ])
        bench.perform("/", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "no-store"], "new")
        // Neither fresh nor in place of a failure.
        let failed = bench.perform().client
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].fail(.connectionRefused)
        #expect(failed.failure?.status == .badGateway)
        // Until the origin says that it holds after all.
        bench.perform()
        bench.upstream.fetches[3].answer(304)
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test(
        "the same where the store does not take it, whenever it says so", arguments: [false, true])
    func supersededTooLarge(isAnnounced: Bool) {
        let memory = MemoryConfiguration(
            capacity: .mebibytes(1), maximumObject: .kibibytes(40))
        let bench = Bench(store: MemoryStore(memory))
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "max-age=60, stale-if-error=600", "ETag": "\"a\""], "old")
        let client = bench.perform("/", ["Cache-Control": "no-cache"]).client
        let fetch = bench.upstream.fetches[1]
        let fields: Fields = ["Cache-Control": "max-age=60", "ETag": "\"b\""]
        fetch.head(200, fields, length: isAnnounced ? .known(50_000) : .unknown)
        for _ in 0..<5 {
            #expect(fetch.piece(bytes: 10_000) == .more)
            _ = client.read()
        }
        fetch.finish()
        let failed = bench.perform().client
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches.last?.fail(.connectionRefused)
        #expect(failed.failure?.status == .badGateway)
    }

    @Test(
        "the same where what it replaces has no validator",
        arguments: [200, 404, 410] as [UInt16])
    func supersededUnnamed(_ status: UInt16) {
        let bench = Self.bench(["Cache-Control": "max-age=60, stale-if-error=600"])
        bench.perform("/", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].answer(status, ["Cache-Control": "no-store"], "new")
        let failed = bench.perform().client
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches.last?.fail(.connectionRefused)
        #expect(failed.failure?.status == .badGateway)
        bench.perform()
        bench.upstream.fetches.last?.answer(200, bench.fresh, "newer")
        #expect(bench.perform().client.wholeBody == "newer")
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test(
        "an answer that is about the client or the moment leaves what is stored alone",
        arguments: [401, 403, 407, 429, 500, 503] as [UInt16])
    func unrelated(_ status: UInt16) {
        let bench = Self.bench(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        bench.perform("/", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].answer(status, ["Cache-Control": "no-store"], "no")
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("nothing of an answer to a HEAD with no-store is kept (RFC 9111 §5.2.1.5)")
    func head() {
        let bench = Self.bench(["Cache-Control": "max-age=60", "ETag": "\"a\"", "X-A": "1"])
        bench.perform("/", method: .head, ["Cache-Control": "no-store"])
        bench.upstream.fetches[1].head(200, ["ETag": "\"a\"", "X-A": "2"], length: .none)
        bench.upstream.fetches[1].finish()
        #expect(bench.perform().client.field("X-A") == "1")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test(
        "a HEAD's 200 that names no validator makes nothing fresh that it was to validate (§4.3.5)")
    func unnamed() throws {
        let bench = Self.bench(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        bench.clock.advance(.seconds(61))
        bench.perform("/", method: .head)
        #expect(
            bench.upstream.fetches[1].request.fields.string("If-None-Match") == "\"a\"")
        bench.upstream.fetches[1].head(200, ["Cache-Control": "max-age=60"], length: .none)
        bench.upstream.fetches[1].finish()
        // Nor may it be used stale any more.
        let client = bench.perform("/", ["Cache-Control": "max-stale"]).client
        let asked = try #require(bench.upstream.fetches.dropFirst(2).first)
        asked.answer(304, ["ETag": "\"a\""])
        #expect(client.cacheStatus?.hasSuffix("detail=invalidated") == true)
        #expect(client.wholeBody == "old")
    }

    @Test("a validation in the background that fails is not repeated at once (RFC 5861 §3)")
    func pause() {
        let bench = Self.bench([
            "Cache-Control": "max-age=1, stale-while-revalidate=600", "ETag": "\"a\"",
        ])
        bench.clock.advance(.seconds(10))
        #expect(bench.perform().client.wholeBody == "old")
        bench.upstream.fetches[1].fail(.connectionRefused)
        for _ in 0..<5 { #expect(bench.perform().client.wholeBody == "old") }
        #expect(bench.upstream.fetches.count == 2)
        bench.clock.advance(.seconds(6))
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].answer(304, ["Cache-Control": "max-age=60"])
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.upstream.fetches.count == 3)
    }
}
