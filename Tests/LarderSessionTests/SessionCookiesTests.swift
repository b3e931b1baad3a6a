import LarderCookies
import LarderHTTP
import LarderSession
import Synchronization
import Testing

private let t0 = Timestamp(seconds: 1_700_000_000)

private func hop(
    _ text: String = "https://a.test/", client: Fields = [:], number: Int = 0,
    first: String? = nil, method: LarderHTTP.Method = .get
) throws -> Hop {
    Hop(
        method: method, uri: try #require(TargetURI(text: text)), client: client, number: number,
        first: first.flatMap { TargetURI(text: $0) })
}

extension SessionCookies {
    /// What reaches the client of a response with these lines.
    @discardableResult
    fileprivate func take(
        _ lines: String..., hop: Hop, at now: Timestamp = t0
    ) -> [String] {
        var head = ResponseHead(status: StatusCode(200), fields: ["Content-Type": "text/plain"])
        for line in lines { head.fields.append("Set-Cookie", line) }
        self.takeCookies(from: &head, for: hop, at: now)
        #expect(head.fields.contains("Content-Type"))
        return head.fields.values("Set-Cookie").map { String(decoding: $0, as: UTF8.self) }
    }

    fileprivate func sends(_ hop: Hop, own: String? = nil, at now: Timestamp = t0) -> String? {
        var fields: Fields = ["Accept": "*/*"]
        if let own { fields.append("Cookie", own) }
        self.addCookies(to: &fields, for: hop, at: now)
        return fields.string("Cookie")
    }
}

/// What was reported.
private final class Events: Sendable {
    private let list = Mutex<[CookieEvent]>([])
    var all: [CookieEvent] { self.list.withLock { $0 } }
    func add(_ event: CookieEvent) { self.list.withLock { $0.append(event) } }
}

@Suite("A session's cookies meet requests and responses")
struct SessionCookiesTests {
    private func cookies(
        _ handling: CookieHandling = CookieHandling(accept: .always), _ events: Events = Events()
    ) -> SessionCookies {
        SessionCookies(handling, suffixes: TopLevelSuffixes()) { events.add($0) }
    }

    @Test("what a response sets the next request has, and the client does not see it")
    func roundTrip() throws {
        let cookies = self.cookies()
        #expect(try cookies.sends(hop()) == nil)
        #expect(try cookies.take("a=1; Secure", "b=2, c=3", hop: hop()) == [])
        #expect(try cookies.sends(hop()) == "a=1; b=2, c=3")
        #expect(try cookies.sends(hop("http://a.test/")) == "b=2, c=3")
        #expect(try cookies.sends(hop("https://b.test/")) == nil)
    }

    @Test("what is only explained counts neither as sent nor as used")
    func explained() throws {
        let cookies = self.cookies()
        try cookies.take("a=1", hop: hop())
        var fields = Fields()
        cookies.showCookies(in: &fields, for: try hop(), at: t0 + .seconds(9))
        #expect(fields.string("Cookie") == "a=1")
        #expect(cookies.counters().sent == 0)
        #expect(cookies.snapshot(at: t0).map(\.lastAccess) == [t0])
    }

    @Test("what would be lost: nothing, what is in memory alone, what is on its way")
    func residue() async throws {
        let ephemeral = self.cookies()
        #expect(ephemeral.residue == .nothing)
        try ephemeral.take("a=1; Max-Age=9", hop: hop())
        #expect(ephemeral.residue == .memory)
        let storage = ScriptedCookieStorage()
        let kept = SessionCookies(
            CookieHandling(accept: .always), storage: storage, suffixes: TopLevelSuffixes())
        storage.stop()
        try kept.take("a=1; Max-Age=9", hop: hop())
        #expect(kept.residue == .underWay)
        storage.go()
        try await kept.flush()
        #expect(kept.residue == .nothing)
        try kept.take("b=1", hop: hop())
        #expect(kept.residue == .memory)
        try await kept.endSession()
        #expect(kept.residue == .nothing)
        storage.fail(CookieStorageError(.full, "full"))
        try kept.take("c=1; Max-Age=9", hop: hop())
        try? await kept.flush()
        #expect(kept.residue == .memory)
    }

