package import LarderHTTP

extension Storability {
    /// What allows a response to be stored that `judge` has found storable: the last requirement of
    /// RFC 9111 §3, by the rule that speaks most directly.
    ///
    /// - Parameter directives: those of the response, where they were read.
    package static func grounds(
        request: Request, response: ResponseHead, configuration: PolicyConfiguration,
        directives: ResponseDirectives? = nil
    ) -> PolicyReason {
        if request.method == .post { return .postForGet }
        let directives =
            directives ?? ResponseDirectives(response.fields, configuration: configuration)
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

    /// The directive that forbids to keep a response with these fields; nil where none does.
    ///
    /// For what a validation brings: a 304 that says `no-store` updates nothing, as nothing of it may
    /// be stored, and takes leave from what it selects (RFC 9111 §5.2.2.5, §5.2.2.7).
    package static func forbidsKeeping(
        _ fields: Fields, configuration: PolicyConfiguration
    ) -> PolicyReason? {
        let control = ResponseDirectives(fields, configuration: configuration).control
        if control.noStore, !control.mustUnderstand { return .responseNoStore }
        return configuration.kind == .shared && control.isPrivate ? .responsePrivate : nil
    }

    /// Whether the answer to a request may update what is stored for others: in a shared cache not
    /// what one client got for its credentials, unless a directive allows that (RFC 9111 §3.5).
    ///
    /// - Parameter updated: the fields as they would be.
    package static func mayUpdate(
        _ request: Request, to updated: Fields, configuration: PolicyConfiguration
    ) -> Bool {
        guard configuration.kind == .shared, request.bearsCredentials,
            !configuration.ignored.contains(.authorization)
        else { return true }
        return ResponseDirectives(updated, configuration: configuration).control
            .allowsSharingWithCredentials
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
