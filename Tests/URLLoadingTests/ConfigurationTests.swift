import Foundation
import LarderEngine
import LarderHTTP

import Testing

@testable import LarderTransfer
@testable import URLLoading

@Suite("Session configurations (§2)")
struct ConfigurationTests {
    @Test("have Apple's defaults")
    func defaults() {
        let configuration = URLSessionConfiguration.ephemeral
        #expect(configuration.identifier == nil)
        #expect(configuration.requestCachePolicy == .useProtocolCachePolicy)
        #expect(configuration.timeoutIntervalForRequest == 60)
        #expect(configuration.timeoutIntervalForResource == 604_800)
        #expect(configuration.httpMaximumConnectionsPerHost == 6)
        #expect(configuration.httpCookieAcceptPolicy == .onlyFromMainDocumentDomain)
        #expect(configuration.httpShouldSetCookies && !configuration.httpShouldUsePipelining)
        #expect(configuration.httpAdditionalHeaders == nil)
        #expect(configuration.connectionProxyDictionary == nil)
        #expect(configuration.protocolClasses?.isEmpty == true)
        #expect(configuration.tlsMinimumSupportedProtocolVersion == .TLSv12)
        #expect(configuration.tlsMaximumSupportedProtocolVersion == .TLSv13)
        #expect(!configuration.waitsForConnectivity && !configuration.isDiscretionary)
        #expect(configuration.sessionSendsLaunchEvents && configuration.allowsCellularAccess)
        #expect(configuration.multipathServiceType == .none)
    }

    @Test("are new each time they are asked for, and ephemeral ones share nothing")
    func factories() {
        let first = URLSessionConfiguration.ephemeral
        let second = URLSessionConfiguration.ephemeral
        #expect(first !== second)
        #expect(first.httpCookieStorage !== second.httpCookieStorage)
        #expect(first.urlCredentialStorage !== second.urlCredentialStorage)
        #expect(first.urlCache !== second.urlCache && first.urlCache != nil)
        first.timeoutIntervalForRequest = 1
        #expect(URLSessionConfiguration.ephemeral.timeoutIntervalForRequest == 60)
        let background = URLSessionConfiguration.background(withIdentifier: "a")
        #expect(background.identifier == "a" && background.urlCache == nil)
        #expect((background.copy() as? URLSessionConfiguration)?.isBackground == true)
    }

    /// Every property that can be set, with a value that is not its default.
    static let changes: [@Sendable (URLSessionConfiguration) -> Void] = [
        { $0.requestCachePolicy = .returnCacheDataElseLoad }, { $0.timeoutIntervalForRequest = 2 },
        { $0.timeoutIntervalForResource = 3 }, { $0.networkServiceType = .voice },
        { $0.waitsForConnectivity = true }, { $0.httpAdditionalHeaders = ["a": "b"] },
        { $0.httpMaximumConnectionsPerHost = 7 }, { $0.httpShouldUsePipelining = true },
        { $0.httpShouldSetCookies = false }, { $0.httpCookieAcceptPolicy = .always },
        { $0.httpCookieStorage = nil }, { $0.urlCredentialStorage = nil }, { $0.urlCache = nil },
        { $0.connectionProxyDictionary = ["a": 1] },
        { $0.tlsMinimumSupportedProtocolVersion = .TLSv10 },
        { $0.tlsMaximumSupportedProtocolVersion = .TLSv12 }, { $0.protocolClasses = nil },
        { $0.allowsCellularAccess = false }, { $0.allowsExpensiveNetworkAccess = false },
        { $0.allowsConstrainedNetworkAccess = false },
        { $0.allowsUltraConstrainedNetworkAccess = false }, { $0.requiresDNSSECValidation = true },
        { $0.enablesEarlyData = true }, { $0.usesClassicLoadingMode = false },
        { $0.isDiscretionary = true }, { $0.sharedContainerIdentifier = "c" },
        { $0.sessionSendsLaunchEvents = false }, { $0.shouldUseExtendedBackgroundIdleMode = true },
        { $0.multipathServiceType = .aggregate }, { $0.identifier = "i" },
    ]

    /// What a configuration says of each of its properties.
    private static func facts(_ configuration: URLSessionConfiguration) -> [String] {
        Mirror(reflecting: configuration).children.map { child in
            let value = String(describing: child.value)
            return "\(child.label ?? ""): \(value)"
        }
    }

    @Test("are copied whole, and independent once copied", arguments: changes.indices)
    func copies(index: Int) throws {
        let original = URLSessionConfiguration.ephemeral
        let before = Self.facts(original)
        let early = try #require(original.copy() as? URLSessionConfiguration)
        Self.changes[index](original)
        let late = try #require(original.copy() as? URLSessionConfiguration)
        #expect(Self.facts(original) != before, "the change changes nothing")
        #expect(Self.facts(early) == before)
        #expect(Self.facts(late) == Self.facts(original))
    }

