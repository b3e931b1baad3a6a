package import LarderHTTP
import NIOCore

/// What is to be done about a request: the head's part of the decision.
package enum RequestRoute: Sendable {
    /// Hand it to the session.
    case exchange(Request)
    /// Connect to there, and be a tunnel (RFC 9110 §9.3.6).
    case tunnel(host: String, port: UInt16)
    /// Ask the origin, over a connection of its own, to switch to one of these protocols.
    case upgrade(Request, protocols: [String])
    case answer(OwnAnswer)
}

/// Decides by a request's head alone what is to be done, and makes the request that travels on.
///
/// Pure: no connection is looked at and nothing is looked up, except that `access` may take a lock.
///
/// A reference: of a value, each request made a copy.
package final class RequestRouter: Sendable {
    let pseudonym: String
    /// What it adds to `Via` of a request in HTTP/1.1.
    private let via: Fields
    let connectPorts: Set<UInt16>?
    let addsForwarded: Bool
    let maximumRequestBody: UInt64?

    package init(_ configuration: ProxyConfiguration) {
        self.pseudonym = configuration.pseudonym
        var via = Fields()
        Via.append(to: &via, version: .http11, pseudonym: configuration.pseudonym)
        self.via = via
        self.connectPorts = configuration.connectPorts
        self.addsForwarded = configuration.addsForwarded
        self.maximumRequestBody = configuration.maximumRequestBody?.bytes
    }

    package func route(
        _ head: RequestHead, client: ClientIdentity, own: OwnAuthorities, access: any AccessPolicy
    ) -> RequestRoute {
        let present = KnownFieldSet(head.fields)
        if let refusal = self.refusal(of: head, present) { return .answer(refusal) }
        switch head.target {
        case .asterisk:
            return .answer(Self.options)
        case .origin:
            return .answer(Self.ownHost(head, own: own))
        case .authority(let host, let port):
            return self.tunnel(head, host, port, client: client, own: own, access: access)
        case .absolute(let uri):
            if own.contains(host: uri.host, port: uri.port) {
                return .answer(Self.ownPage(head))
            }
            let query = AccessQuery(
                client: client.address, user: client.user, method: head.method, host: uri.host,
                port: uri.port)
            if case .denied(let rule) = access.judge(query) {
                return .answer(Self.denied(by: rule, port: uri.port))
            }
            return self.forward(head, to: uri, client: client.address, present)
        }
    }

    // MARK: Refusals

    private func refusal(of head: RequestHead, _ present: KnownFieldSet) -> OwnAnswer? {
        // What goes no further closes no circle: it is answered here, and says which way it came.
        if present.contains(.via), Via.contains(pseudonym: self.pseudonym, in: head.fields),
            MaxForwards.judge(method: head.method, fields: head.fields) != .respond
        {
            return OwnAnswer(
                508, error: .proxyLoopDetected, detail: "the request has passed here before")
        }
        if present.contains(.expect), Expect(head.fields, version: head.version) == .unknown {
            return OwnAnswer(
                417, error: .httpRequestError, detail: "an expectation other than 100-continue")
        }
        if case .known(let length) = head.bodyLength, let most = self.maximumRequestBody,
            length > most
        {
            return OwnAnswer.contentTooLarge
        }
        // Without a length an HTTP/1.0 request's content would end with the connection, and with it
        // the way for an answer (RFC 1945 §7.2.2).
        if head.version < .http11, head.bodyLength == .none,
            head.method == .post || head.method == .put
        {
            return OwnAnswer(
                411, error: .httpRequestError, detail: "HTTP/1.0 content needs Content-Length")
        }
        return nil
    }

    /// What a client is told of a verdict.
    static func denied(by rule: String, port: UInt16) -> OwnAnswer {
        var answer = OwnAnswer(
            403, error: .httpRequestDenied, detail: "the access rules do not allow this request")
        answer.rule = rule
        switch rule {
        case AccessVerdict.connectPorts:
            answer.detail = "no tunnels to port \(port): see connect-ports"
        case AccessVerdict.ownAddresses: answer.detail = Self.ownAddresses
        default: break
        }
        return answer
    }

    static let ownAddresses =
        "clients of other machines reach no address of the proxy's own machine unless an access rule "
        + "names destinations"

    // MARK: The proxy itself

    private static let allowedMethods = "GET, HEAD, OPTIONS, TRACE"

    private static let options = OwnAnswer(
        200, fields: ["Allow": RequestRouter.allowedMethods], content: .nothing)

    /// A request in origin form is for whom `Host` names: us, or an origin that we are not.
    private static func ownHost(_ head: RequestHead, own: OwnAuthorities) -> OwnAnswer {
        let value = head.fields.first(FieldName(.host)) ?? []
        guard !value.isEmpty else { return self.ownPage(head) }
        if let authority = try? Authority(parsing: value.span),
            own.contains(host: authority.host, port: authority.port ?? 80)
        {
            return self.ownPage(head)
        }
        return OwnAnswer(
            421, error: .httpRequestError,
            detail: "this is a proxy: it wants the whole URI in the request line")
    }

    private static func ownPage(_ head: RequestHead) -> OwnAnswer {
        switch head.method {
        case .options: self.options
        case .trace: self.trace(head)
        case .get, .head:
            OwnAnswer(404, detail: "this is a proxy: it has no pages of its own")
        default:
            OwnAnswer(
                405, error: .httpRequestError, detail: "the proxy itself takes no such request",
                fields: ["Allow": self.allowedMethods])
        }
    }

    // MARK: Tunnels

    /// The way that a request has come, ours included, for a parent that is asked for a tunnel.
    func via(of head: RequestHead) -> Fields {
        var fields = head.fields
        fields.keep { _, line in line.known == .via }
        Via.append(to: &fields, version: head.version, pseudonym: self.pseudonym)
        return fields
    }

    private func tunnel(
        _ head: RequestHead, _ host: String, _ port: UInt16, client: ClientIdentity,
        own: OwnAuthorities, access: any AccessPolicy
    ) -> RequestRoute {
        // A CONNECT has no content; what claims to be some would be taken for tunnelled bytes.
        guard head.bodyLength == .none || head.bodyLength == .known(0) else {
            return .answer(
                OwnAnswer(400, error: .httpRequestError, detail: "CONNECT has no content"))
        }
        guard !own.contains(host: host, port: port) else {
            return .answer(OwnAnswer.tunnelLoop)
        }
        guard self.connectPorts?.contains(port) ?? true else {
            return .answer(Self.denied(by: AccessVerdict.connectPorts, port: port))
        }
        let query = AccessQuery(
            client: client.address, user: client.user, method: .connect, host: host, port: port)
        if case .denied(let rule) = access.judge(query) {
            return .answer(Self.denied(by: rule, port: port))
        }
        return .tunnel(host: host, port: port)
    }

    // MARK: What travels on

    private func forward(
        _ head: RequestHead, to uri: TargetURI, client: ClientAddress, _ present: KnownFieldSet
    ) -> RequestRoute {
        let forwards =
            present.contains(.maxForwards)
            ? MaxForwards.judge(method: head.method, fields: head.fields) : .unlimited
        if forwards == .respond {
            return .answer(head.method == .trace ? Self.trace(head) : Self.options)
        }
        // Once, with room for what is added: changed step by step the lines were copied three times.
        var fields = HopByHop.stripped(
            head.fields, spareBytes: Self.spareBytes, spareLines: Self.spareLines,
            without: Self.ownFields)
        if case .forward(let remaining) = forwards {
            fields.set("Max-Forwards", String(remaining))
        }
        if head.version == .http11 {
            fields.append(contentsOf: self.via)
        } else {
            Via.append(to: &fields, version: head.version, pseudonym: self.pseudonym)
        }
        if self.addsForwarded { self.forwarded(client).append(to: &fields) }
        let request = Request(
            method: head.method, uri: uri, fields: fields, bodyLength: head.bodyLength,
            expectsContinue: present.contains(.expect)
                && Expect(head.fields, version: head.version) == .continue)
        if present.contains(.upgrade), let protocols = Self.upgrade(head, uri) {
            return .upgrade(request, protocols: protocols)
        }
        return .exchange(request)
    }

    /// What the proxy itself reads, or says of the request in another way.
    private static let ownFields: KnownFieldSet = [
        .host, .contentLength, .expect, .larderCachePolicy, .larderSession,
    ]
    /// Room for `Via`, and for `Forwarded` or `Max-Forwards`.
    private static let spareBytes = 128
    private static let spareLines = 3

    /// The protocols to ask the origin for; nil where the request goes the ordinary way.
    ///
    /// `h2c` is taken out, in whatever version and as drafts called it: HTTP/2 is not tunnelled but
    /// spoken, and smuggles requests past a proxy that lets it through (RFC 9113 removed it).
    /// HTTP/1.0 cannot upgrade (RFC 9110 §7.8).
    ///
    /// `TLS` (RFC 2817) is, too: programs offer it with every request, whoever they ask (Apache
    /// HttpClient does of its own accord), and would never have anything from the cache.
    ///
    /// Whoever is asked may ignore the field, and so do we where the request has something to say to
    /// the cache, which an upgrade goes past: it changes what is stored (RFC 9111 §4.4), or wants
    /// nothing but that.
    private static func upgrade(_ head: RequestHead, _ uri: TargetURI) -> [String]? {
        guard uri.scheme == .http, head.method == .get,
            head.bodyLength == .none || head.bodyLength == .known(0),
            !CacheControl(request: head.fields).onlyIfCached
        else { return nil }
        let offered = Upgrade.protocols(in: head.fields, version: head.version)
        let kept = offered.filter { !Self.isIgnored($0) }
        return kept.isEmpty ? nil : kept
    }

    /// Whether a protocol, `name ["/" version]`, is HTTP/2 without TLS, or TLS.
    private static func isIgnored(_ offered: String) -> Bool {
        let name = offered.prefix { $0 != "/" }.lowercased()
        return name == "tls" || name == "h2c" || name.hasPrefix("h2c-")
    }

    /// The client's address, never its name.
    private func forwarded(_ client: ClientAddress) -> ForwardedElement {
        let node: ForwardedElement.Node =
            switch client {
            case .ip(_, let text, _): .address(text, port: nil)
            case .unix: .unknown
            }
        return ForwardedElement(client: node, by: .obfuscated(self.pseudonym), proto: .http)
    }

    /// The request as received, without what a TRACE must not show (RFC 9110 §9.3.8).
    private static func trace(_ head: RequestHead) -> OwnAnswer {
        var fields = head.fields
        fields.keep { _, line in
            switch line.known {
            case .authorization, .proxyAuthorization, .cookie: false
            default: true
            }
        }
        let target =
            switch head.target {
            case .absolute(let uri): uri.description
            case .origin(let path): path
            case .authority, .asterisk: "*"
            }
        var message = ByteBuffer()
        message.writeString("\(head.method.rawValue) \(target) HTTP/\(head.version.viaName)\r\n")
        message.writeBytes(fields.serialized())
        message.writeStaticString("\r\n")
        return OwnAnswer(200, fields: ["Cache-Control": "no-store"], content: .message(message))
    }
}

extension OwnAnswer {
    static let contentTooLarge = OwnAnswer(
        413, error: .httpRequestError,
        detail: "the content is larger than is taken here (the proxy's setting limits.request-body)"
    )
    static let tunnelLoop = OwnAnswer(
        508, error: .proxyLoopDetected, detail: "the tunnel would end where it began")
    static let headTimeout = OwnAnswer(
        408, error: .httpRequestError,
        detail: "the request took too long to arrive (the proxy's settings timeouts.head and "
            + "timeouts.stall)")
    static let contentIncomplete = OwnAnswer(
        400, error: .httpRequestError, detail: "the content ended before it was whole")
}