    @Test("show-set-cookie lets the client see all lines")
    func shows() throws {
        let cookies = self.cookies(CookieHandling(accept: .always, showsSetCookie: true))
        #expect(try cookies.take("a=1", "b=2; Domain=b.test", hop: hop()).count == 2)
        #expect(try cookies.sends(hop()) == "a=1")
    }

    @Test(
        "the client's own lines are merged by the setting",
        arguments: [
            (.clientFirst, "b=client", "b=client; a=jar"),
            (.clientFirst, nil, "a=jar; b=jar"),
            (.jarReplaces, "b=client", "a=jar; b=jar"),
            (.clientOnly, "c=client", "c=client"), (.clientOnly, nil, "a=jar; b=jar"),
        ] as [(CookieField.Merging, String?, String)])
    func merging(_ merging: CookieField.Merging, _ own: String?, _ expected: String) throws {
        let cookies = self.cookies(CookieHandling(accept: .always, merging: merging))
        try cookies.take("a=jar", "b=jar", hop: hop())
        #expect(try cookies.sends(hop(), own: own) == expected)
    }

    @Test("the accept policy goes by the document that the client names")
    func accept() throws {
        let events = Events()
        let cookies = self.cookies(CookieHandling(accept: .onlyFromMainDocumentDomain), events)
        let image = try hop(client: ["Referer": "https://other.example/page"])
        #expect(cookies.take("a=1; Secure; SameSite=None", hop: image) == [])
        #expect(events.all == [.refused(.thirdParty, count: 1, host: "a.test")])
        let own = try hop(client: ["Referer": "https://www.a.test/page"])
        cookies.take("a=1", hop: own)
        #expect(try cookies.sends(hop()) == "a=1")
        cookies.update(CookieHandling(accept: .never), at: t0)
        #expect(try cookies.take("b=1", "c=1", hop: hop()) == [])
        #expect(events.all.last == .refused(.policyNever, count: 2, host: "a.test"))
        // What is there goes on being sent: the policy is about taking.
        #expect(try cookies.sends(hop()) == "a=1")
    }

