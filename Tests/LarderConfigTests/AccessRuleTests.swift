import Testing

@testable import LarderConfig

@Suite("Globs")
struct GlobTests {
    @Test(
        "match the whole text",
        arguments: [
            ("", "", true), ("", "a", false), ("*", "", true), ("*", "abc", true),
            ("a*", "abc", true),
            ("*c", "abc", true), ("a*c", "abc", true), ("a*b", "abc", false), ("a?c", "abc", true),
            ("a?c", "ac", false), ("?", "é", true), ("??", "é", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "example.com", false), ("**a**", "bab", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false), ("http://*/x", "http://h/y/x", true),
        ])
    func matches(_ pattern: String, _ text: String, _ expected: Bool) {
        #expect(Glob(pattern).matches(text) == expected)
    }

    @Test("stay fast where backtracking would not", .timeLimit(.minutes(1)))
    func hostile() {
        let pattern = String(repeating: "a*", count: 1000) + "b"
        #expect(!Glob(pattern).matches(String(repeating: "a", count: 20_000)))
    }
}

@Suite("Access rules")
struct AccessRuleTests {
    struct Case: Sendable {
        var rules: [AccessRule]
        var client: String?
        var user: String?
        var uid: UInt32?
        var method = "GET"
        var host = "example.com"
        var port: UInt16 = 80
        var allowed: Bool
        var rule: Int?
    }

    static func rule(
        _ action: AccessRule.Action, clients: [String] = [], to: [String] = [],
        methods: [String] = []
    ) throws -> AccessRule {
        AccessRule(
            action: action, clients: try clients.map { try ClientPattern(settingText: $0) },
            destinations: try to.map { try DestinationPattern(settingText: $0) },
            methods: try methods.map { try MethodName(settingText: $0) })
    }

    static func cases() throws -> [Case] {
        try [
            Case(rules: .local, client: "127.0.0.1", allowed: true, rule: 0),
            Case(rules: .local, client: "127.8.9.1", allowed: true, rule: 0),
            Case(rules: .local, client: "::1", allowed: true, rule: 0),
            Case(rules: .local, client: "::ffff:127.0.0.1", allowed: true, rule: 0),
            Case(rules: .local, client: nil, allowed: true, rule: 0),
            Case(rules: .local, client: "192.0.2.1", allowed: false, rule: nil),
            Case(rules: [], client: "127.0.0.1", allowed: false, rule: nil),
            Case(
                rules: [rule(.deny, to: [".example.com"]), rule(.allow)], client: "::2",
                host: "www.example.com", allowed: false, rule: 0),
            Case(
                rules: [rule(.deny, to: [".example.com"]), rule(.allow)], client: "::2",
                host: "example.com.", allowed: false, rule: 0),
            Case(
                rules: [rule(.deny, to: [".example.com"]), rule(.allow)], client: "::2",
                host: "notexample.com", allowed: true, rule: 1),
            Case(
                rules: [rule(.deny, to: ["10.0.0.0/8"]), rule(.allow)], client: nil,
                host: "10.1.2.3",
                allowed: false, rule: 0),
            Case(
                rules: [rule(.deny, to: ["[::1]"]), rule(.allow)], client: nil, host: "[::1]",
                allowed: false, rule: 0),
            Case(
                rules: [rule(.allow, to: ["*:443"])], client: nil, method: "CONNECT", port: 443,
                allowed: true, rule: 0),
            Case(
                rules: [rule(.allow, to: ["*:443"])], client: nil, port: 80, allowed: false,
                rule: nil),
            Case(
                rules: [rule(.allow, methods: ["GET", "HEAD"])], client: nil, method: "PUT",
                allowed: false, rule: nil),
            Case(
                rules: [rule(.allow, clients: ["unix"])], client: "::1", allowed: false, rule: nil),
            Case(
                rules: [rule(.allow, clients: ["user:alice"])], client: "::1", user: "alice",
                allowed: true, rule: 0),
            Case(
                rules: [rule(.allow, clients: ["user:alice"])], client: "::1", user: "Alice",
                allowed: false, rule: nil),
            Case(
                rules: [rule(.allow, clients: ["user:alice"])], client: nil, allowed: false,
                rule: nil),
            Case(
                rules: [rule(.deny, clients: ["uid:1000"]), rule(.allow, clients: ["unix"])],
                client: nil, uid: 1000, allowed: false, rule: 0),
            Case(
                rules: [rule(.deny, clients: ["uid:1000"]), rule(.allow, clients: ["unix"])],
                client: nil, uid: 0, allowed: true, rule: 1),
            Case(
                rules: [rule(.allow, clients: ["uid:0"])], client: "::1", allowed: false, rule: nil),
        ]
    }

