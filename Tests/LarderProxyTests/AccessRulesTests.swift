import LarderHTTP
import Testing

@testable import LarderProxy

@Suite("Access rules")
struct AccessRulesTests {
    @Test(
        "take blocks of addresses apart",
        arguments: [
            ("10.0.0.0/8", "10.255.1.2", true), ("10.0.0.0/8", "11.0.0.0", false),
            ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "255.255.255.255", true), ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "[2001:db8:ffff::1]", true), ("2001:db8::/32", "2001:db9::", false),
            ("::/0", "::1", true), ("127.0.0.0/8", "::ffff:127.0.0.1", true),
        ])
    func blocks(_ block: String, _ address: String, _ expected: Bool) throws {
        let block = try #require(AddressBlock(block))
        let address = try #require(IPAddress(address))
        #expect(block.contains(address) == expected)
    }

    @Test(
        "refuse what is no block",
        arguments: [
            "", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/", "::/129", "a.example",
            "/8",
        ])
    func badBlocks(_ text: String) {
        #expect(AddressBlock(text) == nil)
    }

    @Test(
        "match hosts",
        arguments: [
            ("*", "a.example", true), ("a.example", "a.example", true),
            ("A.Example", "a.example", true), ("a.example", "b.a.example", false),
            ("*.example", "a.example", true), ("*.example", "example", false),
            ("*.example", "anexample", false), ("a.example", "a.example.", true),
            ("169.254.0.0/16", "169.254.169.254", true), ("::1", "[::1]", true),
            ("127.0.0.0/8", "localhost", false),
        ])
    func hosts(_ pattern: String, _ host: String, _ expected: Bool) throws {
        let pattern = try #require(HostPattern(pattern))
        #expect(pattern.matches(host, address: IPAddress(host)) == expected)
    }

    @Test("refuse what is no host pattern", arguments: ["", "a b", "*.", "a*", "http://a/"])
    func badHosts(_ text: String) {
        #expect(HostPattern(text) == nil)
    }

    static let rules = AccessRules([
        AccessRule(
            .deny,
            hosts: [.block(AddressBlock(address: IPAddress(v4: 0xA9FE_0000), prefixLength: 16))]),
        AccessRule(.deny, ports: [25...25], methods: [.connect]),
        AccessRule(
            .allow, clients: [AddressBlock(address: IPAddress(v4: 0x0A00_0000), prefixLength: 8)]),
        AccessRule(.allow, hosts: [.exactly("open.example")], methods: [.get, .head]),
    ])

    @Test(
        "decide in order",
        arguments: [
            ("10.1.1.1", Method.get, "a.example", UInt16(80), AccessVerdict.allowed),
            ("10.1.1.1", .get, "169.254.169.254", 80, .denied(rule: "rule 1")),
            ("10.1.1.1", .connect, "a.example", 25, .denied(rule: "rule 2")),
            ("10.1.1.1", .get, "a.example", 25, .allowed),
            ("192.0.2.1", .get, "a.example", 80, .denied(rule: "no rule")),
            ("192.0.2.1", .get, "open.example", 80, .allowed),
            ("192.0.2.1", .post, "open.example", 80, .denied(rule: "no rule")),
        ])
    func order(
        _ client: String, _ method: Method, _ host: String, _ port: UInt16,
        _ expected: AccessVerdict
    ) throws {
        let address = try #require(IPAddress(client))
        let query = AccessQuery(
            client: .ip(address, text: client, port: 1), method: method, host: host, port: port)
        #expect(Self.rules.judge(query) == expected)
    }

    @Test(
        "let this machine in and nobody else, unless told otherwise",
        arguments: [
            ("127.0.0.1", true), ("127.8.9.1", true), ("::1", true), ("::ffff:127.0.0.1", true),
            ("192.0.2.1", false), ("2001:db8::1", false), ("0.0.0.0", false),
        ])
    func defaults(_ client: String, _ allowed: Bool) throws {
        let address = try #require(IPAddress(client))
        let query = AccessQuery(
            client: .ip(address, text: client, port: 1), method: .get, host: "a.example", port: 80)
        #expect((AccessRules().judge(query) == .allowed) == allowed)
    }

    @Test("can be replaced")
    func replacement() {
        let access = CurrentAccess()
        let query = AccessQuery(client: .unix, method: .get, host: "a.example", port: 80)
        #expect(access.judge(query) == .allowed)
        access.replace(by: AccessRules([], fallback: .deny))
        #expect(access.judge(query) == .denied(rule: "no rule"))
    }
}
