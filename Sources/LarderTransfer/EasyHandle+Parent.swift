import CCurl
import Glibc
import LarderHTTP

/// Parents, logins and TLS in libcurl's options.
extension EasyHandle {
    /// How often a challenge of a parent or an origin is answered within one transfer: Digest and
    /// NTLM to each, and a nonce that has become stale.
    private static let mostRounds = 6

    /// Sets the parent of a transfer's way, or that there is none, whatever the environment says.
    func setParent(
        _ transfer: Transfer, _ configuration: TransferConfiguration
    ) throws(UpstreamFailure) {
        guard let parent = transfer.way.parent else {
            self.set(CURLOPT_PROXY, "")
            // Or it would look for NO_PROXY with each transfer.
            self.set(CURLOPT_NOPROXY, "")
            return
        }
        // libcurl would read more out of it than a host: a scheme, a login.
        guard RequestChecks.isHost(parent.host), parent.port != 0 else {
            throw UpstreamFailure(
                .proxyConfigurationError, party: .larder, detail: "no host and port of a parent")
        }
        if transfer.dial != nil, parent.kind == .https {
            throw UpstreamFailure(
                .proxyConfigurationError, party: .larder,
                detail: "no tunnel can be laid through an https parent, only requests")
        }
        self.set(CURLOPT_PROXY, "\(parent.host):\(parent.port)")
        self.set(CURLOPT_NOPROXY, "")  // The rules have spoken.
        self.set(CURLOPT_HAPROXYPROTOCOL, false)
        switch parent.kind {
        case .http: self.set(CURLOPT_PROXYTYPE, Int(CURLPROXY_HTTP.rawValue))
        case .https: self.set(CURLOPT_PROXYTYPE, Int(CURLPROXY_HTTPS.rawValue))
        case .socks5: self.set(CURLOPT_PROXYTYPE, Int(CURLPROXY_SOCKS5_HOSTNAME.rawValue))
        }
        self.set(CURLOPT_HTTPPROXYTUNNEL, parent.kind != .socks5 && transfer.way.isTunnel)
        // The parent's answer to CONNECT is not the origin's, and our fields are not the parent's.
        // Where its challenges are wanted, the transfer keeps the two apart.
        self.set(
            CURLOPT_SUPPRESS_CONNECT_HEADERS, !transfer.options.receivesProxyChallenges)
        self.set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        if parent.kind != .socks5, transfer.way.isTunnel {
            try self.setVia(transfer.request.fields)
        }
        self.setLogin(parent, transfer)
        if configuration.parents.hasOtherLogins(parent) {
            self.setOwnConnection()
        }
    }

    /// Shows the parent with CONNECT the way that the request has come (RFC 9110 §7.6.3): proxies
    /// that lead to each other would else never find out.
    private func setVia(_ fields: Fields) throws(UpstreamFailure) {
        guard fields.contains(FieldName(.via)) else { return }
        for line in fields.lines where line.known == .via {
            guard self.parentFields.append("Via".utf8.span, fields.value(of: line).span) else {
                throw UpstreamFailure(
                    .proxyInternalError, party: .client,
                    detail: "a field line with bytes that none may have")
            }
        }
        self.useParentFields()
    }

    private func setLogin(_ parent: Parent, _ transfer: Transfer) {
        self.set(CURLOPT_SOCKS5_AUTH, ccurl_auth_none)
        // The login would be a field of the request itself, which whoever answers a TRACE may show:
        // RFC 9110 §9.3.8 forbids to send it. A tunnel's goes with CONNECT.
        if transfer.request.method.isEchoed, transfer.way.isRelay { return }
        var parent = parent
        if let own = transfer.options.proxyAuthorization {
            parent.authentication = own.parentAuthentication
            parent.credential = ParentCredential(name: "") {
                ParentLogin(user: own.user, password: own.revealedPassword)
            }
        }
        guard parent.authentication != .none else { return }
        // A ticket of the machine's needs no name, but libcurl must be given one.
        let login =
            parent.credential?.reveal()
            ?? (parent.authentication == .negotiate ? ParentLogin(user: "", password: []) : nil)
        guard var login else { return }
        transfer.hasLogin = true
        self.set(CURLOPT_PROXYUSERNAME, login.user)
        self.set(CURLOPT_PROXYPASSWORD, wiping: &login.password)
        switch parent.kind {
        case .socks5:
            let isTicket = parent.authentication == .negotiate
            self.set(
                CURLOPT_SOCKS5_AUTH, isTicket ? ccurl_auth_negotiate : ccurl_auth_basic)
        case .http, .https:
            let scheme = Self.scheme(parent, transfer)
            transfer.parentLogin = scheme
            self.set(CURLOPT_PROXYAUTH, Self.schemes(of: scheme))
            // libcurl counts its answers to challenges among redirections.
            self.set(CURLOPT_MAXREDIRS, Self.mostRounds)
            // A login that another request of this origin's may not have.
            if transfer.options.proxyAuthorization?.scheme == .ntlm {
                self.setOwnConnection()
            }
            // Tickets authenticate the connection, by which libcurl 7.88 does not choose one.
            if parent.authentication == .negotiate {
                self.setOwnConnection()
            }
        }
    }

