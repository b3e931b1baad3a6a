import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Answers that stand")
struct StandingAnswerTests {
    /// A bench that has a response for `/`, ten seconds old.
    private static func stored(_ extra: Fields = Fields()) -> Bench {
        let bench = Bench()
        bench.perform()
        var fields = bench.fresh
        fields.append(contentsOf: extra)
        bench.upstream.fetches[0].answer(200, fields, "hello")
        bench.clock.advance(.seconds(10))
        return bench
    }

    private static func ask(
        _ bench: Bench, _ fields: Fields = Fields(), method: Method = .get,
        policy: RequestCachePolicy? = nil, keeps: Bool = true
    ) -> RecordingClient {
        let client = RecordingClient()
        var options = ExchangeOptions(cachePolicy: policy)
        options.keepsStanding = keeps
        _ = bench.session.perform(
            Request(
                method: method,
                uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"),
                fields: fields),
            body: nil, options: options, client: client)
        return client
    }

    @Test("say what the same request would be told anew, and count as it would")
    func again() throws {
        let bench = Self.stored()
        let standing = try #require(Self.ask(bench).answer?.standing)
        bench.clock.advance(.milliseconds(7_600))
        let before = bench.session.counters()
        let again = try #require(bench.session.again(standing, cachePolicy: nil))
        let counted = bench.session.counters()
        let anew = Self.ask(bench)
        #expect("\(again.moment.age)" == anew.field("Age"))
        #expect("larder; hit; ttl=\(again.moment.ttl)" == anew.cacheStatus)
        #expect(again.body.map { String(buffer: $0) } == anew.wholeBody)
        #expect(again.moment.time == bench.clock.now())
        var expected = before
        expected.requests += 1
        expected.hits += 1
        expected.bytesFromStore += 5
        expected.reasons[.fresh, default: 0] += 1
        #expect(counted == expected)
        let recent = bench.session.recentExchanges(
            for: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"), limit: 2)
        #expect(recent.count == 2)
        #expect(recent.first == recent.last)
    }

    struct Asked: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var fields = Fields()
        var method = Method.get
        var extra = Fields()
        let stands: Bool

        init(
            _ name: String, _ fields: Fields = Fields(), method: Method = .get,
            stored extra: Fields = Fields(), stands: Bool
        ) {
            self.testDescription = name
            self.fields = fields
            self.method = method
            self.extra = extra
            self.stands = stands
        }
    }

    @Test(
        "are given where nothing but the time can change them",
        arguments: [
            Asked("plain", stands: true),
            Asked("HEAD", method: .head, stands: true),
            Asked("Vary", stored: ["Vary": "Accept"], stands: true),
            Asked("Vary of what a proxy adds", stored: ["Vary": "Forwarded"], stands: false),
            Asked("304", ["If-None-Match": "\"a\""], stands: true),
            Asked("a range", ["Range": "bytes=1-2"], stands: true),
            Asked("several ranges", ["Range": "bytes=0-0,2-2"], stands: false),
            Asked("a range that cannot be", ["Range": "bytes=9-"], stands: false),
            Asked("max-age", ["Cache-Control": "max-age=30"], stands: false),
            Asked("Pragma", ["Pragma": "x"], stands: false),
            Asked("a variant", stored: ["Vary": "Accept"], stands: true),
            Asked("of a group", stored: ["Cache-Groups": "\"g\""], stands: false),
        ])
    func given(_ asked: Asked) {
        let bench = Self.stored(asked.extra)
        let client = Self.ask(bench, asked.fields, method: asked.method)
        #expect(client.cacheStatus?.hasPrefix("larder; hit") == true)
        #expect((client.answer?.standing != nil) == asked.stands)
        guard let standing = client.answer?.standing else { return }
        let body = bench.session.again(standing, cachePolicy: nil)?.body
        #expect(body.map { String(buffer: $0) } ?? "" == client.wholeBody)
    }

