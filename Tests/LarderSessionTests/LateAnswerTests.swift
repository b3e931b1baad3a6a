import LarderHTTP
import LarderPolicy
import LarderStore
import Testing

@testable import LarderSession

/// Answers to requests that were sent before something that they know nothing of.
@Suite("An answer that comes late undoes nothing that was said after its request")
struct LateAnswerTests {
    /// The store that the bench has.
    enum Kind: CaseIterable { case memory, tiers }

    private static func bench(_ kind: Kind) -> Bench {
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(8)))
        switch kind {
        case .memory: return Bench(store: memory)
        // The lower tier takes all and shows nothing: what memory has is all there is.
        case .tiers: return Bench(store: TieredStore(memory: memory, disk: SlowDisk()))
        }
    }

    /// Has a validation be under way.
    private static func validating(_ bench: Bench) -> ScriptedUpstream.Fetch? {
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "v1")
        bench.perform("/", ["Cache-Control": "no-cache"])
        return bench.upstream.fetches.last
    }

    @Test("a 304 that a newer response overtook (RFC 9111 §4.3.3)", arguments: Kind.allCases)
    func newerResponse(_ kind: Kind) {
        let bench = Self.bench(kind)
        let late = Self.validating(bench)
        bench.perform("/", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[2].answer(
            200, ["Cache-Control": "no-store", "ETag": "\"b\""], "v2")
        late?.answer(304, bench.fresh)
        bench.perform()
        #expect(bench.upstream.fetches.count == 4)
        // One that was asked for since holds.
        bench.upstream.fetches.last?.answer(304, bench.fresh)
        #expect(bench.perform().client.wholeBody == "v1")
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test("a 304 that a HEAD overtook (RFC 9111 §4.3.5)", arguments: Kind.allCases)
    func head(_ kind: Kind) {
        let bench = Self.bench(kind)
        let late = Self.validating(bench)
        bench.perform("/", method: .head, ["Cache-Control": "no-cache"])
        bench.upstream.fetches[2].head(200, ["ETag": "\"b\""], length: .known(2))
        bench.upstream.fetches[2].finish()
        late?.answer(304, bench.fresh)
        bench.perform()
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test("a HEAD that a newer response overtook (RFC 9111 §4.3.5)", arguments: Kind.allCases)
    func lateHead(_ kind: Kind) {
        let bench = Self.bench(kind)
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "v1")
        bench.perform("/", method: .head, ["Cache-Control": "no-cache"])
        bench.perform("/", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[2].answer(
            200, ["Cache-Control": "no-store", "ETag": "\"b\""], "v2")
        bench.upstream.fetches[1].head(200, bench.fresh, length: .known(2))
        bench.upstream.fetches[1].finish()
        bench.perform()
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test("a part that a HEAD overtook (RFC 9111 §3.4)")
    func part() {
        let bench = Bench()
        let thousand = Representation(1000)
        bench.store(0..<400, of: thousand)
        _ = bench.ask()
        bench.perform("/", method: .head, ["Cache-Control": "no-cache"])
        bench.upstream.fetches[2].head(200, ["ETag": "\"b\""], length: .known(1000))
        bench.upstream.fetches[2].finish()
        bench.upstream.fetches[1].part(400..<1000, of: thousand)
        _ = bench.ask()
        #expect(bench.asked == 4)
    }

    @Test(
        "the answer to a POST whose target something else changed (RFC 9111 §4.4)",
        arguments: [.delete, .put] as [LarderHTTP.Method])
    func post(_ method: LarderHTTP.Method) {
        let bench = Bench()
        bench.perform(method: .post)
        bench.perform(method: method)
        bench.upstream.fetches[1].answer(204)
        var fields = bench.fresh
        fields.append("Content-Location", "/")
        bench.upstream.fetches[0].answer(200, fields, "posted")
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("the same where it was purged", arguments: [true, false])
    func purged(_ byKey: Bool) {
        let bench = Bench()
        bench.perform(method: .post)
        if byKey {
            bench.session.remove(bench.key)
        } else {
            bench.session.removeAll(in: .all) { _ in }
        }
        var fields = bench.fresh
        fields.append("Content-Location", "/")
        bench.upstream.fetches[0].answer(200, fields, "posted")
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test(
        "but what a POST itself has invalidated is not in its way (RFC 9111 §4.4)",
        arguments: Kind.allCases)
    func own(_ kind: Kind) {
        let bench = Self.bench(kind)
        bench.perform("/p?u=1", method: .post)
        var fields = bench.fresh
        fields.append("Content-Location", "/p?u=1")
        fields.append("Location", "/p?u=2")
        fields.append("No-Vary-Search", "params=(\"u\")")
        bench.upstream.fetches[0].answer(200, fields, "posted")
        #expect(bench.perform("/p?u=3").client.wholeBody == "posted")
        #expect(bench.upstream.fetches.count == 1)
    }
}
