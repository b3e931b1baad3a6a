import LarderCredentials
import LarderEngine
import LarderHTTP
import Testing

@Suite("Digest by swift-crypto (RFC 7616)")
struct CryptoHasherTests {
    @Test(
        "answers the example of the RFC (§3.9.1)",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func example(_ algorithm: String, _ expected: String) throws {
        let line =
            "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=\(algorithm), "
            + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
            + "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
        let challenge = try #require(try Challenges.parse(Array(line.utf8)[...]).first)
        var session = DigestSession(
            try DigestChallenge(challenge),
            credential: Credential(
                user: "Mufasa", password: Secret("Circle of Life"), persistence: .none),
            cnonce: Array("f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ".utf8))
        let value = try session.fieldValue(
            for: DigestSession.Target(method: .get, uri: "/dir/index.html"),
            hasher: CryptoHasher())
        #expect(String(decoding: value, as: UTF8.self).contains("response=\"\(expected)\""))
    }

    @Test("does not claim the hash that it has not")
    func unknown() {
        #expect(CryptoHasher().hash([], by: .sha512Over256) == nil)
    }
}