    @Test("a redirection to another site leaves at home what is for this one")
    func redirection() throws {
        let cookies = self.cookies(CookieHandling())
        try cookies.take(
            "s=1; SameSite=Strict", "l=1; SameSite=Lax", "n=1; SameSite=None; Secure", "u=1",
            hop: hop())
        let there = try hop(number: 1, first: "https://b.test/")
        #expect(cookies.sends(there) == "n=1; u=1")
        #expect(
            try cookies.sends(hop(number: 1, first: "https://w.a.test/")) == "s=1; l=1; n=1; u=1")
        // Where the chain does not say where it began.
        #expect(try cookies.sends(hop(number: 1)) == "n=1; u=1")
        // Each hop of a client that says nothing is its own document: logins by way of others work.
        #expect(cookies.take("t=1; SameSite=Lax", hop: there, at: t0 + .seconds(1)) == [])
        #expect(try cookies.sends(hop()) == "s=1; l=1; n=1; u=1; t=1")
    }

    @Test("counts what it took, sent, refused and evicted")
    func counters() throws {
        let limits = CookieLimits(perDomain: 2, total: 3)
        let events = Events()
        let cookies = self.cookies(CookieHandling(accept: .always, limits: limits), events)
        try cookies.take("a=1", "b=1", "c=1", "d=1; Domain=b.test", "=", "=", hop: hop())
        try cookies.take("a=1", "b=1", hop: hop("https://b.test/"), at: t0 + .seconds(1))
        _ = try cookies.sends(hop("https://b.test/"))
        _ = try cookies.sends(hop("https://b.test/"), own: "a=0")
        let counters = cookies.counters()
        #expect(counters.held == 3 && counters.stored == 5 && counters.evicted == 2)
        #expect(counters.refused == [.foreignDomain: 1, .empty: 2])
        #expect(counters.sent == 3 && counters.unkept == 0)
        #expect(
            events.all == [
                .refused(.empty, count: 2, host: "a.test"),
                .refused(.foreignDomain, count: 1, host: "a.test"),
            ])
        cookies.update(
            CookieHandling(accept: .always, limits: CookieLimits(perDomain: 1, total: 1)), at: t0)
        #expect(cookies.counters().held == 1 && cookies.counters().evicted == 4)
        let sum = counters + cookies.counters()
        #expect(sum.evicted == 6 && sum.refused == [.foreignDomain: 2, .empty: 4])
    }

    @Test("expired cookies leave the jar while responses come, also after the clock was set back")
    func sweep() throws {
        let cookies = self.cookies()
        try cookies.take("a=1; Max-Age=10", hop: hop())
        try cookies.take("b=1", hop: hop(), at: t0 + .seconds(30))
        #expect(cookies.counters().held == 2 && cookies.snapshot(at: t0 + .seconds(30)).count == 1)
        try cookies.take("c=1", hop: hop(), at: t0 + .seconds(61))
        #expect(cookies.counters().held == 2)
        try cookies.take("d=1; Max-Age=10", hop: hop(), at: t0 - .seconds(900))
        cookies.removeExpired(at: t0 - .seconds(800))
        #expect(cookies.counters().held == 2)
    }

    @Test("no description shows a value")
    func secrecy() throws {
        let cookies = self.cookies()
        try cookies.take("name=geheim", hop: hop())
        var dumped = "\(cookies) \(String(reflecting: cookies)) \(cookies.counters())"
        dump(cookies.snapshot(at: t0), to: &dumped)
        #expect(!dumped.contains("geheim"))
    }
}

@Suite("A session's cookies and their storage")
struct SessionCookiesStorageTests {
    private static let failure = CookieStorageError(.full, "no space left")

    private func cookies(_ storage: ScriptedCookieStorage, _ events: Events = Events())
        -> SessionCookies
    {
        SessionCookies(
            CookieHandling(accept: .always), storage: storage, suffixes: TopLevelSuffixes()
        ) { events.add($0) }
    }

    private func names(_ cookies: [Cookie]) -> [String] {
        cookies.map { String(decoding: $0.name, as: UTF8.self) }.sorted()
    }

    @Test("persistent cookies outlive the process, those of the session do not")
    func restart() async throws {
        let storage = ScriptedCookieStorage()
        let before = self.cookies(storage)
        await before.restore(at: t0)
        try before.take(
            "p=1; Max-Age=100", "q=1; Max-Age=100", "s=1", "gone=1; Max-Age=50", hop: hop())
        try before.take("q=2", hop: hop())
        try await before.endSession()
        #expect(self.names(before.snapshot(at: t0)) == ["gone", "p"])
        #expect(self.names(storage.held) == ["gone", "p"])

        let after = self.cookies(storage)
        let later = t0 + .seconds(60)
        await after.restore(at: later)
        #expect(try after.sends(hop(), at: later) == "p=1")
        try await after.flush()
        #expect(self.names(storage.held) == ["p"])
    }

    @Test("the order of a response's lines outlives the process")
    func order() async throws {
        let storage = ScriptedCookieStorage()
        let names = (0..<20).map { "n\($0)" }
        let before = self.cookies(storage)
        var head = ResponseHead(status: StatusCode(200))
        for name in names { head.fields.append("Set-Cookie", "\(name)=1; Max-Age=9") }
        before.takeCookies(from: &head, for: try hop(), at: t0)
        try await before.flush()
        let after = self.cookies(storage)
        await after.restore(at: t0)
        #expect(try after.sends(hop()) == names.map { "\($0)=1" }.joined(separator: "; "))
    }

