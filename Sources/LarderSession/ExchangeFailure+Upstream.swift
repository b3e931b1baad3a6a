package import LarderHTTP
import LarderPolicy

extension ExchangeFailure {
    /// What a failed fetch means for the client: the status that RFC 9209 §2.3 recommends for it.
    package init(_ failure: UpstreamFailure) {
        self.init(
            status: Self.status(of: failure),
            error: failure.kind.errorType, detail: failure.detail, party: failure.party,
            cacheStatus: CacheStatus(), nextHop: failure.nextHop)
        self.upstream = failure
    }

    /// What a failed validation of a stored response means for the client: 504 and the directive where
    /// one demands an error then (RFC 9111 §5.2.2.2), else what any failed fetch means.
    init(
        _ failure: UpstreamFailure, validating head: StoredHead?,
        configuration: PolicyConfiguration
    ) {
        self.init(failure)
        guard failure.party == .origin, let head,
            let reason = StaleOnError.demandsError(head, configuration: configuration)
        else { return }
        self.status = .gatewayTimeout
        self.cacheStatus.detail = reason.rawValue
    }

    private static func status(of failure: UpstreamFailure) -> StatusCode {
        // What no server of the scheme is ever asked (RFC 9110 §15.6.2).
        let isAskedOfNone = failure.kind == .proxyConfigurationError && failure.party == .client
        if isAskedOfNone, failure.cause == .unsupported { return StatusCode(501) }
        // A parent's own word, where it means the same from here: 401, 412 or 416 would speak of the origin.
        switch (failure.kind, failure.receivedStatus?.rawValue) {
        case (.httpRequestDenied, let status?) where [429, 451].contains(status):
            return StatusCode(status)
        case (.destinationUnavailable, 502?): return .badGateway
        default: return Self.status(of: failure.kind)
        }
    }

    static func status(of kind: UpstreamFailure.Kind) -> StatusCode {
        switch kind {
        case .requestHeadTooLarge: StatusCode(431)
        // The other one without a recommendation is the content of the request that broke off.
        default: kind.errorType.recommendedStatus ?? StatusCode(400)
        }
    }
}

extension UpstreamFailure.Kind {
    /// Whether it came of a server that had been found.
    var isBehindName: Bool {
        switch self {
        case .dnsError, .dnsTimeout, .destinationNotFound: false
        default: true
        }
    }
}
