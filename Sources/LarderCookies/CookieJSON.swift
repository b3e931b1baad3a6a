package import LarderHTTP

/// The JSON form of cookies: what is written here, and what browsers' extensions and drivers write.
///
/// An array of objects, or an object whose `cookies` is such an array (Playwright's storage state).
///
/// | member | means |
/// | --- | --- |
/// | `name`, `value` | text; `nameHex`, `valueHex` instead where the octets are no UTF-8 |
/// | `domain` | without `hostOnly`, a dot before it says that it holds for names below, too |
/// | `hostOnly` | whether the cookie is for `domain` alone |
/// | `path` | `/` where absent |
/// | `secure`, `httpOnly` | false where absent |
/// | `sameSite` | `strict`, `lax`, `none` or `no_restriction`, in any case; anything else is "not said" |
/// | `expirationDate`, `expires`, `expiry` | seconds since 1970; absent, null or -1: with the session |
/// | `session` | true: whatever the date says, the cookie ends with the session |
/// | `created` | seconds since 1970; the moment of reading where absent |
///
/// Other members are passed over.
package enum CookieJSON {
    /// What is wrong with an element, which is then left out.
    package enum Fault: String, Sendable, CaseIterable {
        case element = "is no object"
        case name = "has no name"
        case value = "has no value"
        case domain = "the domain is absent or no host name"
        case path = "the path does not begin with a slash"
        case flag = "secure, httpOnly, hostOnly and session must be true or false"
        case expiry = "the date is no number of seconds"
    }

    package struct Problem: Sendable, Equatable {
        /// Counts from 1.
        package let element: Int
        package let fault: Fault
    }

    package struct Contents: Sendable, Equatable {
        package var cookies: [Cookie] = []
        package var problems: [Problem] = []
    }

    /// The text as a whole is not what it should be.
    package enum TextError: Error, Sendable, Equatable {
        /// No JSON, from this byte on (counts from 0).
        case syntax(offset: Int)
        /// JSON, but neither an array nor an object with one.
        case noArray
    }

    // MARK: Reading

    /// Reads a text; whether a jar takes the cookies is for the jar to say.
    ///
    /// - Parameter now: the moment of creation of the first of those cookies that name none.
    package static func parse(_ text: [UInt8], now: Timestamp) throws(TextError) -> Contents {
        var contents = Contents()
        for (index, element) in try self.elements(of: text).enumerated() {
            do throws(ElementError) {
                // One after the other, as they are sent in that order (RFC 6265bis §5.8.3).
                contents.cookies.append(
                    try self.cookie(element, now + .microseconds(index)))
            } catch {
                contents.problems.append(Problem(element: index + 1, fault: error.fault))
            }
        }
        return contents
    }

    private static func elements(of text: [UInt8]) throws(TextError) -> [JSONValue] {
        let value: JSONValue
        do throws(JSONValue.Fault) {
            value = try JSONValue(parsing: text)
        } catch {
            throw .syntax(offset: error.offset)
        }
        switch value {
        case .array(let elements):
            return elements
        case .object(let members):
            guard case .array(let elements) = members["cookies"] else { throw .noArray }
            return elements
        case .null, .bool, .number, .string:
            throw .noArray
        }
    }

    private struct ElementError: Error {
        let fault: Fault
    }

    private static func cookie(
        _ element: JSONValue, _ now: Timestamp
    ) throws(ElementError) -> Cookie {
        guard case .object(let members) = element else { throw ElementError(fault: .element) }
        guard let name = self.octets("name", members) else { throw ElementError(fault: .name) }
        guard let value = self.octets("value", members) else { throw ElementError(fault: .value) }
        guard let text = members["domain"]?.text,
            let domain = CookieFileDomain(Array(text.utf8)[...])
        else { throw ElementError(fault: .domain) }
        let path = members["path"] ?? .string("/")
        guard let path = path.text, path.utf8.first == UInt8(ascii: "/") else {
            throw ElementError(fault: .path)
        }
        let isSecure = try self.flag("secure", members) ?? false
        let isSession = try self.flag("session", members) ?? false
        let expiry = try self.expiry(members)
        return Cookie(
            name: name, value: value, domain: domain.name,
            isHostOnly: try self.flag("hostOnly", members) ?? !domain.hasDot, path: path,
            isSecure: isSecure, isHTTPOnly: try self.flag("httpOnly", members) ?? false,
            sameSite: self.sameSite(members["sameSite"]?.text ?? "", isSecure: isSecure),
            creation: members["created"]?.number.map(self.moment) ?? now,
            expiry: isSession ? nil : expiry)
    }

    private static func octets(_ name: String, _ members: [String: JSONValue]) -> [UInt8]? {
        if let text = members[name]?.text { return Array(text.utf8) }
        guard let digits = members[name + "Hex"]?.text.map({ Array($0.utf8) }),
            digits.count.isMultiple(of: 2)
        else { return nil }
        var octets: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            guard let high = ASCII.hexDigit(digits[start]),
                let low = ASCII.hexDigit(digits[start + 1])
            else { return nil }
            octets.append(high << 4 | low)
        }
        return octets
    }

    private static func flag(
        _ name: String, _ members: [String: JSONValue]
    ) throws(ElementError) -> Bool? {
        guard let value = members[name], !value.isNull else { return nil }
        guard let flag = value.flag else { throw ElementError(fault: .flag) }
        return flag
    }

    /// Programs write `none` for cookies that said nothing; where these are not secure either, a jar
    /// would refuse every one of them.
    private static func sameSite(_ word: String, isSecure: Bool) -> SameSite {
        switch word.lowercased() {
        case "strict": .strict
        case "lax": .lax
        case "none", "no_restriction": isSecure ? .none : .unspecified
        default: .unspecified
        }
    }

    private static func expiry(
        _ members: [String: JSONValue]
    ) throws(ElementError) -> Timestamp? {
        for name in ["expirationDate", "expires", "expiry"] {
            guard let value = members[name], !value.isNull else { continue }
            guard let seconds = value.number else { throw ElementError(fault: .expiry) }
            return seconds == -1 ? nil : self.moment(seconds)
        }
        return nil
    }

    /// Saturates.
    private static func moment(_ seconds: Double) -> Timestamp {
        let microseconds = (seconds * 1_000_000).rounded()
        return Timestamp(
            microseconds: Int64(exactly: microseconds) ?? (microseconds < 0 ? .min : .max))
    }

    // MARK: Writing

    /// The cookies as an array, one to a line, which reads back as the same cookies.
    ///
    /// Only dates after the year 2255 lose a part, below a thousandth of a second.
    package static func write(_ cookies: [Cookie]) -> [UInt8] {
        if cookies.isEmpty { return Array("[]\n".utf8) }
        let lines = cookies.map { "  {\(self.members(of: $0).joined(separator: ", "))}" }
        return Array("[\n\(lines.joined(separator: ",\n"))\n]\n".utf8)
    }

    /// One cookie on a line of its own, for lists.
    ///
    /// - Parameters:
    ///   - valueBytes: how long the value is, whether it is shown or not.
    ///   - isHidden: the value is left out.
    package static func line(of cookie: Cookie, valueBytes: Int, isHidden: Bool) -> String {
        let members =
            self.members(of: cookie, isHidden: isHidden) + ["\"valueBytes\": \(valueBytes)"]
        return "{\(members.joined(separator: ", "))}"
    }

    private static func members(of cookie: Cookie, isHidden: Bool = false) -> [String] {
        var members = [self.member("name", cookie.name)]
        if !isHidden { members.append(self.member("value", cookie.value)) }
        members += [
            "\"domain\": \(JSONValue.quoted((cookie.isHostOnly ? "" : ".") + cookie.domain))",
            "\"hostOnly\": \(cookie.isHostOnly)", "\"path\": \(JSONValue.quoted(cookie.path))",
            "\"secure\": \(cookie.isSecure)", "\"httpOnly\": \(cookie.isHTTPOnly)",
            "\"session\": \(!cookie.isPersistent)",
        ]
        // Left out where the server did not say: no two programs have one word for that.
        if cookie.sameSite != .unspecified {
            members.append("\"sameSite\": \(JSONValue.quoted(cookie.sameSite.rawValue))")
        }
        if let expiry = cookie.expiry {
            members.append("\"expirationDate\": \(self.seconds(expiry))")
        }
        members.append("\"created\": \(self.seconds(cookie.creation))")
        return members
    }

    private static func member(_ name: String, _ octets: [UInt8]) -> String {
        if let text = String(validating: octets, as: UTF8.self) {
            return "\"\(name)\": \(JSONValue.quoted(text))"
        }
        let digits = octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "\"\(name)Hex\": \"\(digits)\""
    }

    /// Decimal, with as many digits after the point as there are.
    private static func seconds(_ moment: Timestamp) -> String {
        let magnitude = moment.microseconds.magnitude
        var text = (moment.microseconds < 0 ? "-" : "") + String(magnitude / 1_000_000)
        let rest = magnitude % 1_000_000
        if rest > 0 {
            let digits = String(rest)
            text += "." + String(repeating: "0", count: 6 - digits.count) + digits
        }
        // To readers this number says "with the session"; a microsecond more does not.
        return text == "-1" ? "-0.999999" : text
    }
}