    @Test("responses do not wait; the storage follows in order, one call at a time")
    func batches() async throws {
        let storage = ScriptedCookieStorage()
        let cookies = self.cookies(storage)
        storage.stop()
        try cookies.take("a=1; Max-Age=9", "b=1; Max-Age=9", hop: hop())
        await storage.called(1)
        // The first is in flight. What comes meanwhile goes together, each cookie's last alone.
        try cookies.take("c=1; Max-Age=9", "a=2; Max-Age=9", hop: hop())
        try cookies.take("c=; Max-Age=0", "d=1; Max-Age=9", "b=", hop: hop())
        #expect(try cookies.sends(hop()) == "a=2; b=; d=1")
        #expect(cookies.counters().unkept == 5)
        storage.go()
        try await cookies.flush()
        let batches = storage.batches.map { batch in
            batch.map { change in
                switch change {
                case .stored(let cookie):
                    String(decoding: CookieField.value(of: [cookie]), as: UTF8.self)
                case .removed(let identity): "-" + String(decoding: identity.name, as: UTF8.self)
                }
            }
        }
        #expect(batches == [["a=1", "b=1"], ["a=2", "d=1", "-b"]])
        #expect(cookies.counters().unkept == 0 && storage.mostUnderWay == 1)
    }

    @Test("a person's change returns when it is kept")
    func change() async throws {
        let storage = ScriptedCookieStorage()
        let cookies = self.cookies(storage)
        try cookies.take("a=1; Max-Age=9", hop: hop())
        storage.stop()
        async let removed = cookies.change { jar in
            let changes = jar.remove { $0.domain == "a.test" }
            return (changes.count, changes)
        }
        await storage.called(1)
        storage.go()
        #expect(try await removed == 1)
        #expect(storage.held.isEmpty && cookies.counters().unkept == 0)
        // Without a change, or one that came to nothing, there is nothing to wait for.
        #expect(try await cookies.change { ($0.count, []) } == 0)
        let kept = try await cookies.change { jar in
            let cookie = Cookie(
                name: [0x61], value: [0x62], domain: "a.test", isHostOnly: true, creation: t0)
            let stored = jar.set(cookie, at: t0).changes
            return (jar.count, stored + jar.remove(cookie.identity))
        }
        #expect(kept == 1 && cookies.counters().held == 0)
    }

