public import Foundation
import LarderHTTP

/// What one request of a task took, and its response.
///
/// Dates are nil where that did not happen (no name is looked up and nothing is connected for a
/// connection that is used again, nor for what comes from the cache) or did not come to its end.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
    private let measurement: TransactionMeasurement

    init(_ measurement: TransactionMeasurement) {
        self.measurement = measurement
        super.init()
    }

    private var transfer: TransferMeasurement? { self.measurement.transfer }

    private func date(_ moment: Duration?) -> Date? {
        guard let transfer, let moment else { return nil }
        return Date(transfer.begun + moment)
    }

    // MARK: What was asked, and answered

    /// The request, as the program knows it: without what the session added.
    open var request: URLRequest {
        self.measurement.request ?? URLRequest(url: URL(fileURLWithPath: "/"))
    }
    /// nil where there was none.
    open var response: URLResponse? { self.measurement.response }

    // MARK: When

    /// When the load began, whether from the network or the cache.
    open var fetchStartDate: Date? { self.measurement.begun }
    /// When the look-up of the host's name began.
    open var domainLookupStartDate: Date? { self.date(self.transfer?.nameLookupStarted) }
    /// When the host's address was known.
    open var domainLookupEndDate: Date? { self.date(self.transfer?.nameLookupEnded) }
    /// When the connection began to be made; its handshake of TLS lies within it.
    open var connectStartDate: Date? { self.date(self.transfer?.connectStarted) }
    /// When the handshake of TLS began; nil without TLS.
    open var secureConnectionStartDate: Date? { self.date(self.transfer?.secureConnectionStarted) }
    /// When the handshake of TLS was done; nil without TLS.
    open var secureConnectionEndDate: Date? { self.date(self.transfer?.secureConnectionEnded) }
    /// When the connection was ready for requests, its handshake of TLS included.
    open var connectEndDate: Date? { self.date(self.transfer?.connectEnded) }
    /// For what comes from the cache this and the following are moments of the look-up.
    open var requestStartDate: Date? {
        self.isFromCache ? self.fetchStartDate : self.date(self.transfer?.requestStarted)
    }
    /// When the last byte of the request had been sent.
    open var requestEndDate: Date? {
        self.isFromCache ? self.fetchStartDate : self.date(self.transfer?.requestEnded)
    }
    /// When the first byte of the response came.
    open var responseStartDate: Date? {
        self.isFromCache ? self.fetchStartDate : self.date(self.transfer?.responseStarted)
    }
    /// When the last byte of the response came.
    open var responseEndDate: Date? {
        self.isFromCache
            ? self.measurement.ended : self.date(self.transfer?.responseEnded)
    }

    private var isFromCache: Bool { self.measurement.source == .cache }

    // MARK: How

    /// As ALPN names it: `http/1.1`, `h2`, `h3`; nil where nothing was asked over the network.
    open var networkProtocolName: String? { self.transfer?.protocolName }
    /// Whether it went over a proxy.
    open var isProxyConnection: Bool { self.transfer?.isProxyConnection ?? false }
    /// Whether the connection had carried a request before.
    open var isReusedConnection: Bool { self.transfer?.isReusedConnection ?? false }
    /// Whether the response came over the network or from the cache.
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch self.measurement.source {
        case .unknown: .unknown
        case .network: .networkLoad
        case .cache: .localCache
        }
    }
    /// Always unknown on Linux.
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

    // MARK: How much

    /// In bytes, as everything here.
    open var countOfRequestHeaderBytesSent: Int64 {
        Int64(clamping: self.transfer?.requestHeadBytes ?? 0)
    }
    /// The bytes of the request's body that were sent, as they went over the network.
    open var countOfRequestBodyBytesSent: Int64 {
        Int64(clamping: self.transfer?.requestBodyBytes ?? 0)
    }
    /// The length of the content; what was sent of it where its length was not known.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 {
        self.measurement.contentBytes > 0
            ? self.measurement.contentBytes : self.countOfRequestBodyBytesSent
    }
    /// The bytes of the response's status line and header fields; 0 for what the cache gave.
    open var countOfResponseHeaderBytesReceived: Int64 {
        Int64(clamping: self.transfer?.responseHeadBytes ?? 0)
    }
    /// As they came, before content codings were undone.
    open var countOfResponseBodyBytesReceived: Int64 {
        Int64(clamping: self.transfer?.responseBodyBytes ?? 0)
    }
    /// The bytes of the response's body as the program got them, without content codings.
    open var countOfResponseBodyBytesAfterDecoding: Int64 { self.measurement.bodyBytes }

    // MARK: Where

    /// The address of this end of the connection; nil where there was none.
    open var localAddress: String? { self.transfer?.localAddress }
    /// The port of this end, a number as a text: Foundation's type on Linux, not Apple's.
    open var localPort: String? { self.transfer?.localPort.map { String($0) } }
    /// The address of the other end: the proxy's, where there is one.
    open var remoteAddress: String? { self.transfer?.remoteAddress }
    /// The port of the other end, a number as a text: Foundation's type on Linux, not Apple's.
    open var remotePort: String? { self.transfer?.remotePort.map { String($0) } }
    /// nil where the connection is not one of TLS.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        self.transfer?.tlsVersion.flatMap { tls_protocol_version_t(rawValue: $0) }
    }
    /// nil also for a suite that the type does not name.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        self.transfer?.tlsCipherSuite.flatMap { tls_ciphersuite_t(rawValue: $0) }
    }
    /// Always false on Linux.
    open var isCellular: Bool { false }
    /// Always false on Linux.
    open var isExpensive: Bool { false }
    /// Always false on Linux.
    open var isConstrained: Bool { false }
    /// Always false on Linux.
    open var isMultipath: Bool { false }
}

extension Date {
    fileprivate init(_ moment: Timestamp) {
        self.init(timeIntervalSince1970: Double(moment.microseconds) / 1_000_000)
    }
}

/// A cipher suite of TLS, by its number in IANA's registry, which also has their full names.
public enum tls_ciphersuite_t: UInt16, Sendable {
    /// `TLS_RSA_WITH_3DES_EDE_CBC_SHA`.
    case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
    /// `TLS_RSA_WITH_AES_128_CBC_SHA`.
    case RSA_WITH_AES_128_CBC_SHA = 0x002F
    /// `TLS_RSA_WITH_AES_256_CBC_SHA`.
    case RSA_WITH_AES_256_CBC_SHA = 0x0035
    /// `TLS_RSA_WITH_AES_128_CBC_SHA256`.
    case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
    /// `TLS_RSA_WITH_AES_256_CBC_SHA256`.
    case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
    /// `TLS_RSA_WITH_AES_128_GCM_SHA256`.
    case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
    /// `TLS_RSA_WITH_AES_256_GCM_SHA384`.
    case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
    /// `TLS_AES_128_GCM_SHA256`.
    case AES_128_GCM_SHA256 = 0x1301
    /// `TLS_AES_256_GCM_SHA384`.
    case AES_256_GCM_SHA384 = 0x1302
    /// `TLS_CHACHA20_POLY1305_SHA256`.
    case CHACHA20_POLY1305_SHA256 = 0x1303
    /// `TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA`.
    case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA`.
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
    /// `TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA`.
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
    /// `TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA`.
    case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
    /// `TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA`.
    case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
    /// `TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA`.
    case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256`.
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
    /// `TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384`.
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
    /// `TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256`.
    case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
    /// `TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384`.
    case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256`.
    case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
    /// `TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384`.
    case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
    /// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
    /// `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`.
    case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
    /// `TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256`.
    case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
    /// `TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256`.
    case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9
}
