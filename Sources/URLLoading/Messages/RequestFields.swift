import Foundation
import LarderHTTP

/// Methods and header fields as a request keeps them.
enum RequestFields {
    /// The method as it is kept; what Foundation recognises in any case becomes upper case.
    static func method(_ method: String?) -> String {
        guard let method, !method.isEmpty else { return "GET" }
        for known in ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"]
        where self.isSame(known, method) {
            return known
        }
        return method
    }

    /// Whether two names are one, case set aside (RFC 9110 §5.1).
    static func isSame(_ a: String, _ b: String) -> Bool {
        let (x, y) = (a.utf8, b.utf8)
        return x.count == y.count
            && x.elementsEqual(y) { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }

    /// The entry of this name; where several differ in case alone, always the same.
    private static func key(of field: String, in fields: [String: String]) -> String? {
        if fields[field] != nil { return field }
        return fields.keys.filter { self.isSame($0, field) }.min()
    }

    static func value(of field: String, in fields: [String: String]) -> String? {
        self.key(of: field, in: fields).flatMap { fields[$0] }
    }

    static func set(_ field: String, to value: String?, in fields: inout [String: String]?) {
        guard var changed = fields ?? value.map({ _ in [:] }) else { return }
        // Let go of before it is changed, so that it is changed in place.
        fields = nil
        let name = self.capitalized(field)
        // A dictionary that was set whole may have several spellings, of which each would be sent.
        for other in changed.keys.filter({ $0 != name && self.isSame($0, name) }) {
            changed.removeValue(forKey: other)
        }
        changed[name] = value
        fields = changed
    }

    static func add(_ value: String, to field: String, in fields: inout [String: String]?) {
        var changed = fields ?? [:]
        fields = nil
        let name = self.key(of: field, in: changed) ?? self.capitalized(field)
        changed[name] = changed[name].map { "\($0),\(value)" } ?? value
        fields = changed
    }

    /// Whether a name and a value can be sent without breaking the request apart.
    ///
    /// Folded lines (CR LF and white space) are let through, as Foundation does; they are unfolded
    /// when they are sent.
    static func areValid(_ field: String, _ value: String?) -> Bool {
        !field.isEmpty && field.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != ASCII.colon }
            && (value.map(self.isValid) ?? true)
    }

    private static func isValid(_ value: String) -> Bool {
        var previous: UInt8 = 0x20
        var isBeforeFold = false
        for byte in value.utf8 {
            if isBeforeFold, !ASCII.isOWS(byte) { return false }
            isBeforeFold = false
            switch byte {
            case 0: return false
            case ASCII.lf:
                if previous != ASCII.cr { return false }
                isBeforeFold = true
            default:
                if previous == ASCII.cr { return false }
            }
            previous = byte
        }
        return previous != ASCII.cr && !isBeforeFold
    }

    /// A field name with a capital at the begin of each word, as Foundation writes names.
    static func capitalized(_ name: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(name.utf8.count)
        var isInWord = false
        for byte in name.utf8 {
            guard byte < 0x80 else { return name.capitalized }
            let isLetter = (byte | 0x20) &- 0x61 < 26
            if isLetter {
                bytes.append(isInWord ? byte | 0x20 : byte & 0xDF)
                isInWord = true
            } else {
                bytes.append(byte)
                // Those three belong to the word around them.
                if !"'^`".utf8.contains(byte) { isInWord = false }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
