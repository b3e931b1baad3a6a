import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@Suite("Two tiers seen as one: storing")
struct TieredSinkTests {
    private func begin(
        _ tiers: Tiers, _ name: String = "a", length: UInt64? = nil, replacing: [ObjectID] = []
    ) -> (sink: (any ObjectSink)?, observer: RecordingObserver) {
        let observer = RecordingObserver()
        let sink = tiers.store.store(
            Sample.head(at: 5), for: Sample.key(name), length: length, replacing: replacing,
            observer: observer)
        return (sink, observer)
    }

    @Test("is visible in memory at commit, and has ended then, however slow the lower tier is")
    func slowDisk() throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.disk.hold()
        let (sink, observer) = self.begin(tiers)
        sink?.write(Sample.body(10))
        #expect(observer.heard == RecordingObserver.Heard(), "the lower tier has not moved")
        sink?.commit(trailers: ["X-End": "1"])
        let id = try #require(tiers.store.resident("a")?.first?.id)
        #expect(observer.heard.written == [10])
        #expect(observer.heard.outcomes == [.visible(id)])
        tiers.disk.letGo()
        #expect(observer.heard.outcomes.count == 1)
        #expect(tiers.store.foundIDs("a") == [id])
        #expect(tiers.disk.ids("a").count == 1)
    }

    @Test(
        "ends with the lower tier, and as that does, for one who awaits it",
        arguments: [nil, .noSpace] as [SinkAbandonment?])
    func awaited(failure: SinkAbandonment?) throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.disk.hold()
        tiers.disk.fail(failure)
        let observer = RecordingObserver(awaitsLowest: true)
        let sink = tiers.store.store(
            Sample.head(at: 5), for: Sample.key("a"), length: nil, replacing: [],
            observer: observer)
        sink?.write(Sample.body(10))
        sink?.commit(trailers: Fields())
        let id = try #require(tiers.store.resident("a")?.first?.id)
        #expect(observer.heard.outcomes.isEmpty)
        tiers.disk.letGo()
        #expect(observer.heard.outcomes == [failure.map { .abandoned($0) } ?? .visible(id)])
        #expect(tiers.store.foundIDs("a") == [id])
    }

    @Test("ends with the lower tier where memory does not take it")
    func slowDiskAlone() throws {
        let tiers = Tiers()
        tiers.disk.hold()
        let observer = tiers.store.put("a", body: Tiers.large)
        #expect(observer.heard.outcomes.isEmpty)
        tiers.disk.letGo()
        #expect(observer.heard.outcomes.count == 1)
        #expect(tiers.store.foundIDs("a") == [observer.id].compactMap { $0 })
    }

    @Test(
        "gives the lower tier all of a small body when it is whole, or has become too large",
        arguments: [[10], [10, 20, 30], [3000, 3000, 3000], []])
    func withheld(pieces: [Int]) throws {
        let tiers = Tiers()
        let (sink, observer) = self.begin(tiers, length: UInt64(pieces.reduce(0, +) % 5000))
        for size in pieces { sink?.write(Sample.body(size)) }
        sink?.commit(trailers: Fields())
        #expect(observer.heard.outcomes.count == 1)
        #expect(tiers.disk.lengths("a") == [UInt64(pieces.reduce(0, +))])
    }

    @Test(
        "lets go of its observer at the end, though the sink is still held",
        arguments: [true, false])
    func observerReleased(commits: Bool) {
        let tiers = Tiers()
        weak var released: RecordingObserver?
        var held: (any ObjectSink)?
        do {
            let (sink, observer) = self.begin(tiers)
            held = sink
            released = observer
            sink?.write(Sample.body(10))
            if commits { sink?.commit(trailers: Fields()) } else { sink?.abandon() }
            #expect(observer.heard.outcomes.count == 1)
        }
        #expect(released == nil)
        #expect(held != nil)
    }

    @Test("goes on in memory when the lower tier refuses")
    func refused() {
        let tiers = Tiers()
        tiers.disk.refuse()
        let (sink, observer) = self.begin(tiers)
        sink?.write(Sample.body(10))
        #expect(observer.heard.written == [10])
        sink?.commit(trailers: Fields())
        #expect(observer.id != nil)
        #expect(tiers.store.foundIDs("a") == [observer.id].compactMap { $0 })
        let (none, _) = self.begin(tiers, length: 10_000)
        #expect(none == nil, "neither tier takes it")
    }

    @Test("is refused where the lower tier refuses, for one who awaits it")
    func awaitedInVain() {
        let tiers = Tiers()
        tiers.disk.refuse()
        let sink = tiers.store.store(
            Sample.head(at: 5), for: Sample.key("a"), length: 10, replacing: [],
            observer: RecordingObserver(awaitsLowest: true))
        #expect(sink == nil)
    }

    @Test("ends abandoned when memory is outgrown and there is no other")
    func outgrownAlone() {
        let tiers = Tiers()
        tiers.disk.refuse()
        let (sink, observer) = self.begin(tiers)
        sink?.write(Sample.body(5000))
        #expect(observer.heard.outcomes == [.abandoned(.tooLarge)])
        sink?.commit(trailers: Fields())
        #expect(observer.heard.outcomes.count == 1)
    }

    @Test("goes on below when memory is outgrown")
    func outgrown() {
        let tiers = Tiers()
        let (sink, observer) = self.begin(tiers)
        for _ in 0..<3 { sink?.write(Sample.body(3000)) }
        #expect(drain(sink?.reader(from: 8000)).bytes.count == 1000)
        sink?.commit(trailers: Fields())
        #expect(observer.heard.written == [3000, 6000, 9000])
        #expect(observer.id.map { [$0] } == tiers.disk.ids("a"))
        #expect(tiers.store.foundIDs("a") == tiers.disk.ids("a"))
    }

    @Test("stays in memory when the lower tier fails at the end", arguments: [true, false])
    func failed(isHeld: Bool) {
        let tiers = Tiers()
        tiers.disk.fail(.noSpace)
        if isHeld { tiers.disk.hold() }
        let (sink, observer) = self.begin(tiers)
        sink?.write(Sample.body(10))
        sink?.commit(trailers: Fields())
        tiers.disk.letGo()
        #expect(observer.heard.written == [10])
        #expect(observer.heard.outcomes.count == 1)
        #expect(tiers.store.foundIDs("a") == [observer.id].compactMap { $0 })
    }

    @Test("passes on why the lower tier failed, where memory has none")
    func failedAlone() {
        let tiers = Tiers()
        tiers.disk.fail(.noSpace)
        #expect(tiers.store.put("a", body: Tiers.large).outcome == .abandoned(.noSpace))
        #expect(tiers.store.found("a").isEmpty)
    }

    @Test("abandons in both tiers, also when it is released", arguments: [true, false])
    func abandoned(isReleased: Bool) {
        let tiers = Tiers()
        var (sink, observer) = self.begin(tiers)
        sink?.write(Sample.body(10))
        if isReleased { sink = nil } else { sink?.abandon() }
        #expect(observer.heard.outcomes == [.abandoned(.byWriter)])
        #expect(tiers.disk.calls.contains(.abandon))
        #expect(tiers.store.found("a").isEmpty)
        #expect(!observer.heard.toldAfterEnd)
    }

    @Test("replaces in both tiers at once, however slow the lower is")
    func replaced() throws {
        let tiers = Tiers()
        let old = try #require(tiers.store.put("a").id)
        let below = tiers.disk.ids("a")
        tiers.fillMemory()
        tiers.disk.hold()
        let (sink, observer) = self.begin(tiers, replacing: [old])
        sink?.write(Sample.body(20))
        sink?.commit(trailers: Fields())
        #expect(tiers.disk.calls.contains(.store(Sample.key("a"), replacing: below)))
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.disk.letGo()
        #expect(answer.last?.map(\.bodyLength) == [20])
        #expect(tiers.store.foundIDs("a") == [observer.id].compactMap { $0 })
        #expect(tiers.disk.ids("a").count == 1)
    }

    @Test(
        "hides what it replaces while the lower tier still shows it", arguments: [true, false])
    func replacedHidden(refuses: Bool) {
        let tiers = Tiers()
        if refuses { tiers.disk.refuse() }
        let old = tiers.disk.seed("a")
        let answer = Box<[StoredObject]>()
        tiers.disk.hold()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        let (sink, _) = self.begin(tiers, replacing: [old])
        sink?.commit(trailers: Fields())
        #expect(tiers.disk.step(), "the lookup")
        #expect(answer.last?.map(\.bodyLength) == [0], "not the old one of 10 bytes")
        #expect(tiers.disk.ids("a") == [old])
        tiers.disk.letGo()
        #expect(!tiers.disk.ids("a").contains(old))
    }

    @Test(
        "replaces below by itself when the lower tier fails or refuses", arguments: [true, false])
    func replacedThoughFailed(refuses: Bool) {
        let tiers = Tiers()
        let old = tiers.disk.seed("a")
        if refuses { tiers.disk.refuse() } else { tiers.disk.fail(.storeFailed) }
        let new = tiers.store.put("a", replacing: [old]).id
        #expect(tiers.disk.ids("a").isEmpty)
        #expect(tiers.store.foundIDs("a") == [new].compactMap { $0 })
    }

    @Test("keeps the old one when the new one is nowhere stored")
    func notReplaced() {
        let tiers = Tiers()
        let old = tiers.disk.seed("a")
        tiers.disk.fail(.storeFailed)
        tiers.store.put("a", body: Tiers.large, replacing: [old])
        #expect(tiers.store.foundIDs("a") == [old])
    }

    @Test("replaces in memory when a large one has landed below")
    func replacedByLarge() throws {
        let tiers = Tiers()
        let old = try #require(tiers.store.put("a").id)
        tiers.disk.hold()
        let observer = tiers.store.put("a", body: Tiers.large, replacing: [old])
        #expect(tiers.store.resident("a") == nil)
        tiers.disk.letGo()
        #expect(tiers.store.foundIDs("a") == [observer.id].compactMap { $0 })
        #expect(tiers.disk.ids("a").count == 1)
    }

    @Test("replaces what is itself still on its way")
    func replacedLanding() throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.disk.hold()
        let first = tiers.store.put("a", Sample.head(at: 1))
        let id = try #require(tiers.store.resident("a")?.first?.id)
        let second = tiers.store.put("a", Sample.head(at: 2), replacing: [id])
        #expect(tiers.store.resident("a")?.map(\.head) == [Sample.head(at: 2)])
        tiers.disk.letGo()
        #expect(first.id == id, "it was visible")
        #expect(tiers.store.foundIDs("a") == [second.id].compactMap { $0 })
        #expect(tiers.disk.ids("a").count == 1)
        #expect(tiers.disk.head("a") == Sample.head(at: 2))
    }

    @Test("shows one copy of what the lower tier shows before it says so")
    func landingCopy() {
        let tiers = Tiers()
        let other = tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        tiers.disk.hold()
        let (sink, _) = self.begin(tiers)
        sink?.commit(trailers: Fields())
        let copy = tiers.disk.seed("a", Sample.head(at: 5), body: ByteBuffer())
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.disk.stepLast()
        let ids = answer.last?.map(\.id) ?? []
        #expect(ids.count == 2)
        #expect(ids.last == other)
        #expect(!ids.contains(copy))
    }

    @Test("does not show the copy of what was removed on its way")
    func doomedCopy() throws {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        tiers.disk.hold()
        tiers.store.put("a", Sample.head(at: 5))
        let id = try #require(tiers.store.resident("a")?.first?.id)
        tiers.disk.seed("a", Sample.head(at: 5))
        tiers.store.put("a", Sample.head(at: 6, language: "fr"), body: Tiers.large)
        tiers.store.remove(Sample.key("a"), ids: [id], nil)
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.disk.stepLast()
        #expect(answer.last?.map(\.head) == [Sample.head(at: 1, language: "de")])
    }
}
