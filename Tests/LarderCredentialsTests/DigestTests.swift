import LarderCredentials
import LarderHTTP
import Testing

private let mufasa = Credential(
    user: "Mufasa", password: Secret("Circle of Life"), persistence: .forSession)
/// The password as RFC 2617 §3.5 spells it.
private let oldMufasa = Credential(
    user: "Mufasa", password: Secret("Circle Of Life"), persistence: .forSession)
private let oldRealm = "realm=\"testrealm@host.com\", "
private let oldNonce = "nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\""
private let index = DigestSession.Target(method: .get, uri: "/dir/index.html")

/// The parameters of an answer.
private func answer(_ value: [UInt8]) throws -> [String: String] {
    let parameters = try challenge(text(value)).parameters
    return Dictionary(uniqueKeysWithValues: parameters.map { ($0.name, text($0.value)) })
}

private func session(_ parameters: String, _ credential: Credential = oldMufasa) throws
    -> DigestSession
{
    DigestSession(try digest(parameters), credential: credential, cnonce: bytes("0a4f113b"))
}

@Suite("Digest: the examples of the RFCs")
struct DigestExampleTests {
    @Test(
        "MD5 and SHA-256 (RFC 7616 §3.9.1)",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func example1(_ algorithm: String, _ response: String) throws {
        let challenge = try digest(
            """
            realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", \
            opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """)
        var session = DigestSession(
            challenge, credential: mufasa,
            cnonce: bytes("f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"))
        let value = try session.fieldValue(for: index, hasher: Hasher())
        #expect(
            text(value) == """
                Digest username="Mufasa", realm="http-auth@example.org", \
                nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", uri="/dir/index.html", \
                response="\(response)", algorithm=\(algorithm), qop=auth, nc=00000001, \
                cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", \
                opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
                """)
    }

    /// With the values of erratum 4897: those that were printed are of a SHA-512 cut short.
    @Test("SHA-512-256, charset and userhash (RFC 7616 §3.9.2)")
    func example2() throws {
        let nonce = "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK"
        let cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"
        let a1 = "2d3d9f12c9f3d30011259dc5fecee005ae24de40e3e1f61806d03e65f1e6024f"
        let a2 = "1734b070bafdeb53ae52f93659427bb4bc545e2ef4d5e74ba247dad4861b4634"
        let user = "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
        let response = "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"
        let hasher = RecordedHasher(hashes: [
            "Jäsøn Doe:api@example.org:Secret, or not?": a1, "GET:/doe.json": a2,
            "Jäsøn Doe:api@example.org": user,
            "\(a1):\(nonce):00000001:\(cnonce):auth:\(a2)": response,
        ])
        let challenge = try digest(
            """
            realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="\(nonce)", \
            opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true
            """)
        var session = DigestSession(
            challenge,
            credential: Credential(
                user: "Jäsøn Doe", password: Secret("Secret, or not?"), persistence: .none),
            cnonce: bytes(cnonce))
        let target = DigestSession.Target(method: .get, uri: "/doe.json")
        let value = try answer(session.fieldValue(for: target, hasher: hasher))
        #expect(value["username"] == user && value["userhash"] == "true")
        #expect(value["response"] == response && value["algorithm"] == "SHA-512-256")
        #expect(value["opaque"] == "HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS")
        #expect(value["charset"] == nil)
    }

    @Test(
        "of RFC 2617 §3.5, and the variants of its values",
        arguments: [
            ("qop=\"auth,auth-int\"", "6629fae49393a05397450978507c4ef1"),
            ("x=y", "670fd8c2df070c60b045671b8b24ff02"),
            ("qop=auth, algorithm=MD5-sess", "8e3825c57e897f5a0dec6c2d4e5059d0"),
            ("qop=AUTH", "6629fae49393a05397450978507c4ef1"),
            ("qop=\"token, auth\", algorithm=md5", "6629fae49393a05397450978507c4ef1"),
        ])
    func rfc2617(_ parameters: String, _ response: String) throws {
        var session = try session("\(oldRealm)\(oldNonce), \(parameters)")
        let value = try answer(session.fieldValue(for: index, hasher: Hasher()))
        #expect(value["response"] == response)
        #expect((value["algorithm"] != nil) == parameters.contains("algorithm"))
        #expect((value["cnonce"] != nil) == parameters.contains("qop"))
        #expect((value["nc"] != nil) == parameters.contains("qop"))
    }

