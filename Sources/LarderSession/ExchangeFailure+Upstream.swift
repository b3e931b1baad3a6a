package import LarderHTTP

extension ExchangeFailure {
    /// What a failed fetch means for the client: the status that RFC 9209 §2.3 recommends for it.
    package init(_ failure: UpstreamFailure) {
        self.init(
            status: Self.status(of: failure.kind),
            error: failure.kind.errorType, detail: failure.detail, party: failure.party,
            cacheStatus: CacheStatus(), nextHop: failure.nextHop)
        self.upstream = failure
    }

    static func status(of kind: UpstreamFailure.Kind) -> StatusCode {
        // The one without a recommendation is the content of the request that broke off.
        kind.errorType.recommendedStatus ?? StatusCode(400)
    }
}
