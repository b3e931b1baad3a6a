import SeededNumbers
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
                rules: [rule(.allow, clients: ["user:*"])], client: "::1", user: "alice",
                allowed: true, rule: 0),
            Case(
                rules: [rule(.allow, clients: ["user:*"])], client: "::1", allowed: false,
                rule: nil),
            Case(
                rules: [rule(.allow, clients: ["user:*"])], client: nil, uid: 1000, allowed: false,
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
        #expect(AccessJudge(rules).judge(question).isAllowed == allowed)
    }

    @Test("The first that fits decides, and none denies", arguments: try Self.cases())
    func judge(_ c: Case) {
        let question = AccessQuestion(
            client: ClientFacts(
                address: c.client.flatMap { IPAddress($0) }, user: c.user, uid: c.uid),
            method: c.method, host: c.host, port: c.port)
        #expect(
            AccessJudge(c.rules).judge(question)
                == AccessDecision(isAllowed: c.allowed, rule: c.rule))
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
            environment: ProcessEnvironment(["HOME": "/h"]))
        #expect(loaded.warnings.count == count)
        #expect(loaded.warnings.allSatisfy { $0.line == 1 && $0.message.contains("add access") })
    }
}

@Suite("The destinations of a rule, found by what is asked for")
struct DestinationIndexTests {
    /// A few names over a few labels, so that many fit; with wildcards, blocks and ports.
    private static func pattern(_ numbers: inout SplitMix64) -> String {
        let labels = ["a", "b", "ab", "*", "?", ""]
        let ports = ["", "", "", ":80", ":80-443", ":1-65535", ":*"]
        switch Int.random(in: 0..<8, using: &numbers) {
        case 0: return "*" + ports[Int.random(in: 0..<ports.count, using: &numbers)]
        case 1:
            return "10.\(Int.random(in: 0..<3, using: &numbers)).0.0/16"
                + ports[Int.random(in: 0..<6, using: &numbers)]
        case 2:
            let blocks = ["10.0.0.0/8", "0.0.0.0", "127.0.0.0/8", "[::]/0", "[fd00::]/8"]
            return blocks[Int.random(in: 0..<blocks.count, using: &numbers)]
        default:
            let count = 1 + Int.random(in: 0..<3, using: &numbers)
            let name = (0..<count).map { _ in
                labels[Int.random(in: 0..<labels.count, using: &numbers)]
            }
            return ["", ".", "*."][Int.random(in: 0..<3, using: &numbers)]
                + name.joined(separator: ".")
                + ports[Int.random(in: 0..<ports.count, using: &numbers)]
        }
    }

    private static func host(_ numbers: inout SplitMix64) -> String {
        switch Int.random(in: 0..<6, using: &numbers) {
        case 0: return "10.\(Int.random(in: 0..<3, using: &numbers)).1.1"
        case 1:
            return ["0.0.0.0", "[::]", "[fd00::1]", "127.0.0.1"][
                Int.random(in: 0..<4, using: &numbers)]
        default:
            let labels = ["a", "b", "ab", "", "abc"]
            let count = 1 + Int.random(in: 0..<4, using: &numbers)
            return (0..<count).map { _ in labels[Int.random(in: 0..<labels.count, using: &numbers)]
            }
            .joined(separator: ".")
        }
    }

    @Test("are those that are found one after the other", arguments: UInt64(0)..<200)
    func equivalence(_ seed: UInt64) {
        var numbers = SplitMix64(seed: seed)
        let patterns = (0..<(1 + Int.random(in: 0..<12, using: &numbers))).compactMap { _ in
            try? DestinationPattern(settingText: Self.pattern(&numbers))
        }
        let index = DestinationIndex(patterns)
        for _ in 0..<50 {
            let host = Self.host(&numbers)
            let port: UInt16 = [80, 81, 443, 444][Int.random(in: 0..<4, using: &numbers)]
            let address = ["10.1.2.3", "0.0.0.0", "127.0.0.1", nil, nil][
                Int.random(in: 0..<5, using: &numbers)
            ]
            .flatMap { IPAddress($0) }
            let expected = patterns.contains {
                $0.matches(host: host, port: port, address: address)
            }
            #expect(
                index.matches(host: host, port: port, address: address) == expected,
                "\(host):\(port) \(String(describing: address)) in \(patterns.map(\.settingText))")
        }
    }

    @Test("take no walk through the list, nor through a host that is longer than all of them")
    func bound() throws {
        var patterns = try (0..<10_000).flatMap { number in
            try ["h\(number).example", ".d\(number).example", "*.w\(number).example:443"]
                .map { try DestinationPattern(settingText: $0) }
        }
        patterns.append(try DestinationPattern(settingText: "a*.example"))
        let index = DestinationIndex(patterns)
        #expect(index.globs.count == 1)
        #expect(index.suffixes(of: "x.y.w7.example") == ["example", "w7.example", "y.w7.example"])
        let hostile = String(repeating: "a.", count: 30_000) + "example"
        #expect(index.suffixes(of: hostile[...]).count < 10)
        #expect(index.matches(host: "x.w9999.example", port: 443, address: nil))
        #expect(!index.matches(host: "w9999.example", port: 443, address: nil))
    }
}

@Suite("Rules that are never reached")
struct ShadowedRuleTests {
    @Test(
        "are warned of, and so is a list that denies everybody",
        arguments: [
            (
                "access:\n  - { action: allow }\n  - { action: deny, destinations: [.a.example] }\n",
                3, "access[1]: is never reached: access[0] (line 2) fits everything"
            ),
            (
                "access:\n  - { action: deny, destinations: [.a.example] }\n  - { action: allow }\n",
                0, ""
            ),
            (
                "cache-rules:\n  - { hosts: [.a.example] }\n  - { hosts: [b.a.example] }\n", 3,
                "cache-rules[1]: is never reached: cache-rules[0] (line 2) fits"
            ),
            ("access: []\n", 1, "access: is empty, and everybody is denied"),
            ("access:\n", 0, ""),
        ])
    func warned(_ text: String, _ line: Int, _ message: String) throws {
        let loaded = try Configuration.parse(
            text, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
        #expect(loaded.warnings.map(\.line) == (line == 0 ? [] : [line]))
        #expect(loaded.warnings.allSatisfy { $0.message.hasPrefix(message) })
        let shown = SettingsTable.effective(loaded).filter { $0.path == "access" }
        #expect(shown.map(\.value) == (text == "access: []\n" ? ["[]"] : []))
    }
}
