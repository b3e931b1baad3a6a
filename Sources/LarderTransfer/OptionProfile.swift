import LarderHTTP

/// What the options of an easy handle are set for, the URI and the fields of the request aside.
///
/// Two requests with the same profile want the same options, so what is set for one stays for the
/// other: to set some forty options anew cost 2 µs a request. There is a profile for plain requests
/// alone. Logins, certificates, content, parents and whatever else belongs to one request have none:
/// their handle is wiped (curl_easy_reset(3)) before it is used again, and so is one on which an
/// option was changed in the midst of a transfer.
/// Where libcurl remembers the last response, their heads are looked at first (`FirstFieldGuard`).
///
/// What depends on the configuration is not here: a handle never leaves its loop, which has one.
struct OptionProfile: Equatable {
    private let isSecure: Bool
    private let isHead: Bool
    private let decodesContent: Bool
    private let longestConnecting: Duration?

    /// - Returns: nil where the request wants options that must not outlive it.
    init?(_ transfer: Transfer) {
        let request = transfer.request
        let (method, scheme) = (request.method, transfer.scheme)
        guard case .direct = transfer.way, transfer.dial == nil, scheme != .ftp,
            method == .get || method == .head, transfer.content == nil,
            request.connectionAuthentication == nil, !transfer.logsConnectionIn,
            transfer.options.identity == nil, transfer.options.proxyAuthorization == nil,
            transfer.options.priority == 0.5, !transfer.isJudged, !transfer.hasLargeHead
        else { return nil }
        self.isSecure = scheme == .https
        self.isHead = method == .head
        self.decodesContent = transfer.options.decodesContent
        self.longestConnecting = transfer.longestConnecting
    }
}