    @Test("auth-int covers the content (RFC 7616 §3.4.3)")
    func integrity() throws {
        var session = try session("\(oldRealm)\(oldNonce), qop=auth-int")
        var target = DigestSession.Target(
            method: .post, uri: "/dir/index.html", content: bytes("a=b"))
        let value = try answer(session.fieldValue(for: target, hasher: Hasher()))
        #expect(
            value["response"] == "31acff116b570c1d227b3736bd60821d" && value["qop"] == "auth-int")
        target.content = nil
        #expect(throws: CredentialFault.contentUnknown) {
            try session.fieldValue(for: target, hasher: Hasher())
        }
        #expect(session.nonceCount == 1)
    }
}

@Suite("Digest: challenges (RFC 7616 §3.3)")
struct DigestChallengeTests {
    @Test(
        "are checked",
        arguments: [
            ("Digest realm=r, nonce=n", nil), ("Digest realm=\"\", nonce=n, qop=auth", nil),
            ("Basic realm=r", .otherScheme), ("Digest nonce=n", .missingParameter),
            ("Digest realm=r", .missingParameter), ("Digest abc=", .missingParameter),
            ("Digest realm=r, nonce=\"\"", .badParameter),
            ("Digest realm=r, nonce=n, algorithm=SHA-1", .unsupportedAlgorithm),
            ("Digest realm=r, nonce=n, algorithm=MD5-sess-sess", .unsupportedAlgorithm),
            ("Digest realm=r, nonce=n, qop=\"auth-conf\"", .unsupportedProtection),
            ("Digest realm=r, nonce=n, qop=\"\"", .unsupportedProtection),
            ("Digest realm=r, nonce=n, algorithm=MD5-sess", .missingParameter),
            ("Digest realm=r, nonce=n, charset=latin1", .badParameter),
        ] as [(String, ChallengeFault?)])
    func check(_ line: String, _ fault: ChallengeFault?) throws {
        let found = try challenge(line)
        if let fault {
            #expect(throws: fault) { try DigestChallenge(found) }
        } else {
            _ = try DigestChallenge(found)
        }
    }

    @Test(
        "algorithms are read in any case",
        arguments: [
            ("md5", DigestAlgorithm(.md5)), ("SHA-256", DigestAlgorithm(.sha256)),
            ("sha-256-SESS", DigestAlgorithm(.sha256, isSession: true)),
            ("SHA-512-256-sess", DigestAlgorithm(.sha512Over256, isSession: true)),
            ("\"MD5-sess\"", DigestAlgorithm(.md5, isSession: true)),
        ])
    func algorithm(_ word: String, _ expected: DigestAlgorithm) throws {
        #expect(try digest("realm=r, nonce=n, qop=auth, algorithm=\(word)").algorithm == expected)
    }

    @Test("flags, opaque and protections")
    func parameters() throws {
        let plain = try digest("realm=r, nonce=n, stale=false, userhash=yes")
        #expect(!plain.isStale && !plain.hashesUser && plain.protections.isEmpty)
        #expect(plain.opaque == nil && plain.domain.isEmpty)
        let full = try digest(
            "realm=r, nonce=n, stale=TRUE, userhash=true, qop=\"auth, auth-int\", opaque=\"\"")
        #expect(full.isStale && full.hashesUser && full.opaque == [])
        #expect(full.protections == [.auth, .authInt])
    }