    @Test("a storage that fails is said once, counted, and brought what it misses")
    func failing() async throws {
        let events = Events()
        let storage = ScriptedCookieStorage()
        let cookies = self.cookies(storage, events)
        try cookies.take("a=1; Max-Age=9", hop: hop())
        try await cookies.flush()
        storage.fail(Self.failure)
        await #expect(throws: Self.failure) {
            try await cookies.change { jar in
                let changes = jar.remove { _ in true }
                return (changes.count, changes)
            }
        }
        try cookies.take("b=1; Max-Age=9", hop: hop())
        await #expect(throws: Self.failure) { try await cookies.flush() }
        // In memory it holds.
        #expect(try cookies.sends(hop()) == "b=1")
        #expect(events.all == [.notKept(Self.failure)])
        #expect(cookies.counters().unkept == 2 && cookies.counters().storageFailures >= 2)
        #expect(self.names(storage.held) == ["a"])
        storage.fail(nil)
        try cookies.take("c=1; Max-Age=9", hop: hop())
        try await cookies.flush()
        #expect(self.names(storage.held) == ["b", "c"])
        #expect(events.all == [.notKept(Self.failure), .keptAgain])
        #expect(cookies.counters().unkept == 0)
    }

    @Test("a failing storage is not asked again before there is something new")
    func noLoop() async throws {
        let storage = ScriptedCookieStorage()
        let cookies = self.cookies(storage)
        storage.fail(Self.failure)
        try cookies.take("a=1; Max-Age=9", hop: hop())
        await #expect(throws: Self.failure) { try await cookies.change { _ in ((), []) } }
        let calls = storage.calls
        #expect(calls <= 2)
        _ = try cookies.sends(hop())
        #expect(storage.calls == calls)
        storage.fail(nil)
        try await cookies.endSession()
        #expect(storage.calls == calls + 1 && storage.held.count == 1)
    }

    @Test("a flush asks once more where the attempt that it met fails")
    func flushMeetsFailure() async throws {
        let storage = ScriptedCookieStorage()
        let cookies = self.cookies(storage)
        storage.stop()
        storage.failOnce(Self.failure)
        try cookies.take("a=1; Max-Age=9", hop: hop())
        await storage.called(1)
        let flushed = Task.immediate { try await cookies.flush() }
        storage.go()
        try await flushed.value
        #expect(storage.calls == 2 && self.names(storage.held) == ["a"])
        #expect(cookies.counters().unkept == 0 && cookies.counters().storageFailures == 1)
        // Once: a storage that fails on says so.
        storage.stop()
        storage.fail(Self.failure)
        try cookies.take("b=1; Max-Age=9", hop: hop())
        await storage.called(3)
        let failed = Task.immediate { try await cookies.flush() }
        storage.go()
        await #expect(throws: Self.failure) { try await failed.value }
        #expect(storage.calls == 4 && self.names(storage.held) == ["a"])
    }

    @Test("a storage that cannot be read is left as it is")
    func unreadable() async throws {
        let held = Cookie(
            name: [0x6F], value: [0x31], domain: "a.test", isHostOnly: true, creation: t0,
            expiry: t0 + .seconds(99))
        let events = Events()
        let storage = ScriptedCookieStorage([held])
        let damaged = CookieStorageError(.damaged, "another key")
        storage.failLoading(damaged)
        let cookies = self.cookies(storage, events)
        await cookies.restore(at: t0)
        try cookies.take("a=1; Max-Age=9", hop: hop())
        #expect(try cookies.sends(hop()) == "a=1")
        await #expect(throws: damaged) { try await cookies.flush() }
        await #expect(throws: damaged) { try await cookies.endSession() }
        #expect(events.all == [.notRestored(damaged)])
        #expect(storage.calls == 0 && storage.held == [held])
    }

    @Test("what the jar has already is newer than what the storage held")
    func restoreLate() async throws {
        let old = Cookie(
            name: [0x61], value: [0x30], domain: "a.test", isHostOnly: true, creation: t0,
            expiry: t0 + .seconds(99))
        let storage = ScriptedCookieStorage([old])
        let cookies = self.cookies(storage)
        try cookies.take("a=1; Max-Age=9", hop: hop())
        await cookies.restore(at: t0)
        #expect(try cookies.sends(hop()) == "a=1")
        try await cookies.flush()
        #expect(storage.held.map(\.value) == [[0x31]])
    }

    @Test("many at once: in the end jar and storage hold the same", arguments: [1, 2, 3])
    func concurrency(_ round: Int) async throws {
        let storage = ScriptedCookieStorage()
        let cookies = SessionCookies(
            CookieHandling(accept: .always, limits: CookieLimits(perDomain: 10, total: 40)),
            storage: storage, suffixes: TopLevelSuffixes())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for i in 0..<60 {
                        let here = try hop("https://h\((task + i) % 7).a.test/")
                        let age = (task * i) % 5 == 0 ? 0 : 500
                        let wide = i % 3 == 0 ? "; Domain=a.test" : ""
                        cookies.take("n\(i % 14)=\(round); Max-Age=\(age)\(wide)", hop: here)
                        _ = cookies.sends(here)
                        if i % 20 == 7 { storage.fail(i % 40 == 7 ? Self.failure : nil) }
                        if i % 25 == 3 { try? await cookies.flush() }
                    }
                }
            }
            try await group.waitForAll()
        }
        storage.fail(nil)
        try await cookies.endSession()
        let held = Set(cookies.snapshot(at: t0).map(\.identity))
        #expect(Set(storage.held.map(\.identity)) == held && !held.isEmpty && held.count <= 40)
        #expect(storage.mostUnderWay == 1 && cookies.counters().unkept == 0)
    }
}

