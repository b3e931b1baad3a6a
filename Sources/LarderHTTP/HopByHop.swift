/// Fields that are for one connection only (RFC 9110 §7.6.1).
package enum HopByHop {
    /// Removes what must not travel on: every field that `Connection` names, the connection fields
    /// themselves, and the authentication fields between a client and its proxy (§11.7).
    ///
    /// `Via` stays though `Connection` may name it: a request could else hide that it runs in a
    /// circle.
    ///
    /// - Parameter kept: a field of the connection that this message is about: `Upgrade` in a 101.
    package static func strip(_ fields: inout Fields, except kept: KnownField? = nil) {
        let named = self.namedFields(fields)
        fields.keep { fields, line in
            line.known == kept || self.travels(line, of: fields, named)
        }
    }

    /// The field of the connection that a response is about, and that its client is to see: what a 426
    /// demands (RFC 9110 §15.5.22) may be asked for by way of here.
    package static func subject(of status: StatusCode) -> KnownField? {
        status == .upgradeRequired ? .upgrade : nil
    }

    /// A copy without what must not travel on and without further fields, with room for others to
    /// be added.
    ///
    /// - Parameter kept: see ``strip(_:except:)``.
    package static func stripped(
        _ fields: Fields, spareBytes: Int, spareLines: Int, without others: KnownFieldSet,
        except kept: KnownField? = nil
    ) -> Fields {
        let named = self.namedFields(fields)
        return Fields(fields, spareBytes: spareBytes, spareLines: spareLines) { fields, line in
            !others.contains(line.known)
                && (self.travels(line, of: fields, named) || line.known == kept)
        }
    }

    private static func travels(
        _ line: Fields.Line, of fields: Fields, _ named: NamedFields
    ) -> Bool {
        if self.isConnectionField(line.known) { return false }
        return line.known == .via || named.isEmpty || !named.contain(line, of: fields)
    }

    /// What `Connection` names beside the connection fields, which need no naming.
    package static func namedFields(_ fields: Fields) -> NamedFields {
        if self.namesNothing(fields) { return NamedFields([]) }
        var named: [FieldName] = []
        for element in fields.plainMembers(FieldName(.connection))
        where !self.isKeepAlive(element) && element.allSatisfy(ASCII.isToken) {
            named.append(FieldName(String(decoding: element, as: UTF8.self)))
        }
        return NamedFields(named)
    }

    /// Whether there is no `Connection`, or one that says `keep-alive` alone, as nearly every origin's.
    private static func namesNothing(_ fields: Fields) -> Bool {
        guard fields.has(.connection) else { return true }
        for line in fields.lines where line.known == .connection {
            guard self.isKeepAlive(fields.value(of: line)) else { return false }
        }
        return true
    }

    private static func isKeepAlive(_ option: FieldValue) -> Bool {
        option.span.equalsIgnoringCase("keep-alive")
    }

    /// Whether a field is always for one connection only.
    package static func isConnectionField(_ field: KnownField) -> Bool {
        switch field {
        case .connection, .proxyConnection, .keepAlive, .te, .trailer, .transferEncoding, .upgrade,
            .http2Settings, .proxyAuthenticate, .proxyAuthorization, .proxyAuthenticationInfo:
            true
        default:
            false
        }
    }

    /// The connection options that `Connection` lists, in lower case; what is no token is left out.
    package static func connectionOptions(_ fields: Fields) -> [String] {
        self.options(fields, .connection)
    }

    /// Whether the connection that a request came over may be used again after it (RFC 9112 §9.3).
    ///
    /// A request in HTTP/1.0 ends its connection even where it says `keep-alive`: a proxy must not
    /// believe that option, which an older proxy between may have passed on unread. The obsolete
    /// `Proxy-Connection` is believed when it says `close`.
    package static func keepsAlive(_ fields: Fields, version: HTTPVersion) -> Bool {
        guard version >= .http11 else { return false }
        // Most say nothing.
        guard fields.has(.connection) || fields.has(.proxyConnection) else { return true }
        return !self.connectionOptions(fields).contains("close")
            && !self.options(fields, .proxyConnection).contains("close")
    }

    private static func options(_ fields: Fields, _ name: KnownField) -> [String] {
        guard fields.has(name) else { return [] }
        return fields.plainMembers(FieldName(name)).compactMap { element in
            guard element.allSatisfy(ASCII.isToken) else { return nil }
            return String(decoding: element.map(ASCII.lowercased), as: UTF8.self)
        }
    }
}

/// Trailer sections (RFC 9110 §6.5).
package enum Trailers {
    /// Removes fields that mean nothing or harm when they come after the content (§6.5.1): framing,
    /// routing, request modifiers, authentication, content format, response control.
    ///
    /// - Parameter named: what the `Connection` of the head names: "any header or trailer field(s)"
    ///   that it does are for that connection only (§7.6.1).
    package static func strip(_ fields: inout Fields, named: NamedFields = NamedFields([])) {
        HopByHop.strip(&fields)
        fields.keep { section, line in
            !self.isForbidden(line.known) && (named.isEmpty || !named.contain(line, of: section))
        }
    }

    private static func isForbidden(_ field: KnownField) -> Bool {
        switch field {
        case .contentLength, .host, .cacheControl, .cdnCacheControl, .expect, .maxForwards,
            .pragma, .range, .te, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
            .ifRange, .authorization, .setCookie, .cookie, .wwwAuthenticate, .age, .expires,
            .date, .location, .retryAfter, .vary, .warning, .contentEncoding, .contentType,
            .contentRange, .contentLocation, .noVarySearch, .via, .forwarded, .cacheStatus:
            true
        default:
            HopByHop.isConnectionField(field)
        }
    }
}
