import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderTransfer

/// What a session's configuration says about each of its loads, read once.
///
/// An object, as every load is handed it.
final class LoadingRules: Sendable {
    let cachePolicy: NSURLRequest.CachePolicy
    let timeout: TimeInterval
    let networkServiceType: NSURLRequest.NetworkServiceType
    let waitsForConnectivity: Bool
    let handlesCookies: Bool
    /// By which proxies requests go.
    let parents: ParentRules
    let fields: SessionFields

    init(_ settings: URLSessionConfiguration) {
        self.cachePolicy = settings.requestCachePolicy
        self.timeout = settings.timeoutIntervalForRequest
        self.networkServiceType = settings.networkServiceType
        self.waitsForConnectivity = settings.waitsForConnectivity
        self.parents = settings.parentRules
        self.handlesCookies = settings.httpCookieStorage != nil
        self.fields = SessionFields(settings.additionalFields)
    }

    /// The request's own policy, unless it leaves that to the session.
    func cachePolicy(for request: URLRequest) -> RequestCachePolicy {
        let own = request.cachePolicy
        return RequestCachePolicy(own == .useProtocolCachePolicy ? self.cachePolicy : own)
    }

    /// The traffic class of a request, or of its session.
    func trafficClass(for request: URLRequest) -> UInt8? {
        let own = request.networkServiceType
        return (own == .default ? self.networkServiceType : own).codePoint
    }
}

extension RequestCachePolicy {
    init(_ policy: NSURLRequest.CachePolicy) {
        self =
            switch policy {
            case .useProtocolCachePolicy: .useProtocol
            case .reloadIgnoringLocalCacheData: .reloadIgnoringLocal
            case .returnCacheDataElseLoad: .returnCacheElseLoad
            case .returnCacheDataDontLoad: .returnCacheDontLoad
            case .reloadIgnoringLocalAndRemoteCacheData: .reloadIgnoringAll
            case .reloadRevalidatingCacheData: .reloadRevalidating
            }
    }
}

extension NSURLRequest.NetworkServiceType {
    /// The DSCP of such traffic by RFC 4594 §2.3 and RFC 8622; nil: best effort.
    var codePoint: UInt8? {
        switch self {
        case .default: nil
        case .voip, .voice: 46  // EF
        case .video: 34  // AF41
        case .responsiveAV: 34
        case .avStreaming: 26  // AF31
        case .responsiveData: 18  // AF21
        case .callSignaling: 40  // CS5
        case .background: 1  // LE
        }
    }
}

extension SessionConfiguration {
    /// How the engine works for a program: a private cache, and nothing is done behind its back.
    static var userAgent: SessionConfiguration {
        var policy = PolicyConfiguration(
            kind: .private, honoursStaleWhileRevalidate: false, storesPost: false)
        policy.honoursNoVarySearch = false
        policy.storesParts = false
        // For `returnCacheDataElseLoad`, be it years later.
        policy.storesUnusable = true
        policy.storesDecoded = true
        var configuration = SessionConfiguration(
            name: "url-loading", policy: policy, window: .kibibytes(512),
            finishAfterClientLeft: .zero, remembersExchanges: 0)
        configuration.role = .userAgent
        configuration.answersChallenges = false
        configuration.followsRedirects = false
        return configuration
    }
}

extension TransferConfiguration {
    /// A week, as a session waits for a resource at most by default.
    private static let week = Duration.seconds(604_800)

    init(_ settings: URLSessionConfiguration) {
        self.init()
        self.sharesThreads = true
        // As much as libcurl takes: nobody here passes it on to others.
        self.maximumHead = .kibibytes(300)
        self.maximumFieldCount = 1_024
        self.connectionsPerHost = max(1, settings.httpMaximumConnectionsPerHost)
        self.idleTimeout = .idle(settings.timeoutIntervalForRequest)
        let patience = min(self.idleTimeout ?? Self.week, Self.week)
        // Which time is up first is the task's affair: it knows of those of its request.
        self.queueTimeout = Self.week
        self.resolveTimeout = patience
        self.connectTimeout = patience
        self.tunnelTimeout = patience
        self.tlsVersions = TLSVersions(
            minimum: TLSVersion(settings.tlsMinimumSupportedProtocolVersion) ?? .v12,
            maximum: TLSVersion(settings.tlsMaximumSupportedProtocolVersion))
        self.parents = settings.parentRules
    }
}

extension TLSVersion {
    init?(_ version: tls_protocol_version_t) {
        switch version.rawValue {
        case 0x0301: self = .v10
        case 0x0302: self = .v11
        case 0x0303: self = .v12
        case 0x0304: self = .v13
        default: return nil
        }
    }
}

extension Duration {
    /// How long a transfer may stand still, by what a program gave in seconds; nil where that says
    /// nothing: it is no number, or not more than 0.
    ///
    /// Without limit is a century.
    static func idle(_ interval: TimeInterval) -> Duration? {
        guard interval > 0 else { return nil }
        return Duration(interval: interval) ?? .seconds(3_155_760_000)
    }

    /// A time that a program gave in seconds; nil where it is no limit: none, or a nonsense one.
    init?(interval: TimeInterval) {
        // Beyond a century the arithmetic of clocks would be at its end.
        guard interval > 0, interval < 3_155_760_000 else { return nil }
        self = .microseconds(Int64(interval * 1_000_000))
    }
}
