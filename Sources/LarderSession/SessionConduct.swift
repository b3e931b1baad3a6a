import LarderCredentials
import LarderHTTP
import LarderPolicy

/// What a session adds to requests by itself, and what it does about their answers.
///
/// A class, since each exchange takes it out of the session's lock: that is one reference to count.
final class SessionConduct: Sendable {
    let additionalFields: Fields
    let cookies: (any HopCookies)?
    let rules: CredentialRules
    let followsRedirects: Bool
    /// By which it is read what redirections say of storing; not resolved for a URI.
    let policy: PolicyConfiguration
    let acts: ActCounters
    /// What the client itself sends in secret is sealed, too.
    private let sealsClients: Bool
    let sealer: FieldSealer

    /// nil where the session only passes requests on.
    init?(
        _ configuration: SessionConfiguration, partition: String, cookies: (any HopCookies)?,
        credentials: SessionCredentials?, digest: (@Sendable ([UInt8]) -> [UInt8])?,
        acts: ActCounters
    ) {
        self.additionalFields = Self.permitted(configuration.additionalFields)
        self.cookies = cookies
        self.rules = CredentialRules(
            injections: configuration.injections, credentials: credentials,
            answersChallenges: configuration.answersChallenges)
        self.followsRedirects = configuration.followsRedirects
        self.policy = configuration.policy
        self.acts = acts
        self.sealsClients = configuration.role == .userAgent
        self.sealer = FieldSealer(partition: partition, digest: digest)
        if self.additionalFields.isEmpty, !self.takesPart { return nil }
    }

    /// Whether more than one request may come of one, or a secret is added: whether there is a chain.
    var takesPart: Bool {
        self.cookies != nil || self.rules.credentials != nil || !self.rules.injections.isEmpty
            || self.followsRedirects || self.sealsClients
    }

    /// Whether all that it could add or answer with is a credential, and it has none.
    private var isIdle: Bool {
        self.cookies == nil && !self.followsRedirects && self.rules.injections.isEmpty
            && self.rules.credentials?.isEmpty != false
    }

    /// Whether all that it could add are credentials of the session's own: with none of them, a
    /// request is passed on as it came.
    var isOnlyCredentials: Bool {
        self.cookies == nil && !self.followsRedirects && self.rules.injections.isEmpty
            && !self.sealsClients && self.additionalFields.isEmpty
    }

    /// Without those that a session must not set (`httpAdditionalHeaders`), and those of a connection.
    private static func permitted(_ fields: Fields) -> Fields {
        var fields = fields
        fields.keep { _, line in
            switch line.known {
            case .authorization, .host, .wwwAuthenticate, .contentLength, .expect, .via: false
            default: !HopByHop.isConnectionField(line.known)
            }
        }
        return fields
    }

    // MARK: Preparing

    /// The request as everybody may see it, with what the session adds to it.
    ///
    /// - Parameter isSent: false for an explanation, which uses nothing up.
    func prepared(
        _ request: Request, permits: (@Sendable (Method, TargetURI) -> Bool)?, isSent: Bool = true,
        at now: Timestamp
    ) -> Request {
        let seals =
            self.takesPart && request.uri.scheme != .ftp
            && (!self.isIdle || (self.sealsClients && FieldSealer.hasSecret(request.fields)))
        guard seals || !self.additionalFields.isEmpty else { return request }
        // The fields are changed outside of the request, which is made anew once.
        var fields = request.fields
        // "A client MUST NOT generate fields in a TRACE request containing sensitive data that might
        // be disclosed by the response" (RFC 9110 §9.3.8): settings may be secrets, too. What a
        // program gives its own session is the program's.
        if self.sealsClients || !request.method.isEchoed { self.addFields(to: &fields) }
        guard seals else { return request.with(fields) }
        var sealing = Sealing(client: fields)
        self.sealCookies(of: request, in: &fields, &sealing, isSent: isSent, at: now)
        self.sealCredential(of: request, in: &fields, &sealing)
        if self.sealsClients, FieldSealer.hasSecret(fields) {
            self.sealClients(in: &fields, &sealing)
        }
        let sealed = SealedFields(
            sealing.lines, computed: sealing.computed, client: sealing.client,
            refusal: sealing.refusal, permits: permits ?? { _, _ in false })
        return request.with(
            fields, sealed: sealed, isAuthorized: request.isAuthorized || sealing.isAuthorized)
    }

