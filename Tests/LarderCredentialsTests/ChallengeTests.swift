import LarderCredentials
import LarderHTTP
import SeededNumbers
import Testing

@Suite("Challenges (RFC 9110 §11.3, §11.6.1)")
struct ChallengeTests {
    /// A challenge as text: `scheme token68` or `scheme name<value> …`.
    private static func spelled(_ challenge: Challenge) -> String {
        var words = [challenge.scheme.lowercased]
        if let token = challenge.token68 { words.append(text(token)) }
        words += challenge.parameters.map { "\($0.name)<\(text($0.value))>" }
        return words.joined(separator: " ")
    }

    @Test(
        "are read from a list",
        arguments: [
            ("Basic realm=\"x\"", ["basic realm<x>"]), ("Basic realm=x", ["basic realm<x>"]),
            ("BASIC Realm=\"X\"", ["basic realm<X>"]), ("Negotiate", ["negotiate"]),
            ("Negotiate YIIab+/=", ["negotiate YIIab+/="]), ("NTLM TlRM==", ["ntlm TlRM=="]),
            ("Negotiate, NTLM", ["negotiate", "ntlm"]), ("Foo  a", ["foo a"]),
            ("Negotiate abc=, Basic realm=x", ["negotiate abc=", "basic realm<x>"]),
            ("A b=c, d=e, F g=h", ["a b<c> d<e>", "f g<h>"]), ("A b=c,F", ["a b<c>", "f"]),
            ("A b=\"c, D e=f\", G", ["a b<c, D e=f>", "g"]), ("A b = \"c\"", ["a b<c>"]),
            ("A b\t=\tc", ["a b<c>"]), ("A b=\"\\\"\\\\c\\d\"", ["a b<\"\\cd>"]),
            ("A b=\"\"", ["a b<>"]), (",, A b=c ,, d=e,,", ["a b<c> d<e>"]), ("", []),
            (" , ", []), ("A ", ["a"]), ("A , b=c", ["a b<c>"]), ("A ,b=c, D", ["a b<c>", "d"]),
            ("A b=\"\t\"", ["a b<\t>"]), ("A b=\"ü\"", ["a b<ü>"]), ("A b=, C", ["a b=", "c"]),
            // The long example of §11.6.1.
            (
                "Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\"",
                ["basic realm<simple>", "newauth realm<apps> type<1> title<Login to \"apps\">"]
            ),
        ])
    func reading(_ line: String, _ expected: [String]) throws {
        #expect(try challenges(line).map(Self.spelled) == expected)
    }

    @Test(
        "junk is refused",
        arguments: [
            ("realm=\"x\"", .syntax), ("Basic realm=\"x", .syntax),
            ("Basic realm=\"x\\\"", .syntax),
            ("Basic realm=foo bar", .syntax), ("Basic realm=\"x\" charset=\"y\"", .syntax),
            ("Basic realm=\"x\"y", .syntax), ("Basic realm=\"x\"; charset=\"y\"", .syntax),
            ("\"Basic\"", .syntax), ("Basic =x", .syntax), ("Basic\trealm=x", .syntax),
            ("Basic a=b=c", .syntax), ("Negotiate abc=, realm=x", .syntax),
            ("Negotiate a b", .syntax), ("Negotiate, realm=x", .syntax), ("A b=@", .syntax),
            ("A b=\"\u{7F}\"", .syntax), ("A b=\"\n\"", .syntax), ("A (b)", .syntax),
            ("Basic realm=a, realm=b", .repeatedParameter),
            ("Basic realm=a, REALM=a", .repeatedParameter),
        ] as [(String, ChallengeFault)])
    func junk(_ line: String, _ fault: ChallengeFault) {
        #expect(throws: fault) { try challenges(line) }
    }

    @Test("there is a bound to challenges and parameters")
    func bounds() {
        let schemes = (0..<33).map { "S\($0)" }
        #expect(throws: ChallengeFault.tooMany) {
            try challenges(schemes.joined(separator: ", "))
        }
        let parameters = (0..<65).map { "p\($0)=1" }
        #expect(throws: ChallengeFault.tooMany) {
            try challenges("A " + parameters.joined(separator: ", "))
        }
        var fields = Fields()
        for scheme in schemes { fields.append("WWW-Authenticate", scheme) }
        let found = Challenges(fields)
        #expect(found.list.count == 32 && found.faults == [.tooMany])
    }

    @Test("each line stands by itself: junk in one costs no other")
    func lines() {
        let fields: Fields = [
            "WWW-Authenticate": "Negotiate", "www-authenticate": "Basic realm=foo bar",
            "X": "Basic realm=y", "WWW-Authenticate": "realm=z",
            "WWW-Authenticate": "Digest realm=d, nonce=n, Basic realm=b",
        ]
        let found = Challenges(fields)
        #expect(
            found.list.map(Self.spelled) == [
                "negotiate", "digest realm<d> nonce<n>", "basic realm<b>",
            ])
        #expect(found.faults == [.syntax, .syntax])
        #expect(Challenges(fields, name: "Proxy-Authenticate") == Challenges([:]))
    }

    @Test("rank by strength, then as the server lists them")
    func ranking() {
        let found = Challenges([
            "WWW-Authenticate": "Basic realm=b, Bearer, Digest realm=1, Digest realm=2, NTLM",
            "WWW-Authenticate": "Negotiate",
        ])
        #expect(
            found.ranked().map(Self.spelled) == [
                "negotiate", "ntlm", "digest realm<1>", "digest realm<2>", "basic realm<b>",
            ])
        #expect(
            found.ranked(by: [.basic, .bearer]).map(Self.spelled) == ["basic realm<b>", "bearer"])
    }

    @Test("a realm that is not UTF-8 is Latin-1")
    func realm() throws {
        #expect(try challenge("Basic realm=\"ü\"").realm == "ü")
        let latin = try Challenges.parse((bytes("Basic realm=\"") + [0xFC, 0x22])[...])
        #expect(latin.first?.realm == "ü")
        #expect(try challenge("Basic a=b").realm == nil)
    }

    @Test("damaged lines never break the parser", arguments: [1, 2, 3, 4] as [UInt64])
    func mutations(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let sample =
            "Negotiate YII=, Digest realm=\"a\\\"b\", qop=\"auth, auth-int\", nonce=\"x\", "
            + "algorithm=SHA-256-sess, stale=TRUE, Basic realm=\"b\", charset=\"UTF-8\""
        var read = 0
        for _ in 0..<800 {
            let line = generator.mutated(sample)
            _ = AuthenticationInformation(["Authentication-Info": text(line)])
            _ = try? Basic.read(line[...])
            guard let found = try? Challenges.parse(line[...]) else { continue }
            read += 1
            for challenge in found {
                #expect(challenge.token68 == nil || challenge.parameters.isEmpty)
                #expect(bytes(challenge.scheme.lowercased)[...].isToken)
                #expect(Set(challenge.parameters.map(\.name)).count == challenge.parameters.count)
                let values = challenge.parameters.flatMap(\.value)
                #expect(values.allSatisfy(ASCII.isFieldValue))
                _ = try? DigestChallenge(challenge)
            }
        }
        #expect(read > 80)
    }
}
