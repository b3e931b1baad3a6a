import LarderHTTP

/// Names for files that come from where nobody is trusted.
enum SuggestedFilename {
    static let unknown = "Unknown"
    /// What Linux's file systems take.
    private static let longest = 255

    /// What `Content-Disposition` proposes (RFC 6266 §4.3): `filename*` before `filename`.
    static func proposed(by disposition: String) -> String? {
        let field = ParameterizedValue(disposition)
        for (name, value) in field.parameters where name == "filename*" {
            if let name = self.extended(value).flatMap(self.safe) { return name }
        }
        return field.first("filename").flatMap(self.safe)
    }

    /// A name that cannot lead out of the directory that it is put in; nil where nothing is left.
    ///
    /// `/` becomes `_`, as Foundation has it, several of them one; control characters go, and what
    /// would show the name in another order than it has (`txt.exe` as `exe.txt`).
    static func safe(_ name: String) -> String? {
        var kept: [UInt8] = []
        var isBehindSlash = false
        for byte in String(name.unicodeScalars.filter { !self.isDeceptive($0) }).utf8 {
            let isSlash = byte == UInt8(ascii: "/")
            if isSlash, !isBehindSlash { kept.append(UInt8(ascii: "_")) }
            if !isSlash, byte >= 0x20, byte != 0x7F { kept.append(byte) }
            isBehindSlash = isSlash
        }
        let trimmed = kept[...].trimmingOWS()
        let safe = self.cut(String(decoding: trimmed, as: UTF8.self))
        let isNothing = safe.allSatisfy { $0 == "." || $0 == " " } || safe == "_"
        return isNothing ? nil : safe
    }

    /// Controls of C1, separators of lines, and orders of direction (UAX #9).
    private static func isDeceptive(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x80...0x9F, 0x2028...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0x061C: true
        default: false
        }
    }

    /// The last component of what an archive has for a name.
    static func last(of name: String) -> String? {
        name.split(separator: "/").last.flatMap { self.safe(String($0)) }
    }

    /// Shortened to what a file system takes, with its extension, at the end of a character.
    private static func cut(_ name: String) -> String {
        guard name.utf8.count > self.longest else { return name }
        var suffix = ""
        if let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 32 {
            suffix = String(name[dot...])
        }
        var stem = ""
        var room = self.longest - suffix.utf8.count
        for character in name.unicodeScalars {
            room -= UTF8.width(character)
            if room < 0 { break }
            stem.unicodeScalars.append(character)
        }
        return stem + suffix
    }

    /// An extended value (RFC 8187 §3.2): `UTF-8'en'%e2%82%ac`; nil where it breaks the rules.
    private static func extended(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = PercentCoding.octets(parts[2]) else { return nil }
        switch parts[0].lowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1":
            return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}