    @Test("have as many properties as are tested for being copied")
    func isComplete() {
        // Whether it is ephemeral, or of a background session, too, which are not set from outside.
        #expect(Self.facts(.ephemeral).count == Self.changes.count + 2)
    }

    @Test("are of background sessions where they are made so, whatever their identifier (§2)")
    func background() {
        let named = URLSessionConfiguration.default
        named.identifier = "a"
        #expect(!named.isBackground)
        let background = URLSessionConfiguration.background(withIdentifier: "a")
        background.identifier = nil
        #expect(background.isBackground)
    }

    @Test("add fields as text, but none that is not the program's to set")
    func additionalFields() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = [
            "accept": "a/b", "X-Number": 5, "authorization": "no", "HOST": "no", "Connection": "no",
            "Proxy-Authorization": "no", "proxy-authenticate": "no", "WWW-Authenticate": "no",
            "X-Bad": "a\r\nb: c", 7: "no", "X-Object": NSObject(),
        ]
        #expect(configuration.additionalFields == ["accept": "a/b", "X-Number": "5"])
    }

    @Test("add fields by the names that they were given, each once whatever its case (§2)")
    func namesOfAdditionalFields() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["x-Mixed": "1", "lower": "2", "LOWER": "3"]
        #expect(configuration.additionalFields == ["x-Mixed": "1", "LOWER": "3"])
    }
}

@Suite("Proxies of a session (§2.1)")
struct ConfigurationProxyTests {
    private static func way(_ rules: ParentRules, _ url: String) -> String {
        let parts = URLComponents(string: url)
        let scheme = parts?.scheme.flatMap(Scheme.init) ?? .http
        let port = parts?.port.map { UInt16(clamping: $0) } ?? scheme.defaultPort
        guard let parent = rules.parent(host: parts?.host ?? "", port: port, scheme: scheme) else {
            return "direct"
        }
        let login = parent.credential?.reveal().map { "\($0.user)@" } ?? ""
        return "\(parent.kind) \(login)\(parent.authority)"
    }