    @Test(
        "domain says where an answer may be sent unasked",
        arguments: [
            ("", "https://a.test/x", true), ("", "https://b.test/x", false),
            ("domain=\"/x\", ", "https://a.test/x/y", true),
            ("domain=\"/x\", ", "https://a.test/y", false),
            ("domain=\"/x https://a.test/y\", ", "https://a.test/y", true),
            ("domain=\"https://b.test/\", ", "https://b.test/", false),
            ("domain=\"https://b.test/\", ", "https://a.test/", false),
            ("domain=\"http://a.test/\", ", "https://a.test/", false),
            ("domain=\"::: ftp:\", ", "https://a.test/", false),
            ("domain=\"\(String(repeating: "/x ", count: 64))\", ", "https://a.test/x", true),
            ("domain=\"\(String(repeating: "/x ", count: 65))\", ", "https://a.test/x", false),
        ])
    func domain(_ parameter: String, _ uri: String, _ expected: Bool) throws {
        let challenge = try digest("\(parameter)realm=r, nonce=n")
        let origin = TargetURI(scheme: .https, host: "a.test", pathAndQuery: "/login")
        let target = try #require(origin.resolving(bytes(uri)[...]))
        #expect(challenge.covers(target, from: origin) == expected)
    }
}

@Suite("Digest: a session with one nonce (RFC 7616 §3.3 to §3.5)")
struct DigestSessionTests {
    private static let parameters = "\(oldRealm)\(oldNonce), qop=auth"

    @Test("counts its answers, in hexadecimal")
    func count() throws {
        var session = try session(Self.parameters + ", algorithm=MD5-sess")
        var counts: [String?] = []
        for _ in 0..<17 {
            let value = try answer(session.fieldValue(for: index, hasher: Hasher()))
            counts.append(value["nc"])
            if counts.count == 2 {
                #expect(value["response"] == "d16df0df0d92cef8935129145e21b5e1")
            }
        }
        #expect(counts.first == "00000001" && counts[9] == "0000000a" && counts[16] == "00000011")
    }

    @Test("nextnonce begins the count anew and keeps the session's key (§3.4.2, §3.5)")
    func nextNonce() throws {
        var session = try session(Self.parameters + ", algorithm=MD5-sess")
        _ = try session.fieldValue(for: index, hasher: Hasher())
        session.accepted(AuthenticationInformation(["Authentication-Info": "nextnonce=\"NEXT\""]))
        let value = try answer(session.fieldValue(for: index, hasher: Hasher()))
        #expect(value["nonce"] == "NEXT" && value["nc"] == "00000001")
        #expect(value["response"] == "1e0048ac31b6100357d7580018325332")
        session.accepted()
        #expect(session.nonce == bytes("NEXT") && session.nonceCount == 1)
    }

