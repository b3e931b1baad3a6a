import FoundationEssentials
import LarderControl
import LarderCookies

/// A cookie in JSON, in the form that browsers' extensions exchange.
///
/// Reads as well what others write: `expires` in seconds, with -1 for a session's cookie, and
/// `sameSite` in any case. Octets that are no UTF-8 stand in base64 under names of our own.
struct CookieJSON: Codable, Equatable {
    var domain: String
    var hostOnly: Bool?
    var path: String?
    var name: String?
    var nameBase64: String?
    /// nil where it is hidden.
    var value: String?
    var valueBase64: String?
    var valueBytes: Int?
    var secure: Bool?
    var httpOnly: Bool?
    var sameSite: String?
    var session: Bool?
    /// In seconds since 1970.
    var expirationDate: Double?
    var expires: Double?

    init(_ cookie: CookieRecord) {
        self.domain = cookie.isHostOnly ? cookie.domain : ".\(cookie.domain)"
        self.hostOnly = cookie.isHostOnly
        self.path = cookie.path
        self.name = String(validating: cookie.name, as: UTF8.self)
        if self.name == nil { self.nameBase64 = Data(cookie.name).base64EncodedString() }
        self.valueBytes = cookie.valueBytes
        if let octets = cookie.value?.revealed {
            self.value = String(validating: octets, as: UTF8.self)
            if self.value == nil { self.valueBase64 = Data(octets).base64EncodedString() }
        }
        self.secure = cookie.isSecure
        self.httpOnly = cookie.isHTTPOnly
        let isNone = cookie.sameSite == SameSite.none.rawValue
        self.sameSite = isNone ? "no_restriction" : cookie.sameSite
        self.session = cookie.expiryMicroseconds == nil
        self.expirationDate = cookie.expiryMicroseconds.map { Double($0) / 1_000_000 }
    }

    /// What is wrong with an entry, which is then left out.
    struct Fault: Error, Equatable {
        var text: String
    }

    /// The cookie; whether a jar takes it is for the jar to say.
    func record(now: Int64) throws(Fault) -> CookieRecord {
        guard let name = Self.octets(self.name, self.nameBase64),
            let value = Self.octets(self.value, self.valueBase64)
        else { throw Fault(text: "it has no name or no value") }
        guard let sameSite = Self.sameSite(self.sameSite) else {
            throw Fault(text: "its sameSite is none of lax, strict, no_restriction, unspecified")
        }
        let domain = CookieFileDomain.canonical(self.domain)
        return CookieRecord(
            name: name, value: ControlSecret(value), valueBytes: value.count,
            domain: domain.name, isHostOnly: self.hostOnly ?? !domain.hasDot,
            path: self.path ?? "/",
            isSecure: self.secure ?? false, isHTTPOnly: self.httpOnly ?? false,
            sameSite: sameSite.rawValue, createdMicroseconds: now, lastUsedMicroseconds: now,
            expiryMicroseconds: try self.expiry())
    }

    private func expiry() throws(Fault) -> Int64? {
        if self.session == true { return nil }
        guard let seconds = self.expirationDate ?? self.expires, seconds != -1 else { return nil }
        guard seconds.isFinite else { throw Fault(text: "its expiry is no number of seconds") }
        let microseconds = (seconds * 1_000_000).rounded()
        return Int64(exactly: microseconds) ?? (seconds < 0 ? .min : .max)
    }

    private static func octets(_ text: String?, _ base64: String?) -> [UInt8]? {
        if let base64 { return Data(base64Encoded: base64).map { Array($0) } }
        return text.map { Array($0.utf8) }
    }

    private static func sameSite(_ word: String?) -> SameSite? {
        switch word?.lowercased() {
        case nil, "", "unspecified": .unspecified
        case "none", "no_restriction": SameSite.none
        case "lax": .lax
        case "strict": .strict
        default: nil
        }
    }
}

extension CookieFileDomain {
    /// The domain in `text` as a jar has it; what is none stays as it is, for the jar to refuse.
    static func canonical(_ text: String) -> (name: String, hasDot: Bool) {
        guard let domain = CookieFileDomain(Array(text.utf8)[...]) else { return (text, false) }
        return (domain.name, domain.hasDot)
    }
}