    @Test(
        "are judged by all that is stored under the key, and not by what was chosen",
        arguments: [
            (["Vary": "Accept"], true, true), (["Vary": "X-Id"], true, false),
            (["Vary": "Accept, Forwarded"], false, false),
            (["Vary": "Accept", "Cache-Groups": "\"g\""], false, false),
        ] as [(Fields, Bool, Bool)])
    func variants(_ extra: Fields, _ stands: Bool, _ isByGist: Bool) throws {
        let bench = Bench()
        var fields = bench.fresh
        fields.append(contentsOf: extra)
        bench.perform("/", ["Accept": "a", "X-Id": "1"])
        bench.upstream.fetches[0].answer(200, fields, "of a")
        // Leaves the others alone: it may lack `Vary` by mistake (RFC 9111 §4.1).
        bench.perform("/", ["Accept": "b"])
        bench.upstream.fetches[1].answer(200, bench.fresh, "of b")
        let client = Self.ask(bench, ["Accept": "b"])
        #expect(client.cacheStatus?.hasPrefix("larder; hit") == true)
        #expect(client.wholeBody == "of b")
        let standing = client.answer?.standing
        #expect((standing != nil) == stands)
        #expect(standing?.isByGist ?? false == isByGist)
    }

    @Test("are given to those alone who keep them, and never for what came from the origin")
    func asked() {
        let bench = Self.stored()
        #expect(Self.ask(bench, keeps: false).answer?.standing == nil)
        bench.clock.advance(.seconds(51))
        let stale = Self.ask(bench)
        bench.upstream.fetches[1].answer(304, bench.fresh)
        #expect(stale.status == 200)
        #expect(stale.answer?.standing == nil)
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (Bench) -> Void

        init(_ name: String, _ make: @escaping @Sendable (Bench) -> Void) {
            self.testDescription = name
            self.make = make
        }
    }

    @Test(
        "fall, and count nothing",
        arguments: [
            Change("with their freshness") { $0.clock.advance(.seconds(50)) },
            Change("when the clock is set back") { $0.clock.advance(.seconds(-11)) },
            Change("with a purge") { $0.session.remove($0.key) },
            Change("with a new policy") {
                $0.session.follow(PolicyConfiguration(), cachePolicy: .useProtocol)
            },
            Change("with a new configuration") { $0.session.follow(SessionConfiguration()) },
            Change("with an unsafe request") { bench in
                bench.perform(method: .post)
                bench.upstream.fetches[1].answer(200)
            },
        ])
    func fall(_ change: Change) throws {
        let bench = Self.stored()
        let standing = try #require(Self.ask(bench).answer?.standing)
        change.make(bench)
        let before = bench.session.counters()
        #expect(bench.session.again(standing, cachePolicy: nil) == nil)
        #expect(bench.session.counters() == before)
    }

    @Test("fall when the clock is set back behind their receipt, however old they were by then")
    func setBack() throws {
        let bench = Self.stored(["Age": "20"])
        let standing = try #require(Self.ask(bench).answer?.standing)
        bench.clock.advance(.seconds(-10))
        #expect(bench.session.again(standing, cachePolicy: nil)?.moment.age == 20)
        bench.clock.advance(.seconds(-1))
        #expect(bench.session.again(standing, cachePolicy: nil) == nil)
    }

    @Test("fall after a minute, however long they are fresh")
    func minute() throws {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "max-age=3600"], "hello")
        let standing = try #require(Self.ask(bench).answer?.standing)
        bench.clock.advance(.milliseconds(59_999))
        #expect(bench.session.again(standing, cachePolicy: nil)?.moment.ttl == 3540)
        bench.clock.advance(.milliseconds(1))
        #expect(bench.session.again(standing, cachePolicy: nil) == nil)
    }

    @Test("are no other request cache policy's, and no other session's")
    func strangers() throws {
        let bench = Self.stored()
        let standing = try #require(Self.ask(bench).answer?.standing)
        #expect(bench.session.again(standing, cachePolicy: .reloadIgnoringLocal) == nil)
        #expect(Self.stored().session.again(standing, cachePolicy: nil) == nil)
        let offline = try #require(
            Self.ask(bench, policy: .returnCacheDontLoad).answer?.standing)
        #expect(bench.session.again(offline, cachePolicy: nil) == nil)
        #expect(bench.session.again(offline, cachePolicy: .returnCacheDontLoad) != nil)
    }
}
