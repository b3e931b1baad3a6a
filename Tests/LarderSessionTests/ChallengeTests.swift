import LarderCredentials
import LarderHTTP
import LarderPolicy
@testable import LarderSession
import NIOCore
import Testing

@Suite("A session answers challenges with what it holds (RFC 9110 §11.6)")
struct ChallengeTests {
    private static let basic = "Basic " + Base64Text.of("alice:" + ChainBench.password)

    @Test("Basic: a 401 is answered once, and the client hears of neither (RFC 7617 §2)")
    func basic() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let client = bench.perform().client
        #expect(bench.sent(0, "Authorization") == nil)
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""], "no")
        #expect(client.calls == 0)
        #expect(bench.sent(1, "Authorization") == Self.basic)
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "yes")
        #expect(client.status == 200)
        #expect(client.wholeBody == "yes")
        #expect(bench.session.counters().acts == [.challengeAnswered: 1])
        #expect(client.answer?.acts == [.challengeAnswered])
        // Shared, and nothing allows to store it (RFC 9111 §3.5).
        #expect(client.cacheStatus?.contains("detail=request-authorization") == true)
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
        #expect(bench.sent(2, "Authorization") == Self.basic)
    }

    @Test("what a 401 leads to may be stored where it says so, or in a private session")
    func storing() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "public, max-age=60"], "all")
        #expect(bench.perform().client.cacheStatus?.contains("hit") == true)

        var policy = PolicyConfiguration()
        policy.kind = .private
        let own = ChainBench(
            policy: policy, partition: "user:alice", store: ChainBench.holding(.basic))
        own.perform()
        own.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        own.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "mine")
        let second = own.perform().client
        #expect(second.cacheStatus?.contains("hit") == true)
        #expect(second.wholeBody == "mine")
    }

    @Test("Vary: Authorization is judged by digests that stay while the credential does")
    func varying() async {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(
            200, ["Cache-Control": "public, max-age=60", "Vary": "Authorization"], "alice's")
        #expect(bench.perform().client.cacheStatus?.contains("hit") == true)
        let space = ProtectionSpace(
            party: .server(.https), host: "origin.example", port: 443, realm: "r", method: .basic)
        await bench.credentials.update { store in
            store.set(
                Credential(user: "alice", password: Secret("new"), persistence: .forSession),
                for: space)
        }
        bench.perform()
        // Another password is another request; and it is not sent before it is asked for.
        #expect(bench.upstream.fetches.count == 3)
        #expect(bench.sent(2, "Authorization") == nil)
    }

    @Test("Digest: counts the uses of a nonce, and follows nextnonce (RFC 7616 §3.4, §3.5)")
    func digest() {
        let bench = ChainBench(store: ChainBench.holding(.digest))
        bench.perform("https://origin.example/a")
        bench.upstream.fetches[0].answer(
            401, ["WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", nonce=\"n1\""])
        #expect(bench.sent(1, "Authorization")?.contains("nc=00000001") == true)
        #expect(bench.sent(1, "Authorization")?.contains("uri=\"/a\"") == true)
        bench.upstream.fetches[1].answer(200)
        bench.perform("https://origin.example/b?c")
        #expect(bench.sent(2, "Authorization")?.contains("nc=00000002") == true)
        #expect(bench.sent(2, "Authorization")?.contains("uri=\"/b?c\"") == true)
        bench.upstream.fetches[2].answer(200, ["Authentication-Info": "nextnonce=\"n2\""])
        bench.perform("https://origin.example/c")
        #expect(bench.sent(3, "Authorization")?.contains("nonce=\"n2\"") == true)
        #expect(bench.sent(3, "Authorization")?.contains("nc=00000001") == true)
    }

    @Test("Digest: no two requests use the same count of a nonce, also when they overlap")
    func overlapping() {
        let bench = ChainBench(store: ChainBench.holding(.digest))
        let challenge: Fields = [
            "WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", nonce=\"n1\""
        ]
        for path in ["a", "b", "c"] { bench.perform("https://origin.example/\(path)") }
        for index in 0..<3 { bench.upstream.fetches[index].answer(401, challenge) }
        let counts = (3..<6).compactMap { index in
            bench.sent(index, "Authorization")?.split(separator: ", ")
                .first { $0.hasPrefix("nc=") }.map(String.init)
        }
        #expect(counts == ["nc=00000001", "nc=00000002", "nc=00000003"])
    }

    @Test("Digest: a stale nonce is replaced, twice in a row and no more (RFC 7616 §3.3)")
    func stale() {
        let bench = ChainBench(store: ChainBench.holding(.digest))
        let client = bench.perform().client
        func challenge(_ nonce: Int, stale: Bool) -> Fields {
            [
                "WWW-Authenticate":
                    "Digest realm=\"r\", qop=\"auth\", nonce=\"n\(nonce)\", stale=\(stale)"
            ]
        }
        bench.upstream.fetches[0].answer(401, challenge(0, stale: false))
        bench.upstream.fetches[1].answer(401, challenge(1, stale: true))
        bench.upstream.fetches[2].answer(401, challenge(2, stale: true))
        #expect(bench.upstream.fetches.count == 4)
        bench.upstream.fetches[3].answer(401, challenge(3, stale: true), "enough")
        #expect(bench.upstream.fetches.count == 4)
        #expect(client.status == 401)
        #expect(client.wholeBody == "enough")
        #expect(bench.session.counters().acts[.nonceRenewed] == 2)
    }

    @Test("Digest: a nonce that an old server has forgotten without a word is replaced once")
    func forgotten() {
        let bench = ChainBench(store: ChainBench.holding(.digest))
        bench.perform()
        let challenge: (String) -> Fields = {
            ["WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", nonce=\"\($0)\""]
        }
        bench.upstream.fetches[0].answer(401, challenge("n1"))
        bench.upstream.fetches[1].answer(200)
        let client = bench.perform().client
        bench.upstream.fetches[2].answer(401, challenge("n2"))
        #expect(bench.sent(3, "Authorization")?.contains("nonce=\"n2\"") == true)
        bench.upstream.fetches[3].answer(200, [:], "yes")
        #expect(client.wholeBody == "yes")
    }

    @Test("Digest: a proof that is wrong is noticed, and the space forgotten (RFC 7616 §3.5)")
    func unproven() {
        let bench = ChainBench(store: ChainBench.holding(.digest))
        bench.perform()
        bench.upstream.fetches[0].answer(
            401, ["WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", nonce=\"n1\""])
        bench.upstream.fetches[1].answer(
            200,
            [
                "Authentication-Info":
                    "qop=auth, rspauth=\"0000\", cnonce=\"c1\", nc=00000001, nextnonce=\"n2\""
            ])
        #expect(bench.session.counters().acts[.originUnproven] == 1)
        bench.perform()
        #expect(bench.sent(2, "Authorization") == nil)
    }

    @Test("the strongest scheme is answered first, and unknown algorithms are passed over")
    func strongest() {
        let bench = ChainBench(store: ChainBench.holding(.basic, .digest))
        bench.perform()
        bench.upstream.fetches[0].answer(
            401,
            [
                "WWW-Authenticate": "Basic realm=\"r\"",
                "WWW-Authenticate":
                    "Digest realm=\"r\", nonce=\"x\", qop=\"auth\", algorithm=SHA-512-256, "
                    + "Digest realm=\"r\", nonce=\"y\", qop=\"auth\", algorithm=SHA-256",
            ])
        #expect(bench.sent(1, "Authorization")?.contains("algorithm=SHA-256,") == true)
        #expect(bench.sent(1, "Authorization")?.contains("nonce=\"y\"") == true)
    }

    @Test("what Digest was refused with is not sent in clear after it")
    func noDowngrade() {
        let bench = ChainBench(store: ChainBench.holding(.basic, .digest))
        let client = bench.perform().client
        let both: Fields = [
            "WWW-Authenticate": "Digest realm=\"r\", nonce=\"x\", qop=\"auth\", Basic realm=\"r\""
        ]
        bench.upstream.fetches[0].answer(401, both)
        bench.upstream.fetches[1].answer(401, both)
        #expect(bench.upstream.fetches.count == 2)
        #expect(client.status == 401)
    }

    @Test("a realm of Basic beside one of Digest is answered, and known from then on")
    func besideDigest() {
        var store = ChainBench.holding(.digest, realm: "d")
        store.addLogin(.basic, realm: "b")
        let bench = ChainBench(store: store)
        bench.perform("https://origin.example/d/x")
        bench.upstream.fetches[0].answer(
            401, ["WWW-Authenticate": "Digest realm=\"d\", nonce=\"n\", qop=\"auth\""])
        bench.upstream.fetches[1].answer(200)
        let client = bench.perform("https://origin.example/b/x").client
        #expect(bench.sent(2, "Authorization")?.hasPrefix("Digest ") == true)
        bench.upstream.fetches[2].answer(401, ["WWW-Authenticate": "Basic realm=\"b\""])
        #expect(bench.sent(3, "Authorization")?.hasPrefix("Basic ") == true)
        bench.upstream.fetches[3].answer(200)
        #expect(client.status == 200)
        #expect(client.answer?.acts == [.credentialPreempted, .challengeAnswered])
        bench.perform("https://origin.example/b/y")
        #expect(bench.sent(4, "Authorization")?.hasPrefix("Basic ") == true)
    }

    @Test("over plain http another realm is no reason to send in clear what went out as Digest")
    func besideDigestInClear() {
        var store = ChainBench.holding(.digest, realm: "d", scheme: .http)
        store.addLogin(.basic, realm: "b", scheme: .http)
        let bench = ChainBench(store: store)
        bench.perform("http://origin.example/d/x")
        bench.upstream.fetches[0].answer(
            401, ["WWW-Authenticate": "Digest realm=\"d\", nonce=\"n\", qop=\"auth\""])
        bench.upstream.fetches[1].answer(200)
        bench.perform("http://origin.example/d/x")
        bench.upstream.fetches[2].answer(401, ["WWW-Authenticate": "Basic realm=\"b\""])
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("a 401 whose answer was refused before says why it was passed on")
    func withheld() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let challenge: Fields = ["WWW-Authenticate": "Basic realm=\"r\""]
        bench.perform()
        bench.upstream.fetches[0].answer(401, challenge)
        bench.upstream.fetches[1].answer(401, challenge)
        let second = bench.perform().client
        bench.upstream.fetches[2].answer(401, challenge)
        #expect(second.answer?.acts == [.credentialWithheld])
        let other = bench.perform().client
        bench.upstream.fetches[3].answer(401, ["WWW-Authenticate": "Basic realm=\"other\""])
        #expect(other.answer?.acts == [])
    }

    @Test("NTLM and Negotiate are the upstream's to speak, and remembered for the origin")
    func handshake() {
        let store = ChainBench.holding(.ntlm, realm: nil)
        let bench = ChainBench(store: store)
        bench.perform("https://origin.example/a/b")
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "NTLM"])
        let asked = bench.upstream.fetches[1].request.connectionAuthentication
        #expect(asked?.scheme == .ntlm)
        #expect(asked?.user == "alice")
        #expect(asked?.revealedPassword == Array(ChainBench.password.utf8))
        bench.upstream.fetches[1].answer(200)
        bench.perform("https://origin.example/c")
        #expect(bench.upstream.fetches[2].request.connectionAuthentication?.scheme == .ntlm)
        #expect(bench.sent(2, "Authorization") == nil)
    }

    @Test("a refused credential is passed on as 401, and not sent again until it has changed")
    func refused() async {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let challenge: Fields = ["WWW-Authenticate": "Basic realm=\"r\""]
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, challenge)
        bench.upstream.fetches[1].answer(401, challenge, "still no")
        #expect(client.status == 401)
        #expect(client.field("WWW-Authenticate") == "Basic realm=\"r\"")
        #expect(client.wholeBody == "still no")
        for _ in 0..<5 {
            let again = bench.perform().client
            bench.upstream.fetches.last?.answer(401, challenge, "no")
            #expect(again.status == 401)
        }
        #expect(bench.upstream.fetches.count == 7)
        #expect(bench.session.counters().acts[.credentialRefused] == 1)
        await bench.credentials.update { _ in [] }
        bench.perform()
        bench.upstream.fetches[7].answer(401, challenge)
        #expect(bench.upstream.fetches.count == 9)
    }

    @Test("one that had been good gets one more chance, after the next challenge")
    func revoked() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let challenge: Fields = ["WWW-Authenticate": "Basic realm=\"r\""]
        bench.perform()
        bench.upstream.fetches[0].answer(401, challenge)
        bench.upstream.fetches[1].answer(200)
        bench.perform()
        #expect(bench.sent(2, "Authorization") == Self.basic)
        bench.upstream.fetches[2].answer(401, challenge)
        #expect(bench.upstream.fetches.count == 3)  // The same octets again would be no use.
        bench.perform()
        #expect(bench.sent(3, "Authorization") == nil)
        bench.upstream.fetches[3].answer(401, challenge)
        bench.upstream.fetches[4].answer(401, challenge)
        bench.perform()
        bench.upstream.fetches[5].answer(401, challenge)
        #expect(bench.upstream.fetches.count == 6)
    }

    @Test("a session that is told not to answer does not")
    func off() {
        let bench = ChainBench(store: ChainBench.holding(.basic, .digest), answers: false)
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        #expect(client.status == 401)
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("content that cannot be sent twice waits for the challenge (RFC 9110 §10.1.1)")
    func content() {
        let limit = UInt64(RepeatableBody.limit)
        let (known, other) = ("https://origin.example/", "https://other.example/")
        for (uri, length, expects) in [
            (known, .known(limit), false), (known, .known(limit + 1), true),
            (known, .unknown, true),
            (other, .unknown, false), ("https://origin.example:8443/", .unknown, false),
            ("http://origin.example/", .unknown, false),
        ] as [(String, BodyLength, Bool)] {
            let bench = ChainBench(store: ChainBench.holding(.basic))
            bench.perform(uri, method: .put, body: ScriptedBody("x"), length: length)
            let sent = bench.upstream.fetches[0].request.expectsContinue
            #expect(sent == expects, "\(uri) \(length)")
        }
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let body = ScriptedBody("x")
        let client = bench.perform(known, method: .put, body: body, length: .unknown).client
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        #expect(body.asked == 0)
        #expect(bench.sent(1, "Authorization")?.hasPrefix("Basic ") == true)
        #expect(!bench.upstream.fetches[1].request.expectsContinue, "the login is known now")
        bench.upstream.fetches[1].answer(204)
        #expect(client.status == 204)
        bench.perform(known, method: .put, body: ScriptedBody("x"), length: .unknown)
        #expect(!bench.upstream.fetches[2].request.expectsContinue)
    }

    @Test("an origin that fulfils no expectations gets the content without one (RFC 9110 §10.1.1)")
    func noExpectations() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let client = bench.perform(method: .put, body: ScriptedBody("x"), length: .unknown).client
        #expect(bench.upstream.fetches[0].request.expectsContinue)
        bench.upstream.fetches[0].answer(417)
        #expect(client.answer == nil && !bench.upstream.fetches[1].request.expectsContinue)
        bench.upstream.fetches[1].answer(417)
        #expect(client.status == 417 && bench.upstream.fetches.count == 2)
    }

    @Test("a client with credentials of its own is never answered for")
    func clients() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(200)
        let client = bench.perform("https://origin.example/", ["Authorization": "Basic own"]).client
        #expect(bench.sent(2, "Authorization") == "Basic own")
        bench.upstream.fetches[2].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        #expect(client.status == 401)
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test(
        "what is no good challenge is passed on as it came",
        arguments: [
            "", "Basic", "Basic realm", "Basic realm=\"r", "Basic realm=\"other\"",
            "Basic realm=\"r\", charset=\"latin1\"", "Digest realm=\"r\"",
            "Digest realm=\"r\", nonce=\"\"", "Digest realm=\"r\", nonce=\"n\", algorithm=ROT13",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth-conf\"", "Bearer realm=\"r\"",
            ",,,,", "=\"\"", "Basic realm=\"r\" realm=\"r\"",
        ])
    func malformed(_ challenge: String) {
        let bench = ChainBench(store: ChainBench.holding(.basic, .digest))
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": challenge], "no")
        #expect(client.status == 401)
        #expect(client.wholeBody == "no")
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("Basic goes ahead of the question below the last slash, and nowhere else (RFC 7617 §2.2)")
    func preemption() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform("https://origin.example/dir/page")
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(200)
        let places = [
            ("https://origin.example/dir/other?q", true), ("https://origin.example/dir/a/b", true),
            ("https://origin.example/", false), ("https://origin.example/dir/../x", false),
            ("http://origin.example/dir/page", false), ("https://origin.example:8443/dir/x", false),
            ("https://other.example/dir/page", false),
        ]
        for (uri, isSent) in places {
            bench.perform(uri)
            #expect(
                (bench.upstream.fetches.last?.request.fields.contains("Authorization") == true)
                    == isSent, "\(uri)")
        }
    }
}