    /// How the login is given, where that is known of a parent with which any will do.
    private static func scheme(
        _ parent: Parent, _ transfer: Transfer
    ) -> Parent.Authentication {
        guard parent.authentication == .any else { return parent.authentication }
        if transfer.loop.takesBasic(parent) { return .basic }
        // What is not kept for a second time is for a parent that was known to ask for this.
        if transfer.way.isRelay, transfer.content?.isKept == false { return .digest }
        return .any
    }

    /// Has libcurl authenticate the connection to the origin (RFC 4559, NTLM).
    ///
    /// libcurl keeps a connection that NTLM has authenticated for transfers with the same user and
    /// password. Of Negotiate it forgets for whom it was: such a connection is used once. So is one
    /// to a parent that gets requests for any origin on it.
    func setAuthentication(_ authentication: ConnectionAuthentication, _ way: Way) {
        self.set(
            CURLOPT_HTTPAUTH,
            authentication.scheme == .ntlm ? ccurl_auth_ntlm : ccurl_auth_negotiate)
        if authentication.scheme == .negotiate || way.isRelay {
            self.setOwnConnection()
        }
        self.set(CURLOPT_MAXREDIRS, Self.mostRounds)
        self.set(CURLOPT_USERNAME, authentication.user)
        var password = authentication.revealedPassword
        self.set(CURLOPT_PASSWORD, wiping: &password)
    }

    /// Has libcurl connect, through the parent, and no more.
    func setDial(_ request: Request) {
        self.set(CURLOPT_PROTOCOLS_STR, "http")
        self.set(CURLOPT_URL, "http://\(request.uri.host):\(request.uri.port)/")
        self.set(CURLOPT_CONNECT_ONLY, true)
    }

    /// Sets how TLS is spoken, with an origin and with an https parent alike.
    func setTLS(_ transfer: Transfer, _ configuration: TransferConfiguration) {
        if transfer.scheme == .https {
            self.setTLS(
                configuration, version: CURLOPT_SSLVERSION, verifyPeer: CURLOPT_SSL_VERIFYPEER,
                verifyHost: CURLOPT_SSL_VERIFYHOST, file: CURLOPT_CAINFO,
                directory: CURLOPT_CAPATH, ciphers: CURLOPT_SSL_CIPHER_LIST)
        }
        if transfer.way.parent?.kind == .https {
            self.setTLS(
                configuration, version: CURLOPT_PROXY_SSLVERSION,
                verifyPeer: CURLOPT_PROXY_SSL_VERIFYPEER,
                verifyHost: CURLOPT_PROXY_SSL_VERIFYHOST, file: CURLOPT_PROXY_CAINFO,
                directory: CURLOPT_PROXY_CAPATH, ciphers: CURLOPT_PROXY_SSL_CIPHER_LIST)
        }
    }

    private func setTLS(
        _ configuration: TransferConfiguration, version: CURLoption, verifyPeer: CURLoption,
        verifyHost: CURLoption, file: CURLoption, directory: CURLoption, ciphers: CURLoption
    ) {
        self.set(version, Self.range(configuration.tlsVersions))
        // TLS before 1.2 signs with SHA-1, which OpenSSL 3 has at its level 0 alone
        // (SSL_CTX_set_security_level(3)).
        if configuration.tlsVersions.minimum < .v12 { self.set(ciphers, "DEFAULT@SECLEVEL=0") }
        self.set(verifyPeer, configuration.verifiesCertificates)
        self.set(verifyHost, configuration.verifiesCertificates ? 2 : 0)
        if let path = configuration.certificateFile { self.set(file, path) }
        if let path = configuration.certificateDirectory { self.set(directory, path) }
    }

