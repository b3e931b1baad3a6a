import Foundation
import LarderHTTP
import LarderSession

/// What the engine's failures are to a program: the one place that gives them codes.
extension URLError {
    /// A load that has no answer.
    ///
    /// - Parameters:
    ///   - trust: what the servers on the way showed.
    ///   - lacksRoute: there is no network at all.
    init(_ failure: ExchangeFailure, shown trust: LoadTrust, lacksRoute: Bool) {
        guard let upstream = failure.upstream else {
            // Nobody was asked: what is stored had to do, and does not.
            self.init(.resourceUnavailable)
            return
        }
        self.init(upstream, shown: trust, lacksRoute: lacksRoute)
    }

    /// A body that ended before it was whole.
    init(breaking failure: BodyFailure) {
        let error: URLError =
            switch failure {
            case .upstream(let upstream): URLError(upstream, shown: LoadTrust())
            case .client: URLError(.requestBodyStreamExhausted)
            case .store: URLError(.resourceUnavailable)
            case .cancelled: URLError(.cancelled)
            }
        self = error.completed(for: nil)
    }

    /// A way to a server that failed.
    ///
    /// - Parameters:
    ///   - trust: what the servers on the way showed.
    ///   - lacksRoute: there is no network at all.
    init(_ failure: UpstreamFailure, shown trust: LoadTrust, lacksRoute: Bool = false) {
        let code = Self.code(of: failure, trust)
        // Names are not found without a network either. What took too long stays that: a task that
        // was suspended meanwhile begins anew for it.
        self.init(
            lacksRoute && code != .timedOut ? .notConnectedToInternet : code,
            userInfo: [NSUnderlyingErrorKey: NSError(failure)])
    }

    private static func code(of failure: UpstreamFailure, _ trust: LoadTrust) -> URLError.Code {
        // With TLS 1.2 a server need not say what it breaks off for.
        if failure.cause == .secureConnection { return self.handshakeCode(trust) }
        if let cause = failure.cause { return self.code(of: cause) }
        return switch failure.kind {
        case .dnsError: .cannotFindHost
        case .destinationNotFound: failure.party == .client ? .badURL : .cannotFindHost
        case .dnsTimeout, .connectionTimeout, .connectionReadTimeout, .connectionWriteTimeout,
            .httpResponseTimeout, .connectionLimitReached:
            .timedOut
        case .destinationUnavailable, .destinationIPUnroutable, .connectionRefused:
            .cannotConnectToHost
        case .connectionTerminated, .httpResponseIncomplete: .networkConnectionLost
        case .tlsProtocolError: self.handshakeCode(trust)
        case .tlsCertificateError: self.certificateCode(trust.peer?.fault)
        case .httpResponseHeaderSectionSize, .httpResponseBodySize, .httpProtocolError:
            .badServerResponse
        case .proxyConfigurationError, .httpRequestDenied: .cannotConnectToHost
        case .proxyLoopDetected: .httpTooManyRedirects
        case .requestBodyFailed: .requestBodyStreamExhausted
        case .requestHeadTooLarge: .dataLengthExceedsMaximum
        case .proxyInternalError: .unknown
        }
    }

    private static func code(of cause: UpstreamFailure.Cause) -> URLError.Code {
        switch cause {
        case .badURL: .badURL
        case .unsupported: .unsupportedURL
        case .requestContent: .requestBodyStreamExhausted
        case .requestHead: .dataLengthExceedsMaximum
        // Of these, that there is no route at all is for whoever can look.
        case .hostNotFound, .proxyNotFound: .cannotFindHost
        case .notConnected, .cannotConnect, .proxy: .cannotConnectToHost
        case .connectionLost, .partialContent: .networkConnectionLost
        case .idleTimeout, .resourceTimeout, .connectionLimit: .timedOut
        case .proxyAuthenticationRequired, .loginDenied: .userAuthenticationRequired
        case .secureConnection, .certificateUndecided, .clientCertificateUndecided:
            .secureConnectionFailed
        case .certificateExpired: .serverCertificateHasBadDate
        case .certificateNotYetValid: .serverCertificateNotYetValid
        case .certificateUnknownRoot: .serverCertificateHasUnknownRoot
        case .certificateWrongHost, .certificateRevoked, .certificateUntrusted,
            .certificateRefused:
            .serverCertificateUntrusted
        case .clientCertificateRejected: .clientCertificateRejected
        case .clientCertificateRequired: .clientCertificateRequired
        case .badResponse, .headTooLarge: .badServerResponse
        case .badContentCoding: .cannotDecodeContentData
        case .fileNotFound: .fileDoesNotExist
        }
    }

    /// A handshake that failed after the server had wanted a certificate failed for that.
    private static func handshakeCode(_ trust: LoadTrust) -> URLError.Code {
        guard trust.wantsIdentity || trust.identity != nil else { return .secureConnectionFailed }
        return trust.identity == nil ? .clientCertificateRequired : .clientCertificateRejected
    }

    /// A server broke the handshake off, or this side did, over who they are.
    var isAboutHandshake: Bool {
        switch self.code {
        case .secureConnectionFailed, .clientCertificateRejected, .clientCertificateRequired: true
        default: false
        }
    }

    private static func certificateCode(_ fault: TLSFault?) -> URLError.Code {
        switch fault {
        case .expired: .serverCertificateHasBadDate
        case .notYetValid: .serverCertificateNotYetValid
        case .unknownRoot: .serverCertificateHasUnknownRoot
        case .wrongHost, .revoked, .untrusted, nil: .serverCertificateUntrusted
        }
    }
}

extension NSError {
    /// What is beneath an error of a task: the system's own where that is known, as programs look for it.
    fileprivate convenience init(_ failure: UpstreamFailure) {
        let system = failure.systemCode
        self.init(
            domain: system == nil ? "URLLoading" : NSPOSIXErrorDomain,
            code: system.map { Int($0.rawValue) } ?? 0,
            userInfo: [NSLocalizedDescriptionKey: failure.detail])
    }
}

extension UpstreamFailure {
    fileprivate var systemCode: POSIXErrorCode? {
        switch self.kind {
        case .connectionRefused: .ECONNREFUSED
        case .connectionTimeout, .connectionReadTimeout, .connectionWriteTimeout: .ETIMEDOUT
        case .connectionTerminated: .ECONNRESET
        case .destinationIPUnroutable: .EHOSTUNREACH
        default: nil
        }
    }
}
