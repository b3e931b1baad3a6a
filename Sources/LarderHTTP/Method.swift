/// A request method: a case-sensitive token (RFC 9110 §9).
package struct Method: Hashable, Sendable, RawRepresentable, Codable {
    package let rawValue: String

    package init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The method that these bytes name; of the most common one no text is made.
    init(token: Span<UInt8>) {
        let isGet =
            token.count == 3 && token[0] == UInt8(ascii: "G") && token[1] == UInt8(ascii: "E")
            && token[2] == UInt8(ascii: "T")
        self = isGet ? .get : Method(rawValue: token.text(0..<token.count))
    }

    // Open to other modules: each exchange compares some twenty times.
    @inlinable
    package static func == (a: Method, b: Method) -> Bool { a.rawValue == b.rawValue }

    package static let get = Method(rawValue: "GET")
    package static let head = Method(rawValue: "HEAD")
    package static let post = Method(rawValue: "POST")
    package static let put = Method(rawValue: "PUT")
    package static let delete = Method(rawValue: "DELETE")
    package static let options = Method(rawValue: "OPTIONS")
    package static let trace = Method(rawValue: "TRACE")
    package static let connect = Method(rawValue: "CONNECT")
    package static let patch = Method(rawValue: "PATCH")

    /// Whether the method asks for no change of state (RFC 9110 §9.2.1, and PROPFIND, REPORT and
    /// SEARCH of the WebDAV family).
    ///
    /// An unknown method is taken to be unsafe.
    package var isSafe: Bool {
        switch self.rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH": true
        default: false
        }
    }

    /// Whether the answer's content is the request itself, so that a request of this method must not
    /// bear what a client is not to see (RFC 9110 §9.3.8).
    package var isEchoed: Bool { self == .trace }

    /// Whether doing it twice has the effect of doing it once (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        self.isSafe || self == .put || self == .delete
    }
}

extension Method: CustomStringConvertible {
    package var description: String { self.rawValue }
}
