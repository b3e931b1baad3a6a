public import Foundation
import LarderEngine
import LarderTransfer

/// What a session is made with.
///
/// A session copies it: what is changed afterwards holds for sessions that are made later. The
/// storages that it names are not copied but shared. Not to be changed by one thread while another
/// uses it.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    /// Names a background session; nil for all others.
    ///
    /// Set by a program, it is a name and no more: only `background(withIdentifier:)` makes a
    /// configuration of a background session.
    open var identifier: String?

    /// Whether it is one for a background session, whatever `identifier` says.
    private(set) var isBackground = false

    /// Nothing of its sessions comes to lie on the disk but what programs download.
    private(set) var isEphemeral = false

    // MARK: Policies

    /// For requests that have `.useProtocolCachePolicy`, the default.
    open var requestCachePolicy: NSURLRequest.CachePolicy = .useProtocolCachePolicy
    /// How long nothing may happen before a request has failed, in seconds; 60 by default.
    ///
    /// Every byte begins it anew. A request's own `timeoutInterval` stands in its place once it is set.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// How long a task may take from its begin to its end, in seconds; 7 days by default.
    ///
    /// Waiting for connectivity and new attempts count; time in which the task is suspended does not.
    open var timeoutIntervalForResource: TimeInterval = 604_800
    /// For requests that have `.default`; it becomes the DSCP of packets; `.default` (0) by default.
    open var networkServiceType: NSURLRequest.NetworkServiceType = .default
    /// Whether a task waits for a way to the network instead of failing; false by default.
    open var waitsForConnectivity = false

    // MARK: HTTP

    /// Fields for every request that has none of the same name; nil by default.
    ///
    /// `Authorization`, `Connection`, `Host`, `Proxy-Authenticate`, `Proxy-Authorization` and
    /// `WWW-Authenticate` are left out, as Apple forbids them: they would go to every host that a
    /// redirection leads to. Foundation sends them.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { self.additionalHeaders.entries }
        set { self.additionalHeaders.entries = newValue }
    }
    private var additionalHeaders = VeiledEntries()
    /// Connections to one host at a time; 6 by default, less than 1 counts as 1.
    ///
    /// Tasks that find none wait in the order of their priority.
    open var httpMaximumConnectionsPerHost = 6
    /// Kept, and without effect: HTTP/1.1 is not pipelined; false by default.
    open var httpShouldUsePipelining = false
    /// Whether cookies of the storage are sent; true by default, false leaves `Cookie` to the program.
    open var httpShouldSetCookies = true
    /// Which cookies are taken, whatever the storage's own policy says; `.onlyFromMainDocumentDomain` by
    /// default.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// Where cookies are kept; nil: none are sent or taken.
    open var httpCookieStorage: HTTPCookieStorage?
    /// Where credentials are kept; nil: each is used once.
    open var urlCredentialStorage: URLCredentialStorage?
    /// Where responses are stored; nil: nowhere.
    open var urlCache: URLCache?

    // MARK: Connections

    /// Proxies; nil, the default, reads the environment as curl does, an empty dictionary uses none.
    ///
    /// Environment: `http_proxy`, `https_proxy`, `ftp_proxy`, `all_proxy` and `no_proxy`, also in
    /// upper case but for `http_proxy`.
    /// Keys: `HTTPProxy`, `HTTPPort`, `HTTPEnable` for http; the same with `HTTPS` and `FTP`;
    /// `SOCKSProxy`, `SOCKSPort`, `SOCKSEnable` (SOCKS5) for what has none of its own; a proxy without
    /// its `Enable` counts as enabled. `ExceptionsList` has hosts with `*`, domains with a dot before
    /// them and blocks of addresses (`10.0.0.0/8`); `ExcludeSimpleHostnames` means names without a
    /// dot. `kCFProxyUsernameKey` and `kCFProxyPasswordKey` hold the login for all of them.
    /// Where `ProxyAutoConfigEnable` is the only way, requests fail: scripts are not run, and going
    /// directly is not what was asked for.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { self.proxyDictionary.entries }
        set { self.proxyDictionary.entries = newValue }
    }
    private var proxyDictionary = VeiledEntries()
    /// The lowest version of TLS that is spoken; 1.2 by default.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t = .TLSv12
    /// The highest version of TLS that is spoken; 1.3 by default.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t = .TLSv13
    /// Classes derived from `URLProtocol`, asked one after the other before anything built in.
    ///
    /// Empty by default; what is built in is not among them. Those that are registered with
    /// `URLProtocol.registerClass` are asked behind them.
    open var protocolClasses: [AnyClass]? = []

    // MARK: Without effect on Linux

    /// Kept, and without effect on Linux; true by default.
    open var allowsCellularAccess = true
    /// Kept, and without effect on Linux; true by default.
    open var allowsExpensiveNetworkAccess = true
    /// Kept, and without effect on Linux; true by default.
    open var allowsConstrainedNetworkAccess = true
    /// Kept, and without effect on Linux; true by default.
    open var allowsUltraConstrainedNetworkAccess = true
    /// Kept, and without effect on Linux; false by default.
    open var requiresDNSSECValidation = false
    /// Kept, and without effect; false by default.
    open var enablesEarlyData = false
    /// Kept, and without effect; true by default.
    open var usesClassicLoadingMode = true
    /// Kept for background sessions; false by default.
    open var isDiscretionary = false
    /// Kept, and without effect on Linux; nil by default.
    open var sharedContainerIdentifier: String?
    /// Kept for background sessions; true by default.
    open var sessionSendsLaunchEvents = true
    /// Kept, and without effect; false by default.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// Kept, and without effect on Linux; `.none` by default.
    open var multipathServiceType: MultipathServiceType = .none

    private init(
        cookies: HTTPCookieStorage?, credentials: URLCredentialStorage?, cache: URLCache?
    ) {
        self.httpCookieStorage = cookies
        self.urlCredentialStorage = credentials
        self.urlCache = cache
        super.init()
    }

    /// As `default`, which is to be used instead.
    @available(*, deprecated, renamed: "URLSessionConfiguration.default")
    public override init() {
        self.httpCookieStorage = .shared
        self.urlCredentialStorage = .shared
        self.urlCache = .shared
        super.init()
    }

    // MARK: Kinds

    /// Shared cookies, credentials and cache, kept on disk; a new object each time.
    open class var `default`: URLSessionConfiguration {
        URLSessionConfiguration(cookies: .shared, credentials: .shared, cache: .shared)
    }

    /// Cookies, credentials and cache of its own, in memory alone; a new object each time.
    ///
    /// Sessions that are made with one such object have them in common.
    open class var ephemeral: URLSessionConfiguration {
        let configuration = URLSessionConfiguration(
            cookies: .ephemeral(), credentials: .ephemeral(),
            cache: URLCache(inMemory: 4 << 20))
        configuration.isEphemeral = true
        return configuration
    }

    /// For a session whose tasks outlive the program; no cache.
    ///
    /// There are no background sessions yet: the tasks of a session that is made with it fail.
    ///
    /// - Parameter identifier: not empty, and of one live session at a time.
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration(
            cookies: .shared, credentials: .shared, cache: nil)
        configuration.identifier = identifier
        configuration.isBackground = true
        return configuration
    }

    // MARK: Copying

    open override func copy() -> Any { self.copy(with: nil) }

    /// A configuration of its own, with the same storages.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = URLSessionConfiguration(
            cookies: self.httpCookieStorage, credentials: self.urlCredentialStorage,
            cache: self.urlCache)
        copy.identifier = self.identifier
        copy.isBackground = self.isBackground
        copy.isEphemeral = self.isEphemeral
        copy.requestCachePolicy = self.requestCachePolicy
        copy.timeoutIntervalForRequest = self.timeoutIntervalForRequest
        copy.timeoutIntervalForResource = self.timeoutIntervalForResource
        copy.networkServiceType = self.networkServiceType
        copy.waitsForConnectivity = self.waitsForConnectivity
        copy.httpAdditionalHeaders = self.httpAdditionalHeaders
        copy.httpMaximumConnectionsPerHost = self.httpMaximumConnectionsPerHost
        copy.httpShouldUsePipelining = self.httpShouldUsePipelining
        copy.httpShouldSetCookies = self.httpShouldSetCookies
        copy.httpCookieAcceptPolicy = self.httpCookieAcceptPolicy
        copy.connectionProxyDictionary = self.connectionProxyDictionary
        copy.tlsMinimumSupportedProtocolVersion = self.tlsMinimumSupportedProtocolVersion
        copy.tlsMaximumSupportedProtocolVersion = self.tlsMaximumSupportedProtocolVersion
        copy.protocolClasses = self.protocolClasses
        self.copyWithoutEffect(to: copy)
        return copy
    }

    private func copyWithoutEffect(to copy: URLSessionConfiguration) {
        copy.allowsCellularAccess = self.allowsCellularAccess
        copy.allowsExpensiveNetworkAccess = self.allowsExpensiveNetworkAccess
        copy.allowsConstrainedNetworkAccess = self.allowsConstrainedNetworkAccess
        copy.allowsUltraConstrainedNetworkAccess = self.allowsUltraConstrainedNetworkAccess
        copy.requiresDNSSECValidation = self.requiresDNSSECValidation
        copy.enablesEarlyData = self.enablesEarlyData
        copy.usesClassicLoadingMode = self.usesClassicLoadingMode
        copy.isDiscretionary = self.isDiscretionary
        copy.sharedContainerIdentifier = self.sharedContainerIdentifier
        copy.sessionSendsLaunchEvents = self.sessionSendsLaunchEvents
        copy.shouldUseExtendedBackgroundIdleMode = self.shouldUseExtendedBackgroundIdleMode
        copy.multipathServiceType = self.multipathServiceType
    }
}

