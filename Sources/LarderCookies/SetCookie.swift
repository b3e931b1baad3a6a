package import LarderHTTP

/// One `Set-Cookie` line, read by the algorithm of RFC 6265bis §5.6.
///
/// Every line that is not refused has a reading; an attribute that makes no sense is left out, and
/// of several of one name the last counts.
package struct SetCookie: Sendable, Equatable {
    /// What the line says about the path (§5.6.4).
    package enum Path: Sendable, Equatable {
        case absent
        /// The attribute is there, but empty or without a slash at its beginning.
        case defaulted
        case explicit(String)
    }

    /// What name and value may measure together, and one attribute's value alone (§5.6).
    package static let pairLimit = ByteCount(4096)
    package static let attributeLimit = ByteCount(1024)

    package internal(set) var name: [UInt8]
    package internal(set) var value: [UInt8]
    package internal(set) var expires: Timestamp?
    /// Counts from receipt, and before `expires`; zero or less means "at once".
    package internal(set) var maxAge: Duration?
    /// In lower case, without its leading dot, not yet checked.
    ///
    /// Empty where the line says so, nil where it says nothing.
    package internal(set) var domain: String?
    package internal(set) var path = Path.absent
    package internal(set) var isSecure = false
    package internal(set) var isHTTPOnly = false
    package internal(set) var sameSite = SameSite.unspecified

    /// Reads a field value.
    ///
    /// - Throws: `.controlCharacter`, `.tooLarge`. An empty cookie is read here and refused by the
    ///   jar.
    package init(parsing line: FieldValue) throws(CookieRefusal) {
        guard !line.contains(where: Self.isForbidden) else { throw .controlCharacter }
        let end = line.firstIndex(of: ASCII.semicolon) ?? line.endIndex
        let pair = line[..<end]
        if let equals = pair.firstIndex(of: ASCII.equals) {
            self.name = Array(pair[..<equals].trimmingOWS())
            self.value = Array(pair[(equals + 1)...].trimmingOWS())
        } else {
            self.name = []
            self.value = Array(pair.trimmingOWS())
        }
        guard self.name.count + self.value.count <= Self.pairLimit.clamped else {
            throw .tooLarge
        }
        for attribute in Self.attributes(of: line) {
            self.take(attribute.name, attribute.value ?? [])
        }
    }

    /// The attributes of a line, in order, also those that nobody knows; nil where one has no `=`.
    package static func attributes(
        of line: FieldValue
    ) -> [(name: FieldValue, value: FieldValue?)] {
        let end = line.firstIndex(of: ASCII.semicolon) ?? line.endIndex
        return line[end...].split(separator: ASCII.semicolon).map { attribute in
            let equals = attribute.firstIndex(of: ASCII.equals)
            let name = attribute[..<(equals ?? attribute.endIndex)].trimmingOWS()
            return (name, equals.map { attribute[($0 + 1)...].trimmingOWS() })
        }
    }

    /// `%x00-08 / %x0A-1F / %x7F`.
    static func isForbidden(_ byte: UInt8) -> Bool {
        (byte < 0x20 && byte != ASCII.tab) || byte == 0x7F
    }
}

extension SetCookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name; never the value, which is often a secret.
    package var description: String { String(decoding: self.name, as: UTF8.self) }

    package var debugDescription: String { self.description }

    /// Without the value, which `dump` would show otherwise.
    package var customMirror: Mirror {
        Mirror(self, children: ["name": self.name, "domain": self.domain ?? ""])
    }
}

// MARK: Attributes

extension SetCookie {
    private mutating func take(_ name: FieldValue, _ value: FieldValue) {
        guard value.count <= Self.attributeLimit.clamped else { return }
        if name.spells("expires") {
            if let moment = CookieDate.parse(value) { self.expires = moment }
        } else if name.spells("max-age") {
            if let age = Self.maxAge(value) { self.maxAge = age }
        } else if name.spells("domain") {
            let domain = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
            self.domain = String(decoding: domain.map(ASCII.lowercased), as: UTF8.self)
        } else if name.spells("path") {
            self.path =
                value.first == UInt8(ascii: "/")
                ? .explicit(String(decoding: value, as: UTF8.self)) : .defaulted
        } else if name.spells("secure") {
            self.isSecure = true
        } else if name.spells("httponly") {
            self.isHTTPOnly = true
        } else if name.spells("samesite") {
            self.sameSite = Self.sameSite(value)
        }
    }

    /// `[-]1*DIGIT` (§5.6.2); a negative number is zero, a large one 68 years.
    private static func maxAge(_ value: FieldValue) -> Duration? {
        guard value.first == UInt8(ascii: "-") else { return DeltaSeconds.parse(value) }
        return DeltaSeconds.parse(value.dropFirst()) == nil ? nil : .zero
    }

    private static func sameSite(_ value: FieldValue) -> SameSite {
        if value.spells("strict") { return .strict }
        if value.spells("lax") { return .lax }
        return value.spells("none") ? .none : .unspecified
    }
}

// MARK: Several

extension SetCookie {
    /// Reads each `Set-Cookie` line of a response, in order.
    ///
    /// A comma separates nothing here: dates hold commas, and so may values (RFC 9110 §5.3).
    package static func lines(of fields: Fields) -> [Result<SetCookie, CookieRefusal>] {
        fields.values(FieldName(.setCookie)).map { line in
            do throws(CookieRefusal) {
                return .success(try SetCookie(parsing: line))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Takes apart a value in which several lines were joined with commas, against RFC 9110 §5.3.
    ///
    /// Programs do join them. A comma separates where a token and `=` follow, and so not within a
    /// date; a cookie whose own value looks like that is cut in two, which nobody could tell apart.
    package static func lines(joined value: FieldValue) -> [FieldValue] {
        var lines: [FieldValue] = []
        var start = value.startIndex
        for comma in value.indices where value[comma] == ASCII.comma {
            let rest = value[(comma + 1)...].trimmingOWS()
            let name = rest.prefix(while: ASCII.isToken)
            let follows = rest.dropFirst(name.count).drop(while: ASCII.isOWS).first
            guard !name.isEmpty, follows == ASCII.equals else { continue }
            lines.append(value[start..<comma].trimmingOWS())
            start = comma + 1
        }
        lines.append(value[start...].trimmingOWS())
        return lines.filter { !$0.isEmpty }
    }
}