    @Test(
        "come from the dictionary's keys",
        arguments: [
            ([:], "http://a/", "direct"),
            (["HTTPProxy": "p", "HTTPPort": 8080], "http://a/", "http p:8080"),
            (["HTTPProxy": "p", "HTTPPort": 8080, "HTTPEnable": 1], "http://a/", "http p:8080"),
            (["HTTPProxy": "p", "HTTPPort": 8080, "HTTPEnable": 0], "http://a/", "direct"),
            (["HTTPProxy": "p", "HTTPPort": 8080, "HTTPEnable": false], "http://a/", "direct"),
            (["HTTPProxy": "p", "HTTPPort": 8080], "https://a/", "direct"),
            (["HTTPSProxy": "p", "HTTPSPort": "8443"], "https://a/", "http p:8443"),
            (["HTTPSProxy": "p", "HTTPSPort": 3], "http://a:443/", "direct"),
            (["HTTPProxy": "::1"], "http://a/", "http [::1]:80"),
            (["HTTPProxy": "p", "HTTPPort": 70000], "http://a/", "http p:0"),
            (["SOCKSProxy": "s", "SOCKSPort": 9], "http://a/", "socks5 s:9"),
            (["SOCKSProxy": "s"], "https://a/", "socks5 s:1080"),
            (["SOCKSProxy": "s", "HTTPProxy": "p", "HTTPPort": 1], "http://a/", "http p:1"),
            (["SOCKSProxy": "s", "HTTPProxy": "p", "HTTPPort": 1], "ftp://a/", "socks5 s:1080"),
            (["FTPProxy": "p", "FTPPort": 2], "ftp://a/", "http p:2"),
            (
                ["HTTPProxy": "p", "kCFProxyUsernameKey": "u", "kCFProxyPasswordKey": "w"],
                "http://a/", "http u@p:80"
            ),
            (
                ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": "u"], "http://a/",
                "http :0"
            ),
            (["ProxyAutoConfigEnable": 0], "http://a/", "direct"),
            (["ProxyAutoConfigEnable": 1, "HTTPProxy": "p"], "http://a/", "http p:80"),
            (["HTTPProxy": 5, "HTTPPort": [1]], "http://a/", "direct"),
        ] as [([String: any Sendable], String, String)])
    func dictionary(entries: [String: any Sendable], url: String, expected: String) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = entries
        #expect(Self.way(configuration.parentRules, url) == expected)
    }

    @Test(
        "are left out for exceptions",
        arguments: [
            ("a.example", "http://a.example/", true), ("a.example", "http://b.a.example/", false),
            (".example", "http://a.example/", true), ("*.example", "http://a.b.example/", true),
            ("*.example", "http://example/", false), ("*", "http://anything/", true),
            ("A.Example", "http://a.example./", true), ("10.0.0.0/8", "http://10.200.3.4/", true),
            ("10.0.0.0/8", "http://11.0.0.1/", false), ("169.254/16", "http://169.254.9.9/", true),
            ("192.168.1.0/25", "http://192.168.1.127/", true),
            ("192.168.1.0/25", "http://192.168.1.128/", false),
            ("0.0.0.0/0", "http://8.8.8.8/", true),
            ("127.0.0.1", "http://127.0.0.1:99/", true), ("fe80::/10", "http://[fe80::1]/", true),
            ("::1", "http://[::1]/", true), ("fe80::/10", "http://[::1]/", false),
            ("a.example:81", "http://a.example:81/", true),
            ("a.example:81", "http://a.example/", false),
            ("10.0.0.0/33", "http://10.0.0.1/", false),
            ("", "http://a.example/", false), (".", "http://a.example/", false),
        ])
    func exceptions(entry: String, url: String, isDirect: Bool) {
        let rules = ProxyDictionary(["HTTPProxy": "p", "ExceptionsList": [entry, 7]]).rules
        #expect(Self.way(rules, url) == (isDirect ? "direct" : "http p:80"))
    }

    @Test(
        "are left out for simple names where that is asked for",
        arguments: [
            ("http://intranet/", true), ("http://a.b/", false), ("http://[::1]/", false),
        ])
    func simpleNames(url: String, isDirect: Bool) {
        let rules = ProxyDictionary(["HTTPProxy": "p", "ExcludeSimpleHostnames": true]).rules
        #expect(Self.way(rules, url) == (isDirect ? "direct" : "http p:80"))
        #expect(Self.way(ProxyDictionary(["HTTPProxy": "p"]).rules, url) == "http p:80")
    }

    @Test(
        "come from the environment as curl reads it",
        arguments: [
            ([:], "http://a/", "direct"), (["http_proxy": "p:3128"], "http://a/", "http p:3128"),
            (["http_proxy": "http://p:3128/"], "https://a/", "direct"),
            (["HTTP_PROXY": "p:3128"], "http://a/", "direct"),
            (["HTTPS_PROXY": "p:3128"], "https://a/", "http p:3128"),
            (["https_proxy": "", "HTTPS_PROXY": "p:1"], "https://a/", "direct"),
            (["ALL_PROXY": "socks5h://s"], "https://a/", "socks5 s:1080"),
            (["all_proxy": "https://s"], "ftp://a/", "https s:443"),
            (["http_proxy": "p", "all_proxy": "q"], "http://a/", "http p:1080"),
            (["http_proxy": "http://us%40er:pw@[::1]:9"], "http://a/", "http us@er@[::1]:9"),
            (["http_proxy": "socks4://s"], "http://a/", "http :0"),
            (["http_proxy": "p:99999"], "http://a/", "http :0"),
            (["http_proxy": "[::1"], "http://a/", "http :0"),
            (["http_proxy": "p:1", "no_proxy": "b, a"], "http://a/", "direct"),
            (["http_proxy": "p:1", "no_proxy": "a.b"], "http://x.a.b/", "direct"),
            (["http_proxy": "p:1", "NO_PROXY": ".a.b"], "http://a.b/", "direct"),
            (["http_proxy": "p:1", "NO_PROXY": "a.b"], "http://xa.b/", "http p:1"),
            (["http_proxy": "p:1", "no_proxy": "*"], "http://a/", "direct"),
            (["http_proxy": "p:1", "no_proxy": "10.0.0.0/8"], "http://10.1.2.3/", "direct"),
        ] as [([String: String], String, String)])
    func environment(variables: [String: String], url: String, expected: String) {
        #expect(Self.way(ProxyEnvironment(variables).rules(), url) == expected)
    }

    @Test("show no passwords")
    func secrets() {
        let rules = ProxyDictionary([
            "HTTPProxy": "p", "kCFProxyUsernameKey": "u", "kCFProxyPasswordKey": "hush",
        ]).rules
        var text = ""
        dump(rules, to: &text)
        #expect(!text.contains("hush"))
        let other = ProxyDictionary([
            "HTTPProxy": "p", "kCFProxyUsernameKey": "u", "kCFProxyPasswordKey": "other",
        ]).rules
        let names = [rules, other].map { $0.parent(host: "a", port: 80)?.credential?.name }
        #expect(names[0] != names[1])
    }
}