extension URLSessionConfiguration {
    /// What `httpAdditionalHeaders` adds to requests: text, without the fields that it may not have.
    var additionalFields: [String: String] {
        var fields: [String: String] = [:]
        var taken: Set<String> = []
        let given = (self.httpAdditionalHeaders ?? [:]).compactMap { name, value in
            (name as? String).map { ($0, value) }
        }
        for (name, value) in given.sorted(by: { $0.0 < $1.0 }) {
            let text = value as? String ?? (value as? NSNumber)?.stringValue
            guard let text, RequestFields.areValid(name, text), !Self.isForbidden(name) else {
                continue
            }
            if taken.insert(name.lowercased()).inserted { fields[name] = text }
        }
        return fields
    }

    /// Whether `httpAdditionalHeaders` has a field, whatever its case.
    func hasAdditionalHeader(_ name: String) -> Bool {
        self.httpAdditionalHeaders?.keys.contains {
            ($0 as? String)?.lowercased() == name.lowercased()
        } ?? false
    }

    private static func isForbidden(_ name: String) -> Bool {
        switch name.lowercased() {
        case "authorization", "connection", "host", "proxy-authenticate", "proxy-authorization",
            "www-authenticate":
            true
        default: false
        }
    }

    /// By which proxies it leads.
    var parentRules: ParentRules {
        guard let dictionary = self.connectionProxyDictionary else {
            return ProxyEnvironment(ProcessInfo.processInfo.environment).rules()
        }
        return ProxyDictionary(dictionary).rules
    }
}
