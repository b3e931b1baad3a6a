package import LarderHTTP
package import LarderPolicy
import LarderSession

/// What one listener grants its clients, beside the session that answers them.
package struct ListenerOptions: Sendable {
    /// Takes the place of the session's own policy; nil: that one.
    package var cachePolicy: RequestCachePolicy?
    /// Whether a client may say in `Larder-Cache-Policy` how a request uses the cache.
    ///
    /// Asked once a connection; must not block.
    package var trusts: @Sendable (ClientAddress) -> Bool

    package init(
        cachePolicy: RequestCachePolicy? = nil,
        trusts: @escaping @Sendable (ClientAddress) -> Bool = { _ in false }
    ) {
        self.cachePolicy = cachePolicy
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
        let name = FieldName(.larderCachePolicy)
        guard fields.contains(name) else { return .absent }
        let members = fields.members(name)
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
    func route(_ head: RequestHead) -> (RequestRoute, ExchangeOptions) {
        let route = self.shared.router.route(
            head, client: self.client, own: self.own, access: self.shared.access)
        var options = ExchangeOptions(cachePolicy: self.listener.cachePolicy)
        if case .answer = route { return (route, options) }
        if self.isTrusted {
            switch CachePolicyField.read(head.fields) {
            case .absent: break
            case .policy(let policy): options.cachePolicy = policy
            case .refused(let detail):
                return (
                    .answer(OwnAnswer(400, error: "http_request_error", detail: detail)), options
                )
            }
        }
        switch route {
        case .exchange, .answer: return (route, options)
        case .tunnel, .upgrade:
            // What passes through these comes from the network, whatever it is.
            let policy = options.cachePolicy ?? self.session.cachePolicy
            return (policy == .returnCacheDontLoad ? .answer(.offline) : route, options)
        }
    }
}

extension OwnAnswer {
    static let offline = OwnAnswer(
        504,
        detail: "offline: the request cache policy return-cache-dont-load lets nothing "
            + "through to an origin")
}