@Suite("What a storage does not have yet")
struct CookieBacklogTests {
    private static func cookie(_ name: Int, persistent: Bool = true) -> Cookie {
        Cookie(
            name: Array("n\(name)".utf8), value: [], domain: "a.test", isHostOnly: true,
            creation: t0, expiry: persistent ? t0 + .seconds(99) : nil)
    }

    @Test("a cookie that the storage never had leaves nothing behind")
    func cancelled() {
        var backlog = CookieBacklog()
        backlog.note([.stored(Self.cookie(1)), .removed(Self.cookie(1).identity)])
        backlog.note([.stored(Self.cookie(2, persistent: false))])
        #expect(backlog.isEmpty && backlog.next() == nil)
    }

    @Test("what is in flight may arrive or not, and its removal is right either way")
    func inFlight() {
        for succeeds in [true, false] {
            var backlog = CookieBacklog()
            backlog.note([.stored(Self.cookie(1))])
            #expect(backlog.next() == [.stored(Self.cookie(1))])
            backlog.note([.removed(Self.cookie(1).identity)])
            #expect(backlog.next() == nil)
            backlog.finished(succeeded: succeeds)
            #expect(backlog.next() == (succeeds ? [.removed(Self.cookie(1).identity)] : nil))
        }
    }

    @Test("what failed comes again, under what is newer")
    func again() {
        var backlog = CookieBacklog()
        backlog.restored([Self.cookie(3)])
        backlog.note([
            .stored(Self.cookie(1)), .stored(Self.cookie(2)), .removed(Self.cookie(3).identity),
        ])
        _ = backlog.next()
        var newer = Self.cookie(2)
        newer.lastAccess = t0 + .seconds(1)
        backlog.note([.stored(newer)])
        backlog.finished(succeeded: false)
        #expect(
            backlog.next() == [
                .stored(Self.cookie(1)), .removed(Self.cookie(3).identity), .stored(newer),
            ])
        backlog.finished(succeeded: true)
        #expect(backlog.isEmpty && backlog.answered == backlog.last)
    }

    @Test("a slow or failing storage costs no more than jar and storage hold")
    func bounded() {
        var backlog = CookieBacklog()
        for i in 0..<10_000 {
            backlog.note([.stored(Self.cookie(i))])
            if i >= 50 { backlog.note([.removed(Self.cookie(i - 50).identity)]) }
            if i % 100 == 0 {
                backlog.finished(succeeded: false)
                _ = backlog.next()
            }
            #expect(backlog.count <= 200)
        }
    }
}

@Suite("Cookies that several sessions of programs share")
struct SharedCookiesTests {
    private func cookie(_ name: String, _ value: String = "v", lasts: Bool = true) -> Cookie {
        Cookie(
            name: Array(name.utf8), value: Array(value.utf8), domain: "a.test", isHostOnly: true,
            creation: t0, expiry: lasts ? t0 + .seconds(1000) : nil)
    }

    private func own(_ text: String, isHandled: Bool = true, document: String? = nil) throws -> Hop
    {
        var hop = try hop(text)
        hop.cookies = RequestCookies(isHandled: isHandled, mainDocumentHost: document)
        return hop
    }