    /// What a request has itself stays as it is.
    private func addFields(to fields: inout Fields) {
        let own = fields
        let added = self.additionalFields
        for line in added.lines where !own.names(line, of: added) {
            fields.append(line, of: added)
        }
    }

    private struct Sealing {
        var lines: [(name: String, value: [UInt8])] = []
        var computed: [FieldName] = []
        let client: Fields
        var refusal: UpstreamFailure?
        /// A credential of the session's is sent.
        var isAuthorized = false

        init(client: Fields) {
            self.client = client
        }
    }

    // An answer to a request with the jar's cookies is stored by the same rules as any other, also
    // with a heuristic lifetime: RFC 9111 §4.2.2 makes no exception for them, and §7.3 leaves it
    // to origins to say what is for one user alone. Those who share the jar are one user to the
    // origin; where they must not be, a session is split by principal, and so is its cache.
    private func sealCookies(
        of request: Request, in sealed: inout Fields, _ sealing: inout Sealing, isSent: Bool,
        at now: Timestamp
    ) {
        guard let cookies = self.cookies else { return }
        let name = FieldName(.cookie)
        if request.method.isEchoed {
            // The jar's stay at home; what a program sends itself is sealed like everywhere.
            guard !self.sealsClients else { return }
            sealed.remove(name)
            return sealing.computed.append(name)
        }
        var fields = sealed
        let hop = Hop(
            method: request.method, uri: request.uri, client: sealing.client,
            cookies: request.cookies)
        if isSent {
            cookies.addCookies(to: &fields, for: hop, at: now)
        } else {
            cookies.showCookies(in: &fields, for: hop, at: now)
        }
        let values = fields.values(name).map { Array($0) }
        sealed.remove(name)
        // The name is sealed also where there is none, so that a later one finds its place.
        guard !values.isEmpty else { return sealing.computed.append(name) }
        sealing.lines += values.map { ("Cookie", $0) }
        sealed.append(
            "Cookie", self.sealer.value("cookie", Array(values.joined(separator: [0]))))
    }

    /// Seals what the client sends itself, where nothing of the session's has taken its place.
    private func sealClients(in fields: inout Fields, _ sealing: inout Sealing) {
        let sealed = sealing.lines.map { FieldName($0.name) } + sealing.computed
        sealing.lines += self.sealer.sealClients(&fields, besides: sealed)
    }

    private func sealCredential(
        of request: Request, in fields: inout Fields, _ sealing: inout Sealing
    ) {
        let authorization = FieldName(.authorization)
        let plan = self.rules.plan(
            for: request.uri, request.method, hasOwn: fields.contains(authorization))
        switch plan {
        case .clients: break
        case .none(let placeholder, _):
            if let placeholder { fields.remove(placeholder) }
        case .refuses(let failure): sealing.refusal = failure
        case .injects(let name, let value):
            let field = FieldName(name)
            fields.remove(field)
            fields.append(name, self.sealer.value(field.lowercased, value.revealed))
            sealing.isAuthorized = true
            sealing.lines.append((name, value.revealed))
        case .answers, .answersFromStore:
            fields.remove(authorization)
            sealing.computed.append(authorization)
            guard let credential = self.preemption(plan, request) else { return }
            fields.append(
                "Authorization",
                self.sealer.value("authorization", SentCredential.identity(of: credential)))
            sealing.isAuthorized = true
        }
    }

    private func preemption(_ plan: CredentialPlan, _ request: Request) -> Credential? {
        var asked = ChallengedRequest(method: request.method, uri: request.uri)
        if case .answers(let named) = plan { asked.named = named }
        return self.rules.credentials?.preemption(for: asked)
    }

    /// What would be done by itself about the first request to an origin; uses nothing up.
    func foreseen(for request: Request) -> [SessionAct] {
        let plan = self.rules.plan(
            for: request.uri, request.method,
            hasOwn: request.fields.contains(FieldName(.authorization)))
        return switch plan {
        case .clients: []
        case .none(_, let act): act.map { [$0] } ?? []
        case .refuses: [.credentialMissing]
        case .injects: [.credentialInjected]
        case .answers, .answersFromStore:
            self.preemption(plan, request) == nil ? [] : [.credentialPreempted]
        }
    }
}
