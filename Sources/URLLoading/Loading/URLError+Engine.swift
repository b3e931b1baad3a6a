import Foundation
import LarderHTTP
import LarderSession

/// What the engine's failures are to a program: the one place that gives them codes.
extension URLError {
    /// A load that has no answer.
    ///
    /// - Parameter trust: what the servers on the way showed.
    init(_ failure: ExchangeFailure, shown trust: LoadTrust) {
        guard let error = failure.error, let kind = UpstreamFailure.Kind(rawValue: error) else {
            // Nobody was asked: what is stored had to do, and does not.
            self.init(.resourceUnavailable)
            return
        }
        var told = UpstreamFailure(kind, party: failure.party, detail: failure.detail)
        told.nextHop = failure.nextHop
        self.init(failure.upstream ?? told, shown: trust)
    }

    /// A body that ended before it was whole.
    init(_ failure: BodyFailure, at url: URL?) {
        let error: URLError =
            switch failure {
            case .upstream(let upstream): URLError(upstream, shown: LoadTrust())
            case .client: URLError(.requestBodyStreamExhausted)
            case .store: URLError(.resourceUnavailable)
            case .cancelled: URLError(.cancelled)
            }
        self = error.at(url)
    }

    init(_ failure: UpstreamFailure, shown trust: LoadTrust) {
        self.init(
            Self.code(of: failure, trust),
            userInfo: [NSUnderlyingErrorKey: failure as any Error])
    }

    private static func code(of failure: UpstreamFailure, _ trust: LoadTrust) -> URLError.Code {
        switch failure.kind {
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
        case .proxyConfigurationError: .cannotConnectToHost
        case .proxyLoopDetected: .httpTooManyRedirects
        case .requestBodyFailed: .requestBodyStreamExhausted
        case .proxyInternalError: .unknown
        }
    }

    /// A handshake that failed after the server had wanted a certificate failed for that.
    private static func handshakeCode(_ trust: LoadTrust) -> URLError.Code {
        guard trust.wantsIdentity || trust.identity != nil else { return .secureConnectionFailed }
        return trust.identity == nil ? .clientCertificateRequired : .clientCertificateRejected
    }

    private static func certificateCode(_ fault: TLSFault?) -> URLError.Code {
        switch fault {
        case .expired: .serverCertificateHasBadDate
        case .notYetValid: .serverCertificateNotYetValid
        case .unknownRoot: .serverCertificateHasUnknownRoot
        case .wrongHost, .revoked, .untrusted, nil: .serverCertificateUntrusted
        }
    }

    /// `NSURLErrorFailingURLStringErrorKey`, which Foundation calls deprecated and sets.
    private static let failingURLStringKey = "NSErrorFailingURLStringKey"

    /// The same with the URL that it is about, and in words.
    func at(_ url: URL?) -> URLError {
        var userInfo = self.userInfo
        if let url, userInfo[NSURLErrorFailingURLErrorKey] == nil {
            userInfo[NSURLErrorFailingURLErrorKey] = url
            userInfo[Self.failingURLStringKey] = url.absoluteString
        }
        if userInfo[NSLocalizedDescriptionKey] == nil {
            userInfo[NSLocalizedDescriptionKey] = Self.words(for: self.code)
        }
        return URLError(self.code, userInfo: userInfo)
    }

    private static func words(for code: URLError.Code) -> String {
        switch code {
        case .cancelled: "The load was cancelled."
        case .badURL: "The URL cannot be loaded as it stands."
        case .timedOut: "Nothing was heard from the server in time."
        case .unsupportedURL: "URLs of this kind are not supported."
        case .cannotFindHost: "There is no server of that name."
        case .cannotConnectToHost: "No connection to the server could be made."
        case .networkConnectionLost: "The connection to the server was lost."
        case .httpTooManyRedirects: "There were too many redirections."
        case .resourceUnavailable: "The resource is not available."
        case .notConnectedToInternet: "This machine is not connected to the network."
        case .badServerResponse: "The server's response is not a valid one."
        case .userAuthenticationRequired: "The server wants to know who asks."
        case .cannotDecodeContentData: "The content could not be decoded."
        case .dataLengthExceedsMaximum: "The content is larger than it may be."
        case .fileDoesNotExist: "There is no such file."
        case .requestBodyStreamExhausted: "The content of the request broke off."
        case .secureConnectionFailed: "No secure connection to the server could be made."
        case .serverCertificateHasBadDate: "The server's certificate has expired."
        case .serverCertificateNotYetValid: "The server's certificate is not valid yet."
        case .serverCertificateHasUnknownRoot:
            "The server's certificate was issued by nobody who is trusted."
        case .serverCertificateUntrusted: "The server's certificate is not trusted."
        case .clientCertificateRequired: "The server wants a client certificate."
        case .clientCertificateRejected: "The server does not accept the client certificate."
        default: "The load failed."
        }
    }
}