    @Test("each session meets them by its own policies, and its client sees everything")
    func views() throws {
        let cookies = SessionCookies(
            CookieHandling(accept: .never), suffixes: TopLevelSuffixes())
        let view = CookieView(cookies, accept: .always, sends: true)
        var head = ResponseHead(status: StatusCode(200), fields: ["Set-Cookie": "a=1"])
        view.takeCookies(from: &head, for: try own("http://a.test/"), at: t0)
        #expect(head.fields.contains("Set-Cookie"))
        var fields: Fields = ["Cookie": "own=1"]
        view.addCookies(to: &fields, for: try own("http://a.test/"), at: t0)
        #expect(fields.string("Cookie") == "a=1")
        let other = CookieView(cookies, accept: .never, sends: false)
        head.fields = ["Set-Cookie": "b=1"]
        other.takeCookies(from: &head, for: try own("http://a.test/"), at: t0)
        fields = ["Cookie": "own=1"]
        other.addCookies(to: &fields, for: try own("http://a.test/"), at: t0)
        #expect(fields.string("Cookie") == "own=1")
        #expect(cookies.snapshot(at: t0).map(\.name) == [Array("a".utf8)])
        #expect(!view.whenKept {})
    }

    @Test("a request says itself what it wants of them, whatever its fields say")
    func requests() throws {
        let cookies = SessionCookies(CookieHandling(accept: .always), suffixes: TopLevelSuffixes())
        cookies.take("any=1; Path=/", "strict=1; SameSite=Strict", hop: try own("http://a.test/"))
        var ownSite = try own("http://a.test/", document: "x.a.test")
        ownSite.client = ["Sec-Fetch-Site": "cross-site", "Origin": "http://b.test"]
        #expect(cookies.sends(ownSite) == "any=1; strict=1")
        #expect(cookies.sends(try own("http://a.test/", document: "b.test")) == "any=1")
        #expect(cookies.sends(try own("http://a.test/", isHandled: false)) == nil)
        #expect(
            cookies.take("x=1", hop: try own("http://a.test/", isHandled: false)) == ["x=1"])
        #expect(cookies.snapshot(at: t0).count == 2)
    }

    @Test("observers hear what made a difference")
    func observers() throws {
        let heard = Mutex<[Int]>([])
        let cookies = SessionCookies(
            CookieHandling(accept: .always), suffixes: TopLevelSuffixes(),
            observer: { changes in heard.withLock { $0.append(changes.count) } })
        let hop = try own("http://a.test/")
        cookies.take("a=1", "b=1", hop: hop)
        cookies.take("a=1", "b=1", hop: hop)
        cookies.take("a=2", "b=1", hop: hop)
        cookies.take("c=1; Max-Age=0", "a=; Max-Age=0", hop: hop)
        cookies.take("d=1; Secure", hop: hop)
        #expect(heard.withLock { $0 } == [2, 1, 1])
    }

    @Test("what the storage holds now counts, but for changes that it does not have yet")
    func rereading() throws {
        let heard = Mutex<[CookieChange]>([])
        let cookies = SessionCookies(
            CookieHandling(accept: .always), storage: StuckStorage(), suffixes: TopLevelSuffixes(),
            observer: { changes in heard.withLock { $0 += changes } })
        #expect(cookies.reread([self.cookie("a"), self.cookie("b")], at: t0))
        #expect(heard.withLock { $0.count } == 2)
        #expect(!cookies.reread([self.cookie("a"), self.cookie("b")], at: t0))
        cookies.changeNow { jar in
            let outcomes = jar.set(
                [self.cookie("b", "mine"), self.cookie("new"), self.cookie("s", lasts: false)],
                at: t0)
            return ((), outcomes.flatMap(\.changes))
        }
        // Another has changed b, removed a, and added c.
        #expect(cookies.reread([self.cookie("b", "theirs"), self.cookie("c")], at: t0))
        let held = cookies.snapshot(at: t0).map { cookie in
            String(decoding: cookie.name + [0x3D] + cookie.value, as: UTF8.self)
        }
        #expect(held.sorted() == ["b=mine", "c=v", "new=v", "s=v"])
    }
}

/// A storage that never answers.
private struct StuckStorage: CookieStorage {
    func load() async throws(CookieStorageError) -> [Cookie] { [] }

    func apply(_ changes: [CookieChange]) async throws(CookieStorageError) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        for await _ in stream {}
        continuation.finish()
    }
}
