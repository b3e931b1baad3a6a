package import LarderHTTP

extension StoredHead {
    /// What is stored of a response's head: its end-to-end fields, byte for byte (RFC 9111 §3.1).
    ///
    /// Left out are the fields of the connection and those it names, those of proxy authentication,
    /// the obsolete `Warning`, and in a shared cache those that `private="…"` names. A missing `Date`
    /// is added (RFC 9110 §6.6.1). A file from ftp gets the lifetime that the settings give it; what
    /// was asked for with a login in its URI stays in memory, as that is in the key, too.
    ///
    /// - Parameter directives: those of the response, where they were read.
    package init(
        storing response: ResponseHead, to request: Request, requestTime: Timestamp,
        responseTime: Timestamp, configuration: PolicyConfiguration = PolicyConfiguration(),
        directives: ResponseDirectives? = nil
    ) {
        let told =
            directives ?? ResponseDirectives(response.fields, configuration: configuration)
        var fields = StoredFields.endToEnd(
            response.fields, told.control, configuration: configuration)
        if !fields.has(.date) { fields.append("Date", HTTPDate.bytes(responseTime)) }
        var own = told.hold(for: fields, of: response.fields, configuration) ? told : nil
        if request.uri.scheme == .ftp, configuration.ftpLifetime > .zero {
            own = nil
            fields.set("Cache-Control", "max-age=\(configuration.ftpLifetime.inSeconds)")
        }
        self.init(
            method: request.method == .post ? .get : request.method, status: response.status,
            reason: response.reason, fields: fields,
            varyingFields: Variance.fields(selectedBy: response, from: request),
            requestTime: requestTime, responseTime: responseTime,
            answersCredentials: request.bearsCredentials, directives: own)
        if request.uri.userInfo != nil { self.staysInMemory = true }
    }
}

/// Which fields of a response are stored.
enum StoredFields {
    /// The length of a `Date` that is added.
    private static let dateLength = 37

    /// The fields that may be stored, in their order, in a buffer that holds nothing else.
    ///
    /// - Parameter control: the directives that govern.
    static func endToEnd(
        _ fields: Fields, _ control: CacheControl, configuration: PolicyConfiguration
    ) -> Fields {
        let named = HopByHop.namedFields(fields)
        let withholdsCookies = configuration.ignored.contains(.setCookie)
        let withheld = configuration.kind == .shared ? control.privateFields : []
        return Fields(keeping: fields, spareBytes: Self.dateLength) { line in
            if self.isExcluded(line) { return false }
            if named.contain(line, of: fields) { return false }
            if withheld.contains(where: { fields.matches(line, $0) }) { return false }
            return !withholdsCookies || line.known != .setCookie
        }
    }

    /// What is withheld of a head that is stored already: what `private="…"` names, in a shared cache
    /// (RFC 9111 §5.2.2.7), and cookies where settings keep them out.
    static func withheld(_ fields: Fields, configuration: PolicyConfiguration) -> [FieldName] {
        var names: [FieldName] = []
        if configuration.kind == .shared {
            names = ResponseDirectives(fields, configuration: configuration).control.privateFields
        }
        if configuration.ignored.contains(.setCookie)
            || Storability.keepsCookiesOut(fields, configuration)
        {
            names.append(FieldName(.setCookie))
        }
        return names
    }

    /// Takes that out of a head that was updated.
    ///
    /// What the stored content cannot be understood without stays, where the update did not bring it:
    /// whoever withholds it afterwards takes nothing back.
    ///
    /// - Parameter updates: the fields that the update brought.
    static func removeWithheld(
        _ fields: inout Fields, updates: Fields, configuration: PolicyConfiguration
    ) {
        let names = self.withheld(fields, configuration: configuration)
        guard !names.isEmpty else { return }
        fields.keep { section, line in
            line.known == .vary || line.known == .cacheControl
                || (Storability.isGoverning(line.known) && !updates.has(line.known))
                || !names.contains { section.matches(line, $0) }
        }
    }

    /// Fields that are never stored, whatever `Connection` says (RFC 9111 §3.1, RFC 9110 §7.6.1);
    /// `Warning` is obsolete (RFC 9111 §5.5).
    static func isExcluded(_ line: Fields.Line) -> Bool {
        HopByHop.isConnectionField(line.known) || line.known == .warning
    }
}
