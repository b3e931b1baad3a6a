import Foundation
import LarderHTTP
import LarderTransfer

/// The field lines that a session adds to requests which do not have them: those of
/// `httpAdditionalHeaders`, then those that every request has.
struct SessionFields: Sendable {
    /// For a request that says nothing itself.
    let whole: Fields
    /// For a request that asks for a range: coded content has other bytes.
    private let uncoded: Fields

    /// - Parameter additional: those of the configuration that may be set.
    init(_ additional: [String: String]) {
        var fields = Fields()
        // A dictionary has no order, and requests that are alike should look alike.
        for (name, value) in additional.sorted(by: { $0.key < $1.key }) {
            guard FieldLine.isName(name), !FieldLine.isEngines(FieldName(name).known) else {
                continue
            }
            fields.append(name, FieldLine.unfolded(value))
        }
        self.whole = Self.adding(AutomaticFields.lines, to: fields)
        self.uncoded = Self.adding(AutomaticFields.uncodedLines, to: fields)
    }

    private static func adding(
        _ lines: [(name: String, value: String)], to fields: Fields
    ) -> Fields {
        var fields = fields
        for line in lines where !fields.contains(FieldName(line.name)) {
            fields.append(line.name, line.value)
        }
        return fields
    }

    /// The fields of a request: its own, in the order of their names, and what it lacks of these.
    func completing(_ own: [String: String]?) -> Fields {
        guard let own, !own.isEmpty else { return self.whole }
        var fields = Fields()
        for (name, value) in own.sorted(by: { $0.key < $1.key }) where FieldLine.isName(name) {
            if FieldLine.isEngines(FieldName(name).known) { continue }
            fields.append(name, FieldLine.unfolded(value))
        }
        let rest = fields.contains(FieldName(.range)) ? self.uncoded : self.whole
        for line in rest.lines where !fields.names(line, of: rest) {
            fields.append(line, of: rest)
        }
        return fields
    }
}

extension Fields {
    /// Whether the content codings that they name are undone in what is loaded and stored.
    ///
    /// Not in an answer to a request for a range, which is one of the coded content.
    var nameUndoneCodings: Bool {
        self.contains(FieldName(.contentEncoding)) && CurlUpstream.undoesCodings(self)
    }
}

/// What a program may write into a field line.
enum FieldLine {
    /// Whether a name can stand in a message; others are left out, as they could not be read back.
    static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(ASCII.isToken)
    }

    /// The value without folds (RFC 9112 §5.2): each becomes a space.
    static func unfolded(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 == ASCII.cr || $0 == ASCII.lf }) else { return value }
        return value.replacing("\r\n", with: " ")
    }

    /// Fields that are the engine's own: of the connection, the framing, the authority.
    static func isEngines(_ field: KnownField) -> Bool {
        switch field {
        case .host, .contentLength, .expect: true
        default: HopByHop.isConnectionField(field)
        }
    }
}

/// The fields that a request has if nobody sets them.
enum AutomaticFields {
    /// What can be undone of what an origin may code its content with, the usual first.
    static let contentCodings = ["gzip", "deflate", "br", "zstd"]
        .filter(CurlUpstream.contentCodings.contains).joined(separator: ", ")

    static let lines: [(name: String, value: String)] = [
        ("Accept", "*/*"),
        ("Accept-Language", acceptLanguage(Locale.preferredLanguages)),
        ("Accept-Encoding", contentCodings.isEmpty ? "identity" : contentCodings),
        ("User-Agent", userAgent),
    ]

    /// RFC 9110 §14.2: a range is one of the representation, and what is decoded is another one.
    static let uncodedLines = lines.map { line in
        line.name == "Accept-Encoding" ? (name: line.name, value: "identity") : line
    }

    /// `process/version`, of characters that a product may have (RFC 9110 §10.1.5).
    private static var userAgent: String {
        let info = Bundle.main.infoDictionary
        let version =
            info?["CFBundleShortVersionString"] as? String ?? info?["CFBundleVersion"] as? String
        let name = self.token(ProcessInfo.processInfo.processName, or: "program")
        return "\(name)/\(self.token(version ?? "", or: "1.0")) URLLoading/1.0"
    }

    private static func token(_ text: String, or other: String) -> String {
        let bytes = text.utf8.map { ASCII.isToken($0) ? $0 : UInt8(ascii: "-") }
        return bytes.isEmpty ? other : String(decoding: bytes, as: UTF8.self)
    }

    /// Languages in the order in which they are preferred (RFC 9110 §12.5.4), each with less weight.
    static func acceptLanguage(_ languages: [String]) -> String {
        var parts: [String] = []
        for language in languages.prefix(6) where FieldLine.isName(language) {
            let weight = 10 - parts.count
            parts.append(parts.isEmpty ? language : "\(language);q=0.\(weight)")
        }
        return parts.isEmpty ? "*" : parts.joined(separator: ", ")
    }
}