    /// CURLOPT_SSLVERSION(3): the lowest version in the lower half, the highest in the upper.
    private static func range(_ versions: TLSVersions) -> Int {
        let minimum =
            switch versions.minimum {
            case .v10: CURL_SSLVERSION_TLSv1_0
            case .v11: CURL_SSLVERSION_TLSv1_1
            case .v12: CURL_SSLVERSION_TLSv1_2
            case .v13: CURL_SSLVERSION_TLSv1_3
            }
        let maximum =
            switch versions.maximum {
            case .v10: CURL_SSLVERSION_MAX_TLSv1_0
            case .v11: CURL_SSLVERSION_MAX_TLSv1_1
            case .v12: CURL_SSLVERSION_MAX_TLSv1_2
            case .v13: CURL_SSLVERSION_MAX_TLSv1_3
            case nil: CURL_SSLVERSION_MAX_DEFAULT
            }
        return Int(minimum) | Int(maximum)
    }

    /// By which kinds of login the parent of the last answer lets in; 0 where it asked for none.
    var parentSchemes: Int { self.number(CURLINFO_PROXYAUTH_AVAIL) ?? 0 }

    /// The kinds of login that a parent takes, for people.
    static func names(ofSchemes schemes: Int) -> String {
        let known: [Parent.Authentication] = [.basic, .digest, .ntlm, .negotiate]
        let names = known.filter { schemes & Self.schemes(of: $0) != 0 }.map(\.rawValue)
        return names.isEmpty ? "none that is known" : names.joined(separator: ", ")
    }

    /// Remembers of a parent with which any login will do that it takes Basic and nothing better, or that it no
    /// longer does: a question is saved from then on, and content sent once (RFC 7617 §2.2).
    ///
    /// Of one that asks for Digest, too, so that content which cannot be sent twice waits for its question.
    func learnLogin(of transfer: Transfer, _ end: CurlEnd) {
        guard let parent = transfer.way.parent, parent.authentication == .any, transfer.hasLogin,
            transfer.options.proxyAuthorization == nil
        else { return }
        let uri = transfer.request.uri
        let offered = self.parentSchemes
        guard offered != 0 else {
            // Whoever is let in was not asked.
            if transfer.way.isRelay, transfer.assembler.isHeadComplete {
                transfer.loop.setAsksForDigest(parent, for: uri, false)
            }
            return
        }
        // A challenge that was not answered is no refusal, and libcurl ends well with one that was refused.
        let isTaken =
            end.code == CURLE_SEND_FAIL_REWIND
            || end.code == CURLE_OK && self.number(CURLINFO_RESPONSE_CODE) != 407
        let taken = isTaken ? Self.strongest(of: offered) : nil
        transfer.loop.setTakesBasic(parent, taken == .basic)
        if transfer.way.isRelay {
            transfer.loop.setAsksForDigest(parent, for: uri, taken == .digest)
        }
    }

    /// What libcurl chooses of the kinds of login that a parent takes, where any will do.
    static func strongest(of schemes: Int) -> Parent.Authentication? {
        [.digest, .ntlm, .basic].first { schemes & Self.schemes(of: $0) != 0 }
    }

    static func schemes(of authentication: Parent.Authentication) -> Int {
        switch authentication {
        case .none: ccurl_auth_none
        case .any: ccurl_auth_basic | ccurl_auth_digest | ccurl_auth_ntlm
        case .basic: ccurl_auth_basic
        case .digest: ccurl_auth_digest
        case .ntlm: ccurl_auth_ntlm
        case .negotiate: ccurl_auth_negotiate
        }
    }
}

extension ProxyAuthorization {
    fileprivate var parentAuthentication: Parent.Authentication {
        switch self.scheme {
        case .basic: .basic
        case .digest: .digest
        case .ntlm: .ntlm
        case .negotiate: .negotiate
        }
    }
}

extension TargetURI {
    /// The target that a proxy is sent (RFC 9112 §3.2.2), user information included.
    ///
    /// A server-wide OPTIONS has an empty path there (§3.2.4).
    var absoluteForm: String {
        let user = self.userInfo.map { "\($0)@" } ?? ""
        let path = self.pathAndQuery == "*" ? "" : self.pathAndQuery
        return "\(self.scheme.rawValue)://\(user)\(self.authority)\(path)"
    }
}
