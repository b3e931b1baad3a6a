/// The name of a credential; what is in it never stands in a file of settings.
package struct CredentialName: SettingText, Hashable {
    package let text: String

    package static var kind: String { "credential" }
    package static var expectation: String {
        "the name of a credential: up to 64 letters, digits, ., _ and -"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        let fits = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "._-".utf8.contains(byte)
            }
        }
        guard fits, (1...64).contains(text.utf8.count), text != "none" else {
            // Whoever mistakes the setting for the secret itself should not find it in a log.
            throw SettingTextProblem("is no name", showing: "…")
        }
        self.text = text
    }

    package var settingText: String { self.text }
}

/// A version of TLS (RFC 8446, RFC 5246 and before).
package enum TLSVersionWord: String, SettingWord, Comparable {
    case tls10 = "1.0"
    case tls11 = "1.1"
    case tls12 = "1.2"
    case tls13 = "1.3"

    package static func < (a: TLSVersionWord, b: TLSVersionWord) -> Bool {
        a.rawValue < b.rawValue
    }
}

/// A field that a session adds to requests that have none of its name: `X-Build: 1`.
package struct AdditionalField: SettingText, Hashable {
    package let name: String
    package let value: String

    package static var kind: String { "fields" }
    package static var expectation: String { "a field such as X-Build: 1" }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard let colon = text.firstIndex(of: ":") else { throw SettingTextProblem() }
        let name = String(text[..<colon])
        let value = String(text[text.index(after: colon)...].drop { $0 == " " })
        guard Token.isToken(name) else {
            throw SettingTextProblem("has a name that no field has", showing: "…")
        }
        if let cause = Self.refusal(of: name.lowercased()) {
            // Its value may be the secret that has no business here.
            throw SettingTextProblem(cause, showing: "\(name): …")
        }
        guard Self.isValue(value) else {
            throw SettingTextProblem("has a value that no field has", showing: "\(name): …")
        }
        self.name = name
        self.value = value
    }

    package var settingText: String { "\(self.name): \(self.value)" }

    /// Why a session may not add fields of this name; nil where it may.
    private static func refusal(of name: String) -> String? {
        if name.hasPrefix("larder-") { return "is for Larder itself, and never goes to origins" }
        if Self.secrets.contains(name) {
            return "would hold a secret: add it by \"larder credentials add\" and name it in "
                + "injections"
        }
        if Self.cookies.contains(name) {
            return "is for cookies: give the session \"cookies: {mode: jar}\" and set them by "
                + "\"larder cookies set\""
        }
        if Self.connection.contains(name) { return "is about one connection, and Larder's own" }
        if Self.meaning.contains(name) {
            return "would change what every request of the session asks for"
        }
        return nil
    }

    // URL Loading System: not to be given to a session by httpAdditionalHeaders.
    private static let secrets: Set<String> = [
        "authorization", "proxy-authorization", "www-authenticate", "proxy-authenticate",
        "authentication-info", "proxy-authentication-info",
    ]
    private static let cookies: Set<String> = ["cookie", "cookie2", "set-cookie", "set-cookie2"]
    // RFC 9110 §7.6.1, §7.6.3, and what frames a message (RFC 9112 §6).
    private static let connection: Set<String> = [
        "connection", "host", "content-length", "transfer-encoding", "te", "trailer", "upgrade",
        "keep-alive", "proxy-connection", "http2-settings", "via", "expect", "forwarded",
        "max-forwards",
    ]
    // RFC 9110 §13, §14: these are about one stored response, not about all.
    private static let meaning: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since",
        "if-unmodified-since", "content-range", "content-encoding", "cache-status",
    ]

    /// RFC 9110 §5.5: visible characters, with spaces and tabs among them.
    private static func isValue(_ text: String) -> Bool {
        let edges = [text.utf8.first, text.utf8.last]
        return text.utf8.count <= 4096 && !edges.contains(0x20) && !edges.contains(0x09)
            && text.utf8.allSatisfy { $0 == 0x09 || (0x20...0x7E).contains($0) || $0 >= 0x80 }
    }
}
