import LarderHTTP

/// The challenges in a parent's answer to CONNECT, line by line as libcurl hands it on.
///
/// A value. Bounded: a parent is a stranger, too.
struct ProxyChallenges {
    private static let limit = 16
    private static let lineLimit = 8192

    /// The values of `Proxy-Authenticate` of the last head.
    private(set) var values: [String] = []

    mutating func line(_ bytes: UnsafeRawBufferPointer) {
        // Another answer, after a challenge that libcurl answered.
        if unsafe bytes.starts(with: "HTTP/".utf8) { self.values = [] }
        guard self.values.count < Self.limit, bytes.count <= Self.lineLimit else { return }
        let line = unsafe String(decoding: bytes, as: UTF8.self)
        guard let colon = line.firstIndex(of: ":"),
            line[..<colon].lowercased() == "proxy-authenticate"
        else { return }
        let value = line[line.index(after: colon)...]
        self.values.append(
            String(String.UnicodeScalarView(value.unicodeScalars.filter { $0.value >= 0x20 }))
                .trimmedOfSpaces)
    }
}

/// The codings of a message's content (RFC 9110 §8.4).
enum ContentCodings {
    /// In lower case, in the order in which they were applied; `identity` left out.
    static func of(_ fields: Fields) -> [String] {
        let name = FieldName(.contentEncoding)
        guard fields.contains(name), let value = fields.string(name) else { return [] }
        return value.split(separator: ",").map { String($0).trimmedOfSpaces.lowercased() }
            .filter { !$0.isEmpty && $0 != "identity" }
    }
}

extension String {
    fileprivate var trimmedOfSpaces: String {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let bytes = self.utf8.drop(while: isSpace)
        guard let end = bytes.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(self[bytes.startIndex...end])
    }
}
