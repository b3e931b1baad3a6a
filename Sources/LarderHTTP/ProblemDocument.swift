/// What went wrong, told to the client in the content of an error response (RFC 9457).
package struct ProblemDocument: Sendable, Equatable {
    /// The forms it can be sent in.
    package enum Format: Hashable, Sendable {
        case json, html

        /// The value of `Content-Type`.
        package var contentType: String {
            switch self {
            case .json: "application/problem+json"
            case .html: "text/html; charset=utf-8"
            }
        }
    }

    package var status: StatusCode
    /// A short summary, the same for every occurrence of its type.
    package var title: String
    /// What is particular to this occurrence; empty for nothing.
    package var detail: String
    /// A URI that names the type; `about:blank` says that the status says it all (§4.2.1).
    package var type: String
    /// A URI that names this occurrence.
    package var instance: String?

    /// - Parameter title: the status's reason phrase where nil.
    package init(
        status: StatusCode, title: String? = nil, detail: String = "",
        type: String = "about:blank", instance: String? = nil
    ) {
        self.status = status
        self.title = title ?? status.reasonPhrase
        self.detail = detail
        self.type = type
        self.instance = instance
    }

    /// The document in one of its forms, as UTF-8.
    package func rendered(as format: Format) -> [UInt8] {
        switch format {
        case .json: Array(self.json().utf8)
        case .html: Array(self.html().utf8)
        }
    }

    /// The document as a JSON object (RFC 9457 §3.1, RFC 8259), on one line with a line end.
    package func json() -> String {
        var members = [
            "\"type\":\(Self.jsonString(self.type))", "\"title\":\(Self.jsonString(self.title))",
            "\"status\":\(self.status)",
        ]
        if !self.detail.isEmpty { members.append("\"detail\":\(Self.jsonString(self.detail))") }
        if let instance = self.instance {
            members.append("\"instance\":\(Self.jsonString(instance))")
        }
        return "{\(members.joined(separator: ","))}\n"
    }

    /// The document as a short page for people.
    ///
    /// Every value is escaped; there is no script.
    package func html() -> String {
        let heading = "\(self.status) \(Self.htmlText(self.title))"
        var page = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
        page += "<title>\(heading)</title>\n<h1>\(heading)</h1>\n"
        if !self.detail.isEmpty { page += "<p>\(Self.htmlText(self.detail))</p>\n" }
        if let instance = self.instance {
            page += "<p><code>\(Self.htmlText(instance))</code></p>\n"
        }
        return page + "</html>\n"
    }

    /// A JSON string.
    ///
    /// `<`, `>` and `&` are escaped too, for those who paste it into a page.
    private static func jsonString(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\t": out += "\\t"
            case "<", ">", "&", "\u{7F}", "\u{2028}", "\u{2029}": out += Self.unicodeEscape(scalar)
            case let control where control.value < 0x20: out += Self.unicodeEscape(control)
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    private static func unicodeEscape(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
    }

    private static func htmlText(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            case let c where c.value < 0x20 || c.value == 0x7F: out += " "
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}

extension ProblemDocument.Format {
    /// The form that suits a request's `Accept` (RFC 9110 §12.5.1): a page for whoever prefers
    /// `text/html`, JSON for everyone else.
    package init(acceptedBy fields: Fields) {
        var html = Preference()
        var json = Preference()
        for element in fields.members(FieldName(.accept)) {
            let parts = element.parametersSplit()
            guard let range = parts.first else { continue }
            let quality = Self.quality(parts.dropFirst())
            html.consider(range, exact: "text/html", family: "text/*", quality)
            json.consider(
                range, exact: "application/problem+json", family: "application/*", quality)
            json.consider(range, exact: "application/json", family: "application/*", quality)
        }
        // Equal by number: what was named by name is what was meant.
        let prefersHTML =
            (html.quality, html.precision) > (json.quality, json.precision) && html.quality > 0
        self = prefersHTML ? .html : .json
    }

    /// How much a type is wanted: by the most precise range that takes it in.
    private struct Preference {
        var quality = 0
        var precision = 0

        mutating func consider(
            _ range: FieldValue, exact: StaticString, family: StaticString, _ quality: Int
        ) {
            let precision =
                range.span.equalsIgnoringCase(exact)
                ? 3
                : range.span.equalsIgnoringCase(family)
                    ? 2 : range.span.equalsIgnoringCase("*/*") ? 1 : 0
            guard precision > 0, precision >= self.precision else { return }
            self.quality =
                precision == self.precision ? Swift.max(self.quality, quality) : quality
            self.precision = precision
        }
    }

    /// The weight in thousandths (§12.4.2); 1000 where there is none, 0 where it is malformed.
    private static func quality(_ parameters: ArraySlice<FieldValue>) -> Int {
        for parameter in parameters {
            let bytes = Array(parameter)
            guard bytes.count >= 2, ASCII.lowercased(bytes[0]) == UInt8(ascii: "q"),
                bytes[1] == ASCII.equals
            else { continue }
            let digits = bytes.dropFirst(2)
            guard let whole = digits.first, whole == 0x30 || whole == 0x31 else { return 0 }
            let fraction = digits.dropFirst(2)
            guard digits.count < 2 || digits[digits.startIndex + 1] == UInt8(ascii: "."),
                fraction.count <= 3, fraction.allSatisfy(ASCII.isDigit)
            else { return 0 }
            var value = 0
            for place in 0..<3 {
                let index = fraction.startIndex + place
                value = value * 10 + (index < fraction.endIndex ? Int(fraction[index] - 0x30) : 0)
            }
            return whole == 0x31 ? 1000 : value
        }
        return 1000
    }
}
