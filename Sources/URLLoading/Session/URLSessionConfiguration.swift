public import Foundation

/// What a session is made with.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    open private(set) var identifier: String?
    open var requestCachePolicy: NSURLRequest.CachePolicy = .useProtocolCachePolicy
    open var timeoutIntervalForRequest: TimeInterval = 60
    open var timeoutIntervalForResource: TimeInterval = 604_800
    open var networkServiceType: NSURLRequest.NetworkServiceType = .default
    open var allowsCellularAccess = true
    open var allowsExpensiveNetworkAccess = true
    open var allowsConstrainedNetworkAccess = true
    open var allowsUltraConstrainedNetworkAccess = true
    open var requiresDNSSECValidation = false
    open var enablesEarlyData = false
    open var usesClassicLoadingMode = true
    open var waitsForConnectivity = false
    open var isDiscretionary = false
    open var sharedContainerIdentifier: String?
    open var sessionSendsLaunchEvents = true
    open var connectionProxyDictionary: [AnyHashable: Any]?
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t = .TLSv12
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t = .TLSv13
    open var httpShouldUsePipelining = false
    open var httpShouldSetCookies = true
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    open var httpAdditionalHeaders: [AnyHashable: Any]?
    open var httpMaximumConnectionsPerHost = 6
    open var httpCookieStorage: HTTPCookieStorage?
    open var urlCredentialStorage: URLCredentialStorage?
    open var urlCache: URLCache?
    open var protocolClasses: [AnyClass]?
    open var shouldUseExtendedBackgroundIdleMode = false
    open var multipathServiceType: MultipathServiceType = .none

    override init() {
        super.init()
    }

    open class var `default`: URLSessionConfiguration {
        let configuration = URLSessionConfiguration()
        configuration.httpCookieStorage = .shared
        configuration.urlCredentialStorage = .shared
        configuration.urlCache = .shared
        return configuration
    }

    open class var ephemeral: URLSessionConfiguration {
        let configuration = URLSessionConfiguration()
        configuration.httpCookieStorage = .ephemeral()
        configuration.urlCredentialStorage = .ephemeral()
        configuration.urlCache = URLCache(
            memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        return configuration
    }

    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = nil
        configuration.identifier = identifier
        return configuration
    }

    open override func copy() -> Any { self.copy(with: nil) }

    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = URLSessionConfiguration()
        copy.identifier = self.identifier
        copy.requestCachePolicy = self.requestCachePolicy
        copy.timeoutIntervalForRequest = self.timeoutIntervalForRequest
        copy.timeoutIntervalForResource = self.timeoutIntervalForResource
        copy.networkServiceType = self.networkServiceType
        copy.allowsCellularAccess = self.allowsCellularAccess
        copy.allowsExpensiveNetworkAccess = self.allowsExpensiveNetworkAccess
        copy.allowsConstrainedNetworkAccess = self.allowsConstrainedNetworkAccess
        copy.allowsUltraConstrainedNetworkAccess = self.allowsUltraConstrainedNetworkAccess
        copy.requiresDNSSECValidation = self.requiresDNSSECValidation
        copy.enablesEarlyData = self.enablesEarlyData
        copy.usesClassicLoadingMode = self.usesClassicLoadingMode
        copy.waitsForConnectivity = self.waitsForConnectivity
        copy.isDiscretionary = self.isDiscretionary
        copy.sharedContainerIdentifier = self.sharedContainerIdentifier
        copy.sessionSendsLaunchEvents = self.sessionSendsLaunchEvents
        copy.connectionProxyDictionary = self.connectionProxyDictionary
        copy.tlsMinimumSupportedProtocolVersion = self.tlsMinimumSupportedProtocolVersion
        copy.tlsMaximumSupportedProtocolVersion = self.tlsMaximumSupportedProtocolVersion
        copy.httpShouldUsePipelining = self.httpShouldUsePipelining
        copy.httpShouldSetCookies = self.httpShouldSetCookies
        copy.httpCookieAcceptPolicy = self.httpCookieAcceptPolicy
        copy.httpAdditionalHeaders = self.httpAdditionalHeaders
        copy.httpMaximumConnectionsPerHost = self.httpMaximumConnectionsPerHost
        copy.httpCookieStorage = self.httpCookieStorage
        copy.urlCredentialStorage = self.urlCredentialStorage
        copy.urlCache = self.urlCache
        copy.protocolClasses = self.protocolClasses
        copy.shouldUseExtendedBackgroundIdleMode = self.shouldUseExtendedBackgroundIdleMode
        copy.multipathServiceType = self.multipathServiceType
        return copy
    }
}

/// A version of TLS, by its number in the protocol.
public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv10 = 0x0301
    case TLSv11 = 0x0302
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
}
