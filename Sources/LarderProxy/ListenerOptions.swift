package import LarderHTTP
package import LarderPolicy
import LarderSession

/// What one listener grants its clients, beside the session that answers them.
package struct ListenerOptions: Sendable {
    /// Takes the place of the session's own policy; nil: that one.
    package var cachePolicy: RequestCachePolicy?
    /// Whether a client may say in `Larder-Cache-Policy` how a request uses the cache, and in
    /// `Larder-Session` which session answers it.
    ///
    /// Asked once a connection, and again whenever its user changes; must not block.
    package var trusts: @Sendable (ClientIdentity) -> Bool
    /// Verifies who the clients are, which all have to say then; nil: nobody has to.
    package var authentication: (any ProxyAuthenticator)?
    /// Whether processes on a Unix socket have to authenticate themselves like all others.
    ///
    /// The kernel says whose they are, so that access rules can do without; what they do send is
    /// verified nevertheless.
    package var authenticatesUnixPeers: Bool
    /// The permissions that the file of a Unix socket has from its first moment on, less those that
    /// the umask takes; nil: all that the umask leaves.
    package var socketMode: UInt32?

    package init(
        cachePolicy: RequestCachePolicy? = nil,
        authentication: (any ProxyAuthenticator)? = nil, authenticatesUnixPeers: Bool = false,
        trusts: @escaping @Sendable (ClientIdentity) -> Bool = { _ in false }
    ) {
        self.cachePolicy = cachePolicy
        self.authentication = authentication
        self.authenticatesUnixPeers = authenticatesUnixPeers
        self.trusts = trusts
    }
}

/// The request field by which a client that is trusted says how one request uses the cache.
package enum CachePolicyField {
    package enum Reading: Equatable {
        case absent
        case policy(RequestCachePolicy)
        /// - Parameter detail: for people; says nothing of what was received.
        case refused(detail: String)
    }

    package static func read(_ fields: Fields) -> Reading {
        guard fields.has(.larderCachePolicy) else { return .absent }
        let members = fields.members(FieldName(.larderCachePolicy))
        guard members.count == 1, let member = members.first else {
            return .refused(detail: "Larder-Cache-Policy must hold one word")
        }
        let word = String(decoding: member.prefix(64), as: UTF8.self)
        if let policy = RequestCachePolicy(named: word) { return .policy(policy) }
        let known = RequestCachePolicy.allCases.map(\.rawValue).joined(separator: ", ")
        let remedy =
            RequestCachePolicy.nearest(to: word).map { "did you mean \($0.rawValue)?" }
            ?? "known are: \(known)"
        return .refused(detail: "Larder-Cache-Policy holds an unknown word; \(remedy)")
    }
}

extension ClientConnection {
    /// What is to be done about a request, and how it uses the cache.
    ///
    /// Notes the session that was chosen, for the exchange at work.
    func route(_ head: RequestHead) -> (RequestRoute, ExchangeOptions) {
        let route = self.routeByHead(head)
        var options = ExchangeOptions(cachePolicy: self.listener.cachePolicy)
        if case .answer = route { return (route, options) }
        options.source = self.source
        var name: String?
        if self.standing.isTrusted {
            switch CachePolicyField.read(head.fields) {
            case .absent: break
            case .policy(let policy): options.cachePolicy = policy
            case .refused(let detail): return (.answer(.badField(detail)), options)
            }
            switch SessionField.read(head.fields) {
            case .absent: break
            case .named(let text): name = text
            case .refused(let detail): return (.answer(.badField(detail)), options)
            }
        }
        switch self.standing.session(named: name, in: self.directory) {
        case .refused(let answer):
            return (.answer(answer), options)
        case .session(let session, let sessionName):
            self.exchange?.session = session
            self.exchange?.sessionName = sessionName
            return (self.route(route, through: session, &options), options)
        }
    }

    /// The head's part of it.
    private func routeByHead(_ head: RequestHead) -> RequestRoute {
        if let request = self.understoodRequest { return .exchange(request) }
        let route = self.shared.router.route(
            head, client: self.standing.identity, own: self.own, access: self.shared.access)
        // Before anything of this client's is put into it.
        if case .exchange(let request) = route, !self.shared.router.addsForwarded {
            self.arrival?.request = request
        }
        return route
    }

    private func route(
        _ route: RequestRoute, through session: any ExchangeSession,
        _ options: inout ExchangeOptions
    ) -> RequestRoute {
        switch route {
        case .exchange(let request):
            let access = self.shared.access
            options.keepsStanding = self.arrival != nil
            options.permits = self.standing.permits(own: self.own, access: access)
            if session.keepsTransfers { options.requester = Requester(self.standing.identity) }
            guard access.judgesAddresses else { return route }
            var request = request
            request.destinations = self.standing.destinations(access: access)
            return .exchange(request)
        case .answer:
            return route
        case .upgrade(let request, _) where session.mustPerform(request):
            return self.route(.exchange(request), through: session, &options)
        case .tunnel, .upgrade:
            // What passes through these comes from the network, whatever it is.
            let policy = options.cachePolicy ?? session.cachePolicy
            return policy == .returnCacheDontLoad ? .answer(.offline) : route
        }
    }
}

extension OwnAnswer {
    fileprivate static func badField(_ detail: String) -> OwnAnswer {
        OwnAnswer(400, error: .httpRequestError, detail: detail)
    }

    static let offline = OwnAnswer(
        504,
        detail: "offline: the request cache policy return-cache-dont-load lets nothing "
            + "through to an origin")
}
