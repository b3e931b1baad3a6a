import Testing

@testable import LarderConfig

@Suite("Addresses of the proxy's own machine")
struct OwnAddressTests {
    @Test(
        "are reached from elsewhere only by a rule that names destinations",
        arguments: [
            (["allow"], "127.0.0.1", nil, false), (["allow"], "127.8.9.1", nil, false),
            (["allow"], "[::1]", nil, false), (["allow"], "0.0.0.0", nil, false),
            (["allow"], "[::]", nil, false), (["allow"], "169.254.169.254", nil, false),
            (["allow"], "[fe80::1]", nil, false), (["allow"], "[fd00:ec2::254]", nil, false),
            (["allow"], "[::ffff:127.0.0.1]", nil, false), (["allow"], "127.0.0.1.", nil, false),
            (["allow"], "[64:ff9b::7f00:1]", nil, false),
            (["allow"], "[64:ff9b:1::7f00:1]", nil, false),
            (["allow"], "h.example", "64:ff9b:1:7f00:0:100::", false),
            (["allow"], "[64:ff9b:1::808:808]", nil, true),
            (["allow"], "[2002:7f00:1::]", nil, false),
            (["allow"], "[::127.0.0.1]", nil, false),
            (["allow"], "localhost", "127.0.0.1", false), (["allow"], "h.example", "::1", false),
            // Before a name has led anywhere, nothing is known of it.
            (["allow"], "localhost", nil, true), (["allow"], "h.example", "192.0.2.1", true),
            (["allow"], "10.0.0.1", nil, true), (["allow"], "[fd00:ec2::253]", nil, true),
            (["allow"], "0.0.0.1", nil, true),
            (["allow 127.0.0.1:80"], "127.0.0.1", nil, true),
            (["allow *"], "127.0.0.1", nil, true), (["allow *:80"], "h.example", "::1", true),
            (["allow 169.254.169.254", "allow"], "169.254.169.254", nil, true),
            (["allow", "allow 127.0.0.1"], "127.0.0.1", nil, false),
        ] as [([String], String, String?, Bool)])
    func elsewhere(_ rules: [String], _ host: String, _ address: String?, _ allowed: Bool) throws {
        let decision = try judge(rules, client: "192.0.2.7", host: host, address: address)
        #expect(decision.isAllowed == allowed)
        #expect(decision.leadsBack == !allowed)
        // Clients of this machine could connect there themselves.
        for client in ["127.0.0.1", "::1", nil] {
            let own = try judge(rules, client: client, host: host, address: address)
            #expect(own.isAllowed && !own.leadsBack)
        }
    }

    @Test(
        "are those at which clouds hand out credentials, too",
        arguments: [
            "100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.170.2", "fd00:ec2::254",
            "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42",
            "fd00:a9fe:a9fe::1", "fd00:100::100:200",
        ])
    func clouds(_ address: String) throws {
        for host in [address.contains(":") ? "[\(address)]" : address, "h.example"] {
            let decision = try judge(
                ["allow"], client: "192.0.2.7", host: host, address: address)
            #expect(decision.leadsBack)
        }
    }

    @Test("A rule that denies them is none that leads back")
    func denied() throws {
        let decision = try judge(["deny", "allow"], client: "192.0.2.7", host: "[::1]")
        #expect(decision == AccessDecision(isAllowed: false, rule: 0))
    }

    @Test(
        "make addresses matter where a rule lets others go everywhere",
        arguments: [
            (["*"], true), (["192.0.2.0/24"], true), (["user:a"], true), (["0.0.0.0/0"], true),
            ([], true), (["unix"], false), (["uid:5"], false), (["127.0.0.0/8", "::1"], false),
            (["127.0.0.0/8", "10.0.0.0/8"], true),
        ])
    func matter(_ clients: [String], _ matters: Bool) throws {
        let rule = AccessRule(clients: try clients.map { try ClientPattern(settingText: $0) })
        #expect(AccessJudge([rule]).speaksOfAddresses == matters)
        var named = rule
        named.destinations = [try DestinationPattern(settingText: "*")]
        #expect(!AccessJudge([named]).speaksOfAddresses)
    }
}
