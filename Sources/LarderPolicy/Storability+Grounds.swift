package import LarderHTTP

extension Storability {
    /// What allows a response to be stored that `judge` has found storable: the last requirement of
    /// RFC 9111 §3, by the rule that speaks most directly.
    package static func grounds(
        request: Request, response: ResponseHead, configuration: PolicyConfiguration
    ) -> PolicyReason {
        if request.method == .post { return .postForGet }
        let directives = ResponseDirectives(response.fields, configuration: configuration)
        let control = directives.control
        if self.hasExplicitFreshness(response, directives, configuration) {
            return .explicitFreshness
        }
        if control.isPublic { return .responsePublic }
        if configuration.kind == .private, control.isPrivate || !control.privateFields.isEmpty {
            return .privateHere
        }
        return .statusCacheable
    }

    /// Whether the fields that govern give a lifetime that counts in this cache (§4.2.1).
    static func hasExplicitFreshness(
        _ response: ResponseHead, _ directives: ResponseDirectives,
        _ configuration: PolicyConfiguration
    ) -> Bool {
        if directives.control.maxAge != nil { return true }
        if configuration.kind == .shared, directives.control.sMaxage != nil { return true }
        return directives.targetedField == nil && response.fields.has(.expires)
    }
}
