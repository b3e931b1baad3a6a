import LarderCredentials
import LarderHTTP
import LarderPolicy

/// What a session does about credentials for one target.
enum CredentialPlan: Sendable {
    /// Nothing, and the placeholder that the client may have sent in this field goes, too.
    case none(placeholder: FieldName?, SessionAct?)
    /// The request must not go out.
    case refuses(UpstreamFailure)
    /// This line is added, in place of the client's own.
    case injects(name: String, value: Secret)
    /// This credential answers challenges; what the client sent is a placeholder.
    case answers(NamedCredential)
    /// What is kept for a space answers its challenges.
    case answersFromStore
    /// The client has its own: its challenges are its own business.
    case clients
}

/// How a session finds the credential for a target.
struct CredentialRules: Sendable {
    var injections: InjectionRules
    var credentials: SessionCredentials?
    /// Challenges are answered with what is kept for their space.
    var answersChallenges: Bool

    private static let authorization = FieldName(.authorization)

    /// - Parameters:
    ///   - hasOwn: the client sent `Authorization`.
    ///   - hasLeft: a redirection led away from the client's origin: no rule speaks any more, as the
    ///     place is not of its author's choosing.
    ///   - isElsewhere: one led to a server that the client did not ask: what is kept for that is not
    ///     used on the word of another one.
    ///   - isDowngraded: one led from https to http: no credential goes there at all.
    func plan(
        for uri: TargetURI, _ method: Method, hasOwn: Bool, hasLeft: Bool = false,
        isElsewhere: Bool = false, isDowngraded: Bool = false
    ) -> CredentialPlan {
        let rule = hasLeft ? nil : self.injections.first(for: uri, method)
        if method.isEchoed { return self.echoed(rule, hasOwn: hasOwn && !hasLeft) }
        if let rule { return self.injection(rule, uri) }
        if hasOwn, !hasLeft { return .clients }
        guard self.answersChallenges, self.credentials != nil, !isElsewhere, !isDowngraded else {
            return .none(placeholder: nil, nil)
        }
        return .answersFromStore
    }

    /// What is done about a request that its answer shows: no credential goes with it, and a challenge
    /// is not answered (RFC 9110 §9.3.8).
    private func echoed(_ rule: InjectionRule?, hasOwn: Bool) -> CredentialPlan {
        let placeholder = rule.map { rule in
            self.credentials?.named(rule.credential).map { Self.field(of: $0) }
                ?? Self.authorization
        }
        if hasOwn, placeholder != Self.authorization { return .clients }
        return .none(placeholder: placeholder, nil)
    }

    private func injection(_ rule: InjectionRule, _ uri: TargetURI) -> CredentialPlan {
        guard let named = self.credentials?.named(rule.credential) else {
            return Self.refusal(rule, "which this session does not have")
        }
        guard uri.scheme == .https || rule.allowsInsecure else {
            return .none(placeholder: Self.field(of: named), .injectionInsecure)
        }
        switch named.kind {
        case .bearer(let token):
            return Self.line("Authorization", Array("Bearer ".utf8) + token.revealed, rule)
        case .field(let name, let value):
            guard Self.mayInject(FieldName(name)) else {
                return Self.refusal(rule, "whose field cannot be set by a rule")
            }
            return Self.line(name, value.revealed, rule)
        case .password where rule.sendsBasic:
            guard let credential = named.asPassword,
                let value = try? Basic.fieldValue(for: credential)
            else { return Self.refusal(rule, "which Basic cannot express") }
            return Self.line("Authorization", value, rule)
        case .password: return .answers(named)
        }
    }

    private static func field(of named: NamedCredential) -> FieldName {
        guard case .field(let name, _) = named.kind else { return self.authorization }
        return FieldName(name)
    }

    /// Octets that would end a line or be changed on their way make another secret of it.
    private static func line(
        _ name: String, _ value: [UInt8], _ rule: InjectionRule
    ) -> CredentialPlan {
        guard name.utf8.allSatisfy(ASCII.isToken), !name.isEmpty, !value.isEmpty,
            value.allSatisfy(ASCII.isFieldValue), value[...].trimmingOWS().count == value.count
        else { return self.refusal(rule, "which cannot stand in a field") }
        return .injects(name: name, value: Secret(value))
    }

    private static func mayInject(_ name: FieldName) -> Bool {
        switch name.known {
        case .host, .contentLength, .expect, .via, .cookie, .range, .ifRange, .ifMatch,
            .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince:
            false
        default: !HopByHop.isConnectionField(name.known)
        }
    }

    private static func refusal(_ rule: InjectionRule, _ why: String) -> CredentialPlan {
        .refuses(
            UpstreamFailure(
                .proxyConfigurationError, party: .larder,
                detail: "the injection rule \(self.printable(rule.name)) names the credential "
                    + "\(self.printable(rule.credential)), \(why)"))
    }

    /// Names are settings: they are shown, but not their line breaks.
    private static func printable(_ name: String) -> String {
        String(decoding: name.utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self)
    }
}
