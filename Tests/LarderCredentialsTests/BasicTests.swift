import LarderCredentials
import LarderHTTP
import SeededNumbers
import Testing

@Suite("Basic (RFC 7617)")
struct BasicTests {
    private static func credential(_ user: String, _ password: String) -> Credential {
        Credential(user: user, password: Secret(password), persistence: .none)
    }

    @Test(
        "encodes user and password (§2, §2.1)",
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123£", "Basic dGVzdDoxMjPCow=="), ("", "", "Basic Og=="),
            ("a", "b:c", "Basic YTpiOmM="), ("ab", "", "Basic YWI6"),
        ])
    func encoding(_ user: String, _ password: String, _ expected: String) throws {
        let value = try Basic.fieldValue(for: Self.credential(user, password))
        #expect(text(value) == expected)
        let read = try Basic.read(value[...])
        #expect(read.user == bytes(user) && read.password == Secret(password))
    }

    @Test(
        "refuses what the scheme cannot carry",
        arguments: [
            ("a:b", "c", .colonInUser), ("a\n", "c", .controlCharacter),
            ("a", "c\u{7F}", .controlCharacter), ("a", "\u{0}", .controlCharacter),
        ] as [(String, String, CredentialFault)])
    func refusal(_ user: String, _ password: String, _ fault: CredentialFault) {
        #expect(throws: fault) { try Basic.fieldValue(for: Self.credential(user, password)) }
    }

    @Test(
        "reads nothing but its own, in the one encoding",
        arguments: [
            ("Basic", .malformed), ("Basic ", .malformed), ("Bearer YTpi", .malformed),
            ("YTpi", .malformed), ("Basic YTpi YTpi", .malformed), ("Basic YTp", .malformed),
            ("Basic YTpi=", .malformed), ("Basic YTo", .malformed), ("Basic YWI=", .malformed),
            ("Basic YTp=", .malformed), ("Basic Y===", .malformed), ("Basic ====", .malformed),
            ("Basic YT=i", .malformed), ("Basic YTp_", .malformed), ("Basic YWI", .malformed),
            ("Basic YToK", .controlCharacter),
        ] as [(String, CredentialFault)])
    func junk(_ value: String, _ fault: CredentialFault) {
        #expect(throws: fault) { try Basic.read(bytes(value)[...]) }
    }

    @Test("the scheme's name is read in any case")
    func cases() throws {
        #expect(try Basic.read(bytes("bASIC  YTpi")[...]).user == bytes("a"))
    }

    @Test("what is written reads back, whatever its length", arguments: [1, 2] as [UInt64])
    func roundTrip(_ seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for length in 0..<70 {
            let password =
                (0..<length).map { _ in UInt8.random(in: 0x20...0x7E, using: &generator) }
                + [0xFF]
            let credential = Credential(
                user: "u", password: Secret(password), persistence: .none)
            let value = try Basic.fieldValue(for: credential)
            #expect(value.count == 6 + (2 + length + 1 + 2) / 3 * 4)
            #expect(try Basic.read(value[...]).password.revealed == password)
        }
    }

    @Test(
        "a challenge needs a realm, and no other charset than UTF-8 (§2.1)",
        arguments: [
            ("Basic realm=x", nil), ("Basic realm=\"x\", charset=\"utf-8\"", nil),
            ("Basic realm=x, charset=UTF-8, foo=bar", nil), ("Basic", .missingParameter),
            ("Basic realm", .badParameter), ("Basic realm=x, charset=latin1", .badParameter),
            ("Digest realm=x", .otherScheme),
        ] as [(String, ChallengeFault?)])
    func check(_ line: String, _ fault: ChallengeFault?) throws {
        let challenge = try challenge(line)
        if let fault {
            #expect(throws: fault) { try Basic.check(challenge) }
        } else {
            try Basic.check(challenge)
        }
    }

    @Test(
        "a challenge without a realm can be taken for one with an empty realm, no other",
        arguments: [
            ("Basic", "", true), ("Basic a=b", "", true), ("Basic realm=x", "x", true),
            ("Basic abc=", nil, false), ("Digest a=b", nil, false),
        ] as [(String, String?, Bool)])
    func emptyRealm(_ line: String, _ realm: String?, _ isBasic: Bool) throws {
        let completed = try challenge(line).withBasicRealm
        #expect(completed.realm == realm)
        #expect(((try? Basic.check(completed)) != nil) == isBasic)
    }

    /// The example of §2.2 first.
    @Test(
        "is sent unasked at and below the directory (§2.2)",
        arguments: [
            ("/docs/index.html", "/docs/", true), ("/docs/index.html", "/docs/test.doc", true),
            ("/docs/index.html", "/docs/?page=1", true), ("/docs/index.html", "/docs", false),
            ("/docs/index.html", "/other", false), ("/", "/anything", true),
            ("/docs?x=/a/", "/docs/../x", false), ("/docs/x", "/docs/%2e%2E/y", false),
            ("/docs/x", "/docs/a/../../y", false), ("/docs/x", "/docs/..a", true),
            ("/docs/x", "/docs/..;/y", false), ("/docs/x", "/docs/%2e.;a=1/y", false),
            ("/docs/x", "/docs/..%2fy", false), ("/docs/x", "/docs/..%5Cy", false),
            ("/docs/x", "/docs/a;../y?/../", true),
            ("/docs/x?y=/z/", "/docs/q", true), ("/docs/x?/y/z", "/docs/x?/y/", true),
        ])
    func covers(_ accepted: String, _ path: String, _ expected: Bool) {
        let origin = TargetURI(scheme: .https, host: "a.test", pathAndQuery: accepted)
        var uri = TargetURI(scheme: .https, host: "a.test", pathAndQuery: path)
        #expect(Basic.covers(origin, uri) == expected)
        uri.scheme = .http
        #expect(!Basic.covers(origin, uri))
        uri = TargetURI(scheme: .https, host: "a.test", port: 8443, pathAndQuery: path)
        #expect(!Basic.covers(origin, uri))
    }
}
