import Foundation
import LarderCookies
import LarderHTTP

/// Cookies and the dictionaries of their properties.
extension CookieFacts {
    /// nil where something is missing that is needed, or makes no sense.
    init?(properties: [HTTPCookiePropertyKey: Any], now: Date) {
        guard let name = Self.text(properties[.name]), let value = Self.text(properties[.value]),
            let path = Self.text(properties[.path]),
            let domain = Self.domain(properties), Self.isPair(name, value)
        else { return nil }
        self.init(
            name: name, value: value, domain: domain, path: path,
            created: Self.created(properties[.created]) ?? now)
        self.originURL = Self.url(properties[.originURL])
        self.version = Self.number(properties[.version]) == 1 ? 1 : 0
        self.isSecure = Self.flag(properties[.secure])
        self.isHTTPOnly = Self.flag(properties[.httpOnly])
        self.isSetByScript = Self.flag(properties[.setByJavaScript])
        self.comment = Self.text(properties[.comment])
        self.commentURL = Self.url(properties[.commentURL])
        self.ports = Self.ports(properties[.port], version: self.version)
        self.sameSite = Self.sameSite(properties[.sameSitePolicy])
        // No store may hold that (RFC 6265bis §5.7), and programs were told of no such rule. It is sent
        // wherever one is that says nothing.
        if self.sameSite == .none, !self.isSecure { self.sameSite = .unspecified }
        if !Self.isDiscarded(properties, version: self.version) {
            self.expires = Self.expiry(properties, now: now)
        }
    }

    /// Whether it ends with its session, whatever date it has.
    ///
    /// As a cookie of version 1 does that says neither this nor a `Max-Age` (Apple's documentation of
    /// `HTTPCookiePropertyKey.discard`).
    private static func isDiscarded(
        _ properties: [HTTPCookiePropertyKey: Any], version: Int
    ) -> Bool {
        if let discard = properties[.discard] { return self.flag(discard) }
        return version >= 1 && properties[.maximumAge] == nil
    }

    var properties: [HTTPCookiePropertyKey: Any] {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: self.name, .value: self.value, .domain: self.domain, .path: self.path,
            .version: String(self.version), .created: self.created.timeIntervalSinceReferenceDate,
            .discard: self.expires == nil ? "TRUE" : "FALSE",
        ]
        if self.isSecure { properties[.secure] = "TRUE" }
        if self.isHTTPOnly { properties[.httpOnly] = "TRUE" }
        if self.isSetByScript { properties[.setByJavaScript] = "TRUE" }
        if self.sameSite != .unspecified { properties[.sameSitePolicy] = self.sameSite.rawValue }
        if let expires = self.expires { properties[.expires] = expires }
        if let comment = self.comment { properties[.comment] = comment }
        if let commentURL = self.commentURL { properties[.commentURL] = commentURL }
        if let originURL = self.originURL { properties[.originURL] = originURL }
        if let ports = self.ports {
            properties[.port] = ports.map(String.init).joined(separator: ",")
        }
        return properties
    }

    // MARK: Values of properties

    static func text(_ property: Any?) -> String? {
        switch property {
        case let text as String: text
        case let text as Substring: String(text)
        case let text as NSString: text as String
        default: nil
        }
    }

    private static func url(_ property: Any?) -> URL? {
        switch property {
        case let url as URL: url
        case let url as NSURL: url as URL
        default: self.text(property).flatMap { URL(string: $0) }
        }
    }

    /// `TRUE`, `YES`, and whatever else is not `FALSE`; a number that is not zero.
    private static func flag(_ property: Any?) -> Bool {
        if let flag = property as? Bool { return flag }
        if let number = property as? NSNumber { return number.boolValue }
        guard let text = self.text(property)?.lowercased() else { return false }
        return !["", "false", "no", "0"].contains(text)
    }

    private static func number(_ property: Any?) -> Int? {
        if let number = property as? Int { return number }
        if let number = property as? NSNumber { return number.intValue }
        return self.text(property).flatMap { Int($0.trimmingCharacters(in: .whitespaces)) }
    }

    private static func domain(_ properties: [HTTPCookiePropertyKey: Any]) -> String? {
        if let domain = self.text(properties[.domain]), !domain.isEmpty {
            return domain.lowercased()
        }
        guard let host = self.url(properties[.originURL])?.host, !host.isEmpty else { return nil }
        return host.lowercased()
    }

    /// Whether name and value stay what they are in a `Cookie` field.
    static func isPair(_ name: String, _ value: String) -> Bool {
        if name.isEmpty, value.isEmpty { return false }
        func breaks(_ byte: UInt8) -> Bool {
            (byte < 0x20 && byte != ASCII.tab) || byte == 0x7F || byte == ASCII.semicolon
        }
        return !name.utf8.contains { breaks($0) || $0 == ASCII.equals }
            && !value.utf8.contains(where: breaks)
    }

    private static func created(_ property: Any?) -> Date? {
        if let date = property as? Date { return date }
        let seconds = (property as? NSNumber)?.doubleValue ?? property as? Double
        guard let seconds, seconds.isFinite else { return nil }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    static func ports(_ property: Any?, version: Int) -> [Int]? {
        let ports: [Int]
        switch property {
        case let numbers as [NSNumber]: ports = numbers.map(\.intValue)
        case let number as NSNumber: ports = [number.intValue]
        case nil: return nil
        default:
            guard let text = self.text(property) else { return nil }
            ports = text.split(separator: ",").compactMap {
                Int($0.trimmingCharacters(in: .whitespaces))
            }
        }
        if version >= 1 { return ports }
        return ports.first.map { [$0] }
    }

    private static func sameSite(_ property: Any?) -> SameSite {
        let word = (property as? HTTPCookieStringPolicy)?.rawValue ?? self.text(property)
        switch word?.lowercased() {
        case "lax": return .lax
        case "strict": return .strict
        case "none": return .none
        default: return .unspecified
        }
    }

    // MARK: When it ends

    private static func expiry(
        _ properties: [HTTPCookiePropertyKey: Any], now: Date
    ) -> Date? {
        if let age = self.age(properties[.maximumAge]) {
            return now.addingTimeInterval(max(0, age))
        }
        if let date = properties[.expires] as? Date {
            return date.timeIntervalSince1970.isFinite ? date : nil
        }
        guard let text = self.text(properties[.expires]) else { return nil }
        return CookieDate.parse(Array(text.utf8)[...]).map(CookieMoment.date)
    }

    /// An integer, or nothing; no cookie lives for more than 68 years.
    private static func age(_ property: Any?) -> Double? {
        let limit = Double(Int32.max)
        if let number = property as? NSNumber {
            return number.doubleValue.isFinite ? min(number.doubleValue, limit) : nil
        }
        guard let text = self.text(property)?.trimmingCharacters(in: .whitespaces) else {
            return nil
        }
        let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return text.hasPrefix("-") ? 0 : min(Double(digits) ?? limit, limit)
    }
}
