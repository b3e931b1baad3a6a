import Foundation
import LarderCookies
import LarderEngine
import LarderHTTP

extension HTTPCookie {
    /// Reads the fields of a response; what `cookies(withResponseHeaderFields:for:)` gives.
    static func read(_ headerFields: [String: String], for url: URL) -> [HTTPCookie] {
        guard let target = CookieHost.target(url) else { return [] }
        let now = Date()
        return headerFields.keys.filter { $0.lowercased() == "set-cookie" }.sorted()
            .flatMap { SetCookie.lines(joined: Self.unfolded(headerFields[$0] ?? "")) }
            .compactMap { line in
                CookieFacts(line, from: target, now: now).map { facts in
                    var facts = facts
                    facts.originURL = url
                    return HTTPCookie(facts)
                }
            }
    }

    /// Line breaks between two cookies are white space; elsewhere they stay, and are refused.
    private static func unfolded(_ text: String) -> FieldValue {
        var bytes = Array(text.utf8)
        var isBehindComma = true
        for index in bytes.indices {
            let byte = bytes[index]
            let isBreak = byte == ASCII.cr || byte == ASCII.lf
            if isBreak, isBehindComma { bytes[index] = ASCII.space }
            isBehindComma = byte == ASCII.comma || (isBehindComma && (isBreak || ASCII.isOWS(byte)))
        }
        while let last = bytes.last, last == ASCII.cr || last == ASCII.lf { bytes.removeLast() }
        return bytes[...]
    }
}

extension CookieFacts {
    /// Reads one line; nil where it is no cookie of that origin's.
    ///
    /// - Parameter isForTask: by RFC 6265bis alone: a cookie may have no name, and flags any value.
    init?(_ line: FieldValue, from target: TargetURI, now: Date, isForTask: Bool = false) {
        guard let read = try? SetCookie(parsing: line), isForTask || !read.name.isEmpty else {
            return nil
        }
        let suffixes = PublicSuffixList.system
        guard let domain = Self.domain(read.domain ?? "", target.host, suffixes) else { return nil }
        let path =
            switch read.path {
            case .explicit(let path): path
            case .absent, .defaulted: CookiePath.default(target.path)
            }
        self.init(
            octets: (read.name, read.value), domain: domain, path: path, created: now)
        self.sameSite = read.sameSite
        self.isSecure = isForTask && read.isSecure
        self.isHTTPOnly = isForTask && read.isHTTPOnly
        var discards = false
        for (name, value) in SetCookie.attributes(of: line) {
            self.take(name, value, &discards)
        }
        if self.version < 1, let ports = self.ports { self.ports = Array(ports.prefix(1)) }
        if discards {
            self.deniesSession = false
        } else {
            self.expires =
                read.maxAge.map { now.addingTimeInterval(max(0, Double($0.inSeconds))) }
                ?? read.expires.map(CookieMoment.date)
        }
        // The flag that browsers see: what makes a cookie secure for them must not come over http.
        if read.isSecure, target.scheme != .https { return nil }
        let cookie = self.cookie(creation: CookieMoment.timestamp(now), suffixes: suffixes)
        if CookieRules.broken(by: cookie, suffixes) != nil { return nil }
        if read.path == .absent, cookie.name.starts(withName: "__host-") { return nil }
    }

    /// Takes what is not in the jar's model (RFC 2965), and the flags, which must have no value.
    private mutating func take(
        _ name: FieldValue, _ value: FieldValue?, _ discards: inout Bool
    ) {
        guard let value else {
            if name.spells("secure") { self.isSecure = true }
            if name.spells("httponly") { self.isHTTPOnly = true }
            if name.spells("discard") { discards = true }
            return
        }
        let text = String(decoding: value, as: UTF8.self)
        if name.spells("comment") {
            self.comment = text
        } else if name.spells("commenturl") {
            self.commentURL = URL(string: text)
        } else if name.spells("discard") {
            self.deniesSession = true
        } else if name.spells("version") {
            self.version = text == "1" ? 1 : 0
        } else if name.spells("port") {
            self.ports = Self.ports(text.filter { $0 != "\"" }, version: 1)
        }
    }

    /// The domain as the API has it; nil where it is refused.
    private static func domain(
        _ attribute: String, _ host: String, _ suffixes: any PublicSuffixes
    ) -> String? {
        if attribute.isEmpty { return CookieHost.text(host) }
        guard attribute.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if CookieDomain.isAddress(attribute) { return CookieHost.text(attribute) }
        if CookieDomain.isPublicSuffix(attribute, suffixes) {
            return attribute == host ? host : nil
        }
        return ".\(attribute)"
    }
}

extension [UInt8] {
    /// Whether the bytes begin with this name, which is in lower case, whatever their own is.
    fileprivate func starts(withName name: String) -> Bool {
        self.starts(with: name.utf8) { ASCII.lowercased($0) == $1 }
    }
}
