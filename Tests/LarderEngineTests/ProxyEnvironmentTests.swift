import LarderHTTP
import LarderTransfer
import Testing

@testable import LarderEngine

/// What the library makes of it has tests there.
@Suite("Proxies of the environment")
struct ProxyEnvironmentTests {
    @Test(
        "keep their exceptions, but for this machine",
        arguments: [
            ("localhost,127.0.0.1,::1,.corp.example", [".corp.example"]),
            ("10.0.0.0/8, corp.example:8080", ["10.0.0.0/8", "corp.example:8080"]),
            ("127.0.0.0/8 127.0.1.1 [::1] ::1/128 localhost:8080 a.localhost", []),
            ("0.0.0.0/0,::/0,*,local*,*.localhost,127.*", []), ("*.example", ["*.example"]),
            ("192.168.0.0/16,fe80::/10,!", ["192.168.0.0/16", "fe80::/10", "!"]), ("", []),
        ])
    func exceptions(_ text: String, _ expected: [String]) {
        for name in ["no_proxy", "NO_PROXY"] {
            let found = ProxyEnvironment([name: text]).remoteExceptions
            #expect(found == expected.map { Array($0.utf8) })
        }
    }

    @Test("keep the bytes of exceptions that are not UTF-8")
    func bytes() {
        let name: [UInt8] = [0x63, 0xE9, 0xFF]
        let exceptions: [UInt8] = Array("no_proxy=localhost, ".utf8) + name + Array(",b".utf8)
        let environment = ProxyEnvironment(
            entries: [exceptions, Array("odd".utf8), Array("http_proxy=p:1".utf8)])
        #expect(environment.remoteExceptions == [name, Array("b".utf8)])
        let rules = environment.rules()
        #expect(rules.parent(host: "b", port: 80, scheme: .http) == nil)
        #expect(rules.parent(host: "a", port: 80, scheme: .http)?.authority == "p:1")
    }

    @Test(
        "that cannot be used are told by the variables that name them",
        arguments: [
            (["http_proxy": "garbage://x"], ["http_proxy"]), (["http_proxy": "p:3128"], []),
            ([:], []),
            (["http_proxy": "", "all_proxy": "p:99999", "no_proxy": "["], ["all_proxy"]),
            (["HTTPS_PROXY": "socks4://p", "http_proxy": "[::1"], ["HTTPS_PROXY", "http_proxy"]),
            (["http_proxy": "p", "ftp_proxy": "ftp://p"], []),
            (["http_proxy": "garbage://x", "no_proxy": "a, *"], []),
            // Neither counts.
            (["HTTP_PROXY": "garbage://x"], []),
            (["https_proxy": "p", "HTTPS_PROXY": "garbage://x"], []),
            (["ALL_PROXY": "http://:80"], ["ALL_PROXY"]),
        ] as [([String: String], [String])])
    func unusable(_ variables: [String: String], _ names: [String]) {
        #expect(ProxyEnvironment(variables).unusable == names)
    }

    @Test("lead tunnels as they lead what is thought to be in them")
    func tunnels() {
        let both = ProxyEnvironment(["http_proxy": "p:1", "https_proxy": "q:2"])
        let http = ProxyEnvironment(["http_proxy": "p:1", "no_proxy": "a"])
        func way(_ rules: ParentRules) -> String? {
            rules.parent(host: "b", port: 443).map(\.authority)
        }
        #expect(way(both.rules()) == "p:1")
        #expect(way(both.rules(tunnels: .https)) == "q:2")
        #expect(way(http.rules(tunnels: .https)) == nil)
        #expect(http.rules(tunnels: .https).parent(host: "b", port: 80, scheme: .http) != nil)
        #expect(http.rules(tunnels: .https).parent(host: "a", port: 80, scheme: .http) == nil)
    }
}
