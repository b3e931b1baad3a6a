import Testing

@testable import LarderConfig

@Suite("Addresses within addresses")
struct EmbeddedAddressTests {
    @Test(
        "are found (RFC 6052 §2.1, RFC 3056 §2, RFC 4291 §2.5.5.1)",
        arguments: [
            ("64:ff9b::10.1.2.3", "10.1.2.3"), ("64:ff9b::7f00:1", "127.0.0.1"),
            ("2002:a01:203::", "10.1.2.3"), ("2002:7f00:1:5::9", "127.0.0.1"),
            ("::10.1.2.3", "10.1.2.3"), ("::2", "0.0.0.2"),
            ("::", nil), ("::1", nil), ("10.1.2.3", nil), ("::ffff:10.1.2.3", nil),
            ("64:ff9b::1:0:0", nil), ("2003:a01:203::", nil), ("2001:db8::10.1.2.3", nil),
            ("64:ff9b:2::10.1.2.3", nil),
        ] as [(String, String?)])
    func embedded(_ address: String, _ embedded: String?) throws {
        let address = try #require(IPAddress(address))
        #expect(address.embedded.map(\.description) == (embedded.map { [$0] } ?? []))
    }

    @Test(
        "are looked for wherever a network's own translator may have them (RFC 8215, RFC 6052 §2.2)",
        arguments: [
            ("64:ff9b:1::10.1.2.3", ["10.1.2.3"]),
            ("64:ff9b:1:5:6:7:10.1.2.3", ["10.1.2.3", "6.0.7.10", "5.6.0.7"]),
            ("64:ff9b:1:0:a:102:300:0", ["3.0.0.0", "10.1.2.3"]),
            ("64:ff9b:1:a:1:203::", ["1.2.3.0", "10.1.2.3"]),
            ("64:ff9b:1:a01:2:300::", ["2.3.0.0", "1.2.3.0", "10.1.2.3"]),
            ("64:ff9b:1::", []),
        ])
    func translated(_ address: String, _ embedded: [String]) throws {
        let address = try #require(IPAddress(address))
        #expect(address.embedded.map(\.description) == embedded)
    }

    @Test(
        "count for rules that deny, and not for those that allow",
        arguments: [
            (["deny 10.0.0.0/8", "allow *"], "[64:ff9b::a01:203]", nil, false),
            (["deny 10.0.0.0/8", "allow *"], "[2002:a01:203::1]", nil, false),
            (["deny 10.0.0.0/8", "allow *"], "[::a01:203]", nil, false),
            (["deny 10.0.0.0/8", "allow *"], "h.example", "64:ff9b::a01:203", false),
            (["deny 10.0.0.0/8", "allow *"], "[64:ff9b:1::a01:203]", nil, false),
            (["deny 10.0.0.0/8", "allow *"], "h.example", "64:ff9b:1:a01:2:300::", false),
            (["deny 10.0.0.0/8", "allow *"], "[64:ff9b:1::b01:203]", nil, true),
            (["allow 10.0.0.0/8"], "[64:ff9b:1::a01:203]", nil, false),
            (["deny 127.0.0.0/8", "allow *"], "[64:ff9b::]", nil, false),
            (["deny 10.0.0.0/8", "allow *"], "[64:ff9b::b01:203]", nil, true),
            (["deny 10.0.0.0/8:443", "allow *"], "[64:ff9b::a01:203]", nil, true),
            (["allow 10.0.0.0/8"], "[64:ff9b::a01:203]", nil, false),
            (["allow 10.0.0.0/8"], "h.example", "2002:a01:203::1", false),
            (["deny 64:ff9b::/96", "allow *"], "10.1.2.3", nil, true),
        ] as [([String], String, String?, Bool)])
    func rules(_ rules: [String], _ host: String, _ address: String?, _ allowed: Bool) throws {
        let decision = try judge(rules, client: nil, host: host, address: address)
        #expect(decision.isAllowed == allowed)
    }
}

/// Judges a request for port 80 by rules such as `allow` and `deny 10.0.0.0/8`.
func judge(
    _ rules: [String], client: String?, host: String, address: String? = nil
) throws -> AccessDecision {
    let rules = try rules.map { text in
        let parts = text.split(separator: " ")
        return AccessRule(
            action: parts[0] == "allow" ? .allow : .deny,
            destinations: try parts.dropFirst().map {
                try DestinationPattern(settingText: String($0))
            })
    }
    return AccessJudge(rules).judge(
        AccessQuestion(
            client: ClientFacts(address: client.flatMap { IPAddress($0) }), method: "GET",
            host: host, port: 80, address: address.flatMap { IPAddress($0) }))
}