    @Test(
        "An address that a name led to counts for blocks, and the name for names",
        arguments: [
            (["allow .example.com"], "www.example.com", "192.0.2.1", true),
            (["deny 10.0.0.0/8", "allow .example.com"], "www.example.com", "10.1.2.3", false),
            (["allow 192.0.2.0/24"], "www.example.com", "192.0.2.1", true),
            (["allow 192.0.2.0/24"], "192.0.2.1", "198.51.100.1", false),
            (["deny 10.0.0.0/8", "allow *"], "[::ffff:10.1.2.3]", nil, false),
            // A connection to the unspecified address ends at this machine (ip(7)).
            (["deny 127.0.0.0/8", "allow *"], "0.0.0.0", nil, false),
            (["deny 127.0.0.0/8", "allow *"], "[::ffff:0.0.0.0]", nil, false),
            (["deny [::1]", "allow *"], "[::]", nil, false),
            (["deny 127.0.0.1", "allow *"], "www.example.com", "0.0.0.0", false),
            (["deny 10.0.0.0/8", "allow *"], "0.0.0.0", nil, true),
            (["deny 0.0.0.0", "allow *"], "127.0.0.1", nil, true),
        ] as [([String], String, String?, Bool)])
    func address(_ rules: [String], _ host: String, _ address: String?, _ allowed: Bool) throws {
        let rules = try rules.map { text in
            let parts = text.split(separator: " ")
            return AccessRule(
                action: parts[0] == "allow" ? .allow : .deny,
                destinations: [try DestinationPattern(settingText: String(parts[1]))])
        }
        let question = AccessQuestion(
            client: ClientFacts(address: nil), method: "CONNECT", host: host, port: 443,
            address: address.flatMap { IPAddress($0) })
        #expect(rules.judge(question).isAllowed == allowed)
    }

    @Test("The first that fits decides, and none denies", arguments: try Self.cases())
    func judge(_ c: Case) {
        let question = AccessQuestion(
            client: ClientFacts(
                address: c.client.flatMap { IPAddress($0) }, user: c.user, uid: c.uid),
            method: c.method, host: c.host, port: c.port)
        #expect(c.rules.judge(question) == AccessDecision(isAllowed: c.allowed, rule: c.rule))
    }
}

@Suite("Listeners beyond this machine")
struct ClosedListenerTests {
    @Test(
        "are warned of while nobody from there is let in",
        arguments: [
            ("127.0.0.1:1", "", 0), ("[::1]:1", "", 0), ("localhost:1", "", 0),
            ("unix:/run/x", "", 0), ("127.9.9.9:1", "", 0), ("*:1", "", 1), ("0.0.0.0:1", "", 1),
            ("[::]:1", "", 1), ("10.0.0.1:1", "", 1),
            ("*:1", "access: [{action: allow, clients: [10.0.0.0/8]}]", 0),
        ])
    func warned(_ address: String, _ access: String, _ count: Int) throws {
        let loaded = try Configuration.parse(
            "listeners: [{address: '\(address)'}]\n\(access)\n", file: "f",
            environment: Environment(["HOME": "/h"]))
        #expect(loaded.warnings.count == count)
        #expect(loaded.warnings.allSatisfy { $0.line == 1 && $0.message.contains("add access") })
    }
}