    @Test("a stale nonce is replaced, twice in a row and no more; anything else is a refusal")
    func stale() throws {
        let first = try session(Self.parameters)
        func next(_ nonce: String, stale: Bool = true, realm: String = oldRealm) throws
            -> DigestChallenge
        {
            try digest("\(realm)nonce=\(nonce), qop=auth, stale=\(stale)")
        }
        let cnonce = bytes("c")
        #expect(try first.renewed(by: next("2", stale: false), cnonce: cnonce) == nil)
        #expect(try first.renewed(by: next("2", realm: "realm=x, "), cnonce: cnonce) == nil)
        #expect(
            try first.renewed(by: digest(Self.parameters + ", stale=true"), cnonce: cnonce) == nil)
        let second = try #require(try first.renewed(by: next("2"), cnonce: cnonce))
        #expect(second.nonce == bytes("2") && second.nonceCount == 0)
        var third = try #require(try second.renewed(by: next("3"), cnonce: cnonce))
        #expect(try third.renewed(by: next("4"), cnonce: cnonce) == nil)
        third.accepted()
        #expect(try third.renewed(by: next("4"), cnonce: cnonce) != nil)
    }

    @Test("the server's proof is checked (§3.5)")
    func mutual() throws {
        var session = try session(Self.parameters)
        _ = try session.fieldValue(for: index, hasher: Hasher())
        func verdict(_ line: String) throws -> Bool? {
            let information = try #require(
                AuthenticationInformation(["Authentication-Info": line]))
            return try session.verifies(information, for: index, hasher: Hasher())
        }
        let rest = "qop=auth, cnonce=\"0a4f113b\", nc=00000001"
        #expect(try verdict("rspauth=\"376602cfd2f4e8e5e78b948a85263e85\", \(rest)") == true)
        #expect(
            try verdict(
                "rspauth=\"0\(String("376602cfd2f4e8e5e78b948a85263e85".dropFirst()))\", \(rest)")
                == false)
        #expect(try verdict("rspauth=\"\", \(rest)") == false)
        #expect(try verdict(rest) == nil)
        #expect(try verdict("rspauth=x, qop=auth, cnonce=other, nc=00000001") == nil)
        #expect(try verdict("rspauth=x, qop=auth, cnonce=\"0a4f113b\", nc=00000002") == nil)
        #expect(try verdict("rspauth=x, qop=auth, cnonce=\"0a4f113b\", nc=1") == nil)
    }

    @Test(
        "junk in Authentication-Info is no information",
        arguments: ["", "x", "abc==", "nextnonce=\"x", "a=b, Basic realm=x", "a=b, a=c", "a=b c"])
    func information(_ line: String) {
        #expect(AuthenticationInformation(["Authentication-Info": line]) == nil)
    }

    @Test("an empty nextnonce is none; two lines are none")
    func oddInformation() {
        let empty = AuthenticationInformation(["Authentication-Info": "nextnonce=\"\""])
        #expect(empty != nil && empty?.nextNonce == nil)
        #expect(
            AuthenticationInformation([
                "Authentication-Info": "nextnonce=a", "Authentication-Info": "nextnonce=b",
            ]) == nil)
    }

    @Test(
        "user names are quoted, or extended where they are not ASCII (§3.4)",
        arguments: [
            ("a\"b\\c", "username=\"a\\\"b\\\\c\""), ("a, b=c", "username=\"a, b=c\""),
            ("Jäsøn Doe", "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"),
            ("ä'%*!", "username*=UTF-8''%C3%A4%27%25%2A!"), ("", "username=\"\""),
        ])
    func users(_ user: String, _ expected: String) throws {
        var session = try session(
            Self.parameters, Credential(user: user, password: Secret("p"), persistence: .none))
        let value = text(try session.fieldValue(for: index, hasher: Hasher()))
        #expect(value.hasPrefix("Digest \(expected), realm="))
        #expect(throws: Never.self) { try challenge(value) }
    }

    @Test("what comes from a server is quoted again")
    func quoting() throws {
        var session = try session("realm=\"a\\\"b\", nonce=\"n\\\\\", opaque=\"o, p=q\", qop=auth")
        let value = try session.fieldValue(for: index, hasher: Hasher())
        let parameters = try answer(value)
        #expect(parameters["realm"] == "a\"b" && parameters["nonce"] == "n\\")
        #expect(parameters["opaque"] == "o, p=q")
    }

    @Test("nothing is computed without the hash, or with control characters")
    func faults() throws {
        var old = try session(Self.parameters + ", algorithm=SHA-512-256")
        #expect(throws: CredentialFault.unsupportedAlgorithm) {
            try old.fieldValue(for: index, hasher: Hasher())
        }
        #expect(old.nonceCount == 0)
        for (user, password, uri) in [("a\n", "p", "/"), ("a", "p\n", "/"), ("a", "p", "/\r\n")] {
            var session = try session(
                Self.parameters,
                Credential(user: user, password: Secret(password), persistence: .none))
            #expect(throws: CredentialFault.controlCharacter) {
                try session.fieldValue(
                    for: DigestSession.Target(method: .get, uri: uri), hasher: Hasher())
            }
        }
    }
}
