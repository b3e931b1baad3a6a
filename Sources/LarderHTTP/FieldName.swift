/// The name of a field: a token, compared without regard to case (RFC 9110 §5.1).
///
/// Names that Larder itself looks at are one byte of identity (`KnownField`), which the parser
/// computes once; every other name is compared as lower-case text.
package struct FieldName: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The name in lower case.
    package let lowercased: String
    package let known: KnownField

    package init(_ name: String) {
        // Not `lowercased()`: it takes the Kelvin sign for a K, which is no token's letter.
        let isLower = name.utf8.allSatisfy { ASCII.lowercased($0) == $0 }
        let lower =
            isLower ? name : String(decoding: name.utf8.map(ASCII.lowercased), as: UTF8.self)
        self.lowercased = lower
        self.known = KnownField(lowercased: lower)
    }

    package init(stringLiteral name: String) {
        self.init(name)
    }

    package init(_ known: KnownField) {
        self.lowercased = known.lowercased
        self.known = known
    }

    package static func == (a: FieldName, b: FieldName) -> Bool {
        a.known == b.known && (a.known != .other || a.lowercased == b.lowercased)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.lowercased)
    }
}

/// The fields that Larder reads or writes itself, as one byte.
///
/// `other` stands for every name not listed.
package enum KnownField: UInt8, Sendable, CaseIterable {
    case other = 0
    case accept, acceptCharset, acceptEncoding, acceptLanguage, acceptRanges, age, authorization
    case cacheControl, cacheGroupInvalidation, cacheGroups, cacheStatus, cdnCacheControl, connection
    case contentEncoding, contentLanguage, contentLength, contentLocation, contentRange, contentType
    case cookie, date, etag, expect, expires, forwarded, from, host, http2Settings, ifMatch
    case ifModifiedSince, ifNoneMatch, ifRange, ifUnmodifiedSince, keepAlive, larderCachePolicy
    case larderSession, lastModified, location, maxForwards, noVarySearch, pragma, proxyAuthenticate
    case proxyAuthenticationInfo, proxyAuthorization, proxyConnection, proxyStatus, range, referer
    case retryAfter, server, setCookie, te, trailer, transferEncoding, upgrade, userAgent, vary, via
    case warning, wwwAuthenticate

    /// The name in lower case; empty for `other`.
    package var lowercased: String {
        switch self {
        case .other: ""
        case .accept: "accept"
        case .acceptCharset: "accept-charset"
        case .acceptEncoding: "accept-encoding"
        case .acceptLanguage: "accept-language"
        case .acceptRanges: "accept-ranges"
        case .age: "age"
        case .authorization: "authorization"
        case .cacheControl: "cache-control"
        case .cacheGroupInvalidation: "cache-group-invalidation"
        case .cacheGroups: "cache-groups"
        case .cacheStatus: "cache-status"
        case .cdnCacheControl: "cdn-cache-control"
        case .connection: "connection"
        case .contentEncoding: "content-encoding"
        case .contentLanguage: "content-language"
        case .contentLength: "content-length"
        case .contentLocation: "content-location"
        case .contentRange: "content-range"
        case .contentType: "content-type"
        case .cookie: "cookie"
        case .date: "date"
        case .etag: "etag"
        case .expect: "expect"
        case .expires: "expires"
        case .forwarded: "forwarded"
        case .from: "from"
        case .host: "host"
        case .http2Settings: "http2-settings"
        case .ifMatch: "if-match"
        case .ifModifiedSince: "if-modified-since"
        case .ifNoneMatch: "if-none-match"
        case .ifRange: "if-range"
        case .ifUnmodifiedSince: "if-unmodified-since"
        case .keepAlive: "keep-alive"
        case .larderCachePolicy: "larder-cache-policy"
        case .larderSession: "larder-session"
        case .lastModified: "last-modified"
        case .location: "location"
        case .maxForwards: "max-forwards"
        case .noVarySearch: "no-vary-search"
        case .pragma: "pragma"
        case .proxyAuthenticate: "proxy-authenticate"
        case .proxyAuthenticationInfo: "proxy-authentication-info"
        case .proxyAuthorization: "proxy-authorization"
        case .proxyConnection: "proxy-connection"
        case .proxyStatus: "proxy-status"
        case .range: "range"
        case .referer: "referer"
        case .retryAfter: "retry-after"
        case .server: "server"
        case .setCookie: "set-cookie"
        case .te: "te"
        case .trailer: "trailer"
        case .transferEncoding: "transfer-encoding"
        case .upgrade: "upgrade"
        case .userAgent: "user-agent"
        case .vary: "vary"
        case .via: "via"
        case .warning: "warning"
        case .wwwAuthenticate: "www-authenticate"
        }
    }

    /// The known field of this lower-case name, or `other`.
    package init(lowercased name: String) {
        self.init(matching: name.utf8.span)
    }

    /// The known field whose name these bytes spell in any case, or `other`.
    package init(matching name: Span<UInt8>) {
        self = KnownNames.all.field(named: name)
    }
}
