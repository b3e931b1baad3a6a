import CCurl
import LarderHTTP

/// What a parent's refusals and mistakes amount to (RFC 9209 §2.3, RFC 1928 §6).
enum ParentFailure {
    /// The failure that was met on the way through a parent; nil where the parent had no part in it.
    static func of(_ end: CurlEnd, _ way: Way, hadLogin: Bool) -> UpstreamFailure? {
        guard let parent = way.parent else { return nil }
        switch end.code {
        case CURLE_PROXY:
            return self.socks(end)
        case CURLE_COULDNT_RESOLVE_PROXY:
            return UpstreamFailure(
                .dnsError, cause: .proxyNotFound, detail: "the parent's name is not resolved")
        case CURLE_SEND_FAIL_REWIND where way.isRelay:
            return UpstreamFailure(
                .proxyConfigurationError, party: .larder, cause: .proxy,
                detail: "the parent wants a login first, and the content cannot be sent twice"
                    + self.remedy(for: parent, offered: end.parentSchemes))
        case CURLE_TOO_MANY_REDIRECTS:
            return UpstreamFailure(
                .proxyConfigurationError, party: .larder, cause: .proxy,
                detail: "the parent goes on asking for a login")
        default:
            break
        }
        if way.isTunnel, parent.kind != .socks5, end.connectStatus != 0,
            !(200..<300).contains(end.connectStatus)
        {
            return end.connectStatus == 407
                ? self.loginWanted(by: parent, hadLogin: hadLogin, offered: end.parentSchemes)
                : self.refusal(end.connectStatus)
        }
        guard parent.kind == .https, end.isAboutTLS,
            end.distrustsParent || way.isRelay || end.connectStatus == 0
        else { return nil }
        // libcurl calls a certificate untrusted, too, that a failed handshake never showed it.
        let isCertificate = end.code != CURLE_SSL_CONNECT_ERROR
        return UpstreamFailure(
            isCertificate ? .tlsCertificateError : .tlsProtocolError, cause: .proxy,
            detail: "the parent itself: \(end.detail)")
    }

    /// What rule would have the content sent once.
    private static func remedy(for parent: Parent, offered: Int) -> String {
        guard parent.authentication == .any, let scheme = EasyHandle.strongest(of: offered) else {
            return ""
        }
        let rule = "; authentication: \(scheme.rawValue), which the parent takes, "
        return rule
            + (scheme == .basic
                ? "sends the login at once" : "has it ask before the content goes out")
    }

    /// A request went out without its content, to be asked for a login, and was let in without one.
    ///
    /// Whoever it was passed on to has taken it for whole.
    static func notAsked(by parent: Parent) -> UpstreamFailure {
        let remedy =
            switch parent.authentication {
            case .digest, .ntlm: "; authentication: any sends the content at once"
            // With any it is forgotten from now on; none is a request's own login.
            case .any, .none, .basic, .negotiate: ""
            }
        return UpstreamFailure(
            .proxyConfigurationError, party: .larder, cause: .proxy,
            detail:
                "the parent asked for no login, and passed on the request that was to have it ask, "
                + "without its content" + remedy)
    }

    /// A 407: what Larder was given to log in with is missing or wrong, or of a kind that the parent does
    /// not take.
    ///
    /// - Parameter offered: the kinds that it takes (CURLINFO_PROXYAUTH_AVAIL(3)).
    static func loginWanted(by parent: Parent, hadLogin: Bool, offered: Int) -> UpstreamFailure {
        // None, where the request itself brings the login.
        let isSent =
            parent.authentication == .none
            || EasyHandle.schemes(of: parent.authentication) & offered != 0
        let detail =
            switch (parent.credential?.name, hadLogin) {
            case (_, true) where !isSent:
                "the parent takes no login by \(parent.authentication.rawValue), its rule's "
                    + "authentication; it takes \(EasyHandle.names(ofSchemes: offered))"
            case (let name?, true): "the parent refuses the login \(name)"
            case (nil, true): "the parent refuses the login"
            case (let name?, false):
                "the parent wants a login, and there is no user name and password \(name)"
            case (nil, false): "the parent wants a login, and its rule names no credential"
            }
        return UpstreamFailure(
            .proxyConfigurationError, party: .larder, cause: .proxyAuthenticationRequired,
            detail: detail)
    }

    /// An answer to CONNECT that is neither success nor a challenge.
    private static func refusal(_ status: Int) -> UpstreamFailure {
        let text = "the parent answered CONNECT with \(status)"
        var failure: UpstreamFailure
        switch status {
        case 400, 405, 421, 426, 501, 505:
            // It knows no tunnels, or is no proxy at all.
            failure = UpstreamFailure(
                .proxyConfigurationError, party: .larder, cause: .proxy, detail: text)
        case 508:
            failure = UpstreamFailure(
                .proxyLoopDetected, party: .larder, cause: .proxy, detail: text)
        case 404:
            failure = UpstreamFailure(.destinationNotFound, cause: .hostNotFound, detail: text)
        case 408, 504:
            failure = UpstreamFailure(.connectionTimeout, cause: .idleTimeout, detail: text)
        case 300..<500:
            // By its policy, or with the page of a portal: a word of its own, which no stored response
            // stands in for.
            failure = UpstreamFailure(
                .httpRequestDenied, party: .client, cause: .proxy, detail: text)
        default:
            // 502 and 503 for origins that it does not reach.
            failure = UpstreamFailure(.destinationUnavailable, cause: .cannotConnect, detail: text)
        }
        failure.receivedStatus = StatusCode(UInt16(clamping: status))
        return failure
    }

    private static func socks(_ end: CurlEnd) -> UpstreamFailure {
        let kind: UpstreamFailure.Kind
        var cause = UpstreamFailure.Cause.cannotConnect
        var party = UpstreamFailure.Party.origin
        switch end.proxyError {
        case CURLPX_REPLY_CONNECTION_REFUSED:
            kind = .connectionRefused
        case CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE:
            kind = .destinationIPUnroutable
        case CURLPX_REPLY_TTL_EXPIRED:
            kind = .connectionTimeout
            cause = .idleTimeout
        case CURLPX_RESOLVE_HOST:
            kind = .dnsError
            cause = .hostNotFound
        case CURLPX_CLOSED, CURLPX_RECV_ADDRESS, CURLPX_RECV_AUTH, CURLPX_RECV_CONNECT,
            CURLPX_RECV_REQACK, CURLPX_SEND_AUTH, CURLPX_SEND_CONNECT, CURLPX_SEND_REQUEST:
            kind = .connectionTerminated
            cause = .connectionLost
        case CURLPX_REPLY_NOT_ALLOWED:
            kind = .httpRequestDenied
            cause = .proxy
            party = .client
        case CURLPX_REPLY_GENERAL_SERVER_FAILURE, CURLPX_REPLY_UNASSIGNED:
            kind = .destinationUnavailable
        default:
            // No SOCKS5, no method in common, a login refused, more than its fields can hold.
            kind = .proxyConfigurationError
            cause = .proxy
            party = .larder
        }
        return UpstreamFailure(kind, party: party, cause: cause, detail: "SOCKS: \(end.detail)")
    }
}

extension CurlEnd {
    fileprivate var isAboutTLS: Bool {
        switch self.code {
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: true
        default: false
        }
    }
}
