import LarderHTTP

extension ExchangeFailure {
    /// What a failed fetch means for the client: status and words by RFC 9209 §2.3.
    init(_ failure: UpstreamFailure) {
        self.init(
            status: Self.status(of: failure.kind),
            error: failure.kind.rawValue, detail: failure.detail, party: failure.party,
            cacheStatus: CacheStatus())
    }

    private static func status(of kind: UpstreamFailure.Kind) -> StatusCode {
        switch kind {
        case .dnsTimeout, .connectionTimeout, .connectionReadTimeout, .connectionWriteTimeout,
            .httpResponseTimeout:
            .gatewayTimeout
        case .destinationUnavailable, .connectionLimitReached: .serviceUnavailable
        case .dnsError, .destinationNotFound, .destinationIPUnroutable, .connectionRefused,
            .connectionTerminated, .tlsProtocolError, .tlsCertificateError,
            .httpResponseIncomplete, .httpResponseHeaderSectionSize, .httpResponseBodySize,
            .httpProtocolError:
            .badGateway
        case .proxyInternalError, .proxyConfigurationError: StatusCode(500)
        case .requestBodyFailed: StatusCode(400)
        }
    }
}
