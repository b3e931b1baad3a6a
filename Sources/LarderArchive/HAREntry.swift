import FoundationEssentials
package import LarderHTTP

/// An entry of a HAR file, as far as a cache can use it.
package struct HAREntry: Sendable, Equatable {
    package var method: Method
    package var url: String
    package var requestFields: Fields
    package var requestHasBody: Bool
    package var status: Int
    package var reason: String
    package var fields: Fields
    /// nil where the content was not recorded.
    package var content: [UInt8]?
    /// When the request was begun.
    package var started: Timestamp
    /// The fields that Larder adds to what it writes; empty in what others write.
    package var larder: Fields

    private struct Pair: Decodable {
        var name: String
        var value: String
    }

    private struct Document: Decodable {
        struct Request: Decodable {
            var method: String
            var url: String
            var headers: [Pair]
            var postData: Posted?
        }
        struct Posted: Decodable {}
        struct Response: Decodable {
            var status: Int
            var statusText: String?
            var headers: [Pair]
            var content: Content
        }
        struct Content: Decodable {
            var size: Double?
            var text: String?
            var encoding: String?
        }

        var startedDateTime: String
        var request: Request
        var response: Response
        var larder: [Pair]?

        enum CodingKeys: String, CodingKey {
            case startedDateTime, request, response
            case larder = "_larder"
        }
    }

    /// Reads the bytes of one entry; nil where they are none.
    package init?(_ json: [UInt8]) {
        guard let entry = try? JSONDecoder().decode(Document.self, from: Data(json)),
            let started = HARDate.parse(entry.startedDateTime)
        else { return nil }
        self.method = Method(rawValue: entry.request.method.uppercased())
        self.url = entry.request.url
        self.requestFields = Self.fields(entry.request.headers)
        self.requestHasBody = entry.request.postData != nil
        self.status = entry.response.status
        self.reason = entry.response.statusText ?? ""
        self.fields = Self.fields(entry.response.headers)
        self.started = started
        self.larder = Self.fields(entry.larder ?? [])
        guard let text = entry.response.content.text else {
            self.content = entry.response.content.size == 0 ? [] : nil
            return
        }
        if entry.response.content.encoding == "base64" {
            guard let data = Data(base64Encoded: text) else { return nil }
            self.content = Array(data)
        } else {
            self.content = Array(text.utf8)
        }
    }

    /// Names of HTTP/2's own (`:authority`) are no fields.
    private static func fields(_ pairs: [Pair]) -> Fields {
        var fields = Fields()
        for pair in pairs
        where !pair.name.isEmpty && pair.name.utf8.allSatisfy(ASCII.isToken)
            && pair.name.utf8.count < Int(UInt16.max) && fields.count < 1_024
        {
            fields.append(pair.name, pair.value)
        }
        return fields
    }
}

/// ISO 8601 as HAR has it: with an offset from UTC.
package enum HARDate {
    package static func parse(_ text: String) -> Timestamp? {
        let bytes = Array(text.utf8)[...]
        if let moment = WARCDate.parse(bytes) { return moment }
        guard bytes.count > 6 else { return nil }
        let offset = bytes.suffix(6)
        let sign = offset[offset.startIndex]
        guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"),
            let hours = UInt64(exactDigits: offset.dropFirst().prefix(2)),
            offset[offset.startIndex + 3] == ASCII.colon,
            let minutes = UInt64(exactDigits: offset.suffix(2)), hours < 24, minutes < 60,
            let moment = WARCDate.parse(
                (Array(bytes.dropLast(6)) + [UInt8(ascii: "Z")])[...])
        else { return nil }
        let shift = Duration.seconds(Int64(hours * 3600 + minutes * 60))
        return sign == UInt8(ascii: "+") ? moment - shift : moment + shift
    }
}

/// Whether bytes that come in pieces are text that JSON can hold as it is: UTF-8 (RFC 3629 §4).
package struct UTF8Check: Sendable {
    package private(set) var isText = true
    /// Bytes of a character that are still to come, and what the next one may be.
    private var left = 0
    private var low: UInt8 = 0x80
    private var high: UInt8 = 0xBF

    package init() {}

    /// Whether no character is left open.
    package var isWhole: Bool { self.isText && self.left == 0 }

    package mutating func take(_ bytes: some Sequence<UInt8>) {
        for byte in bytes where self.isText { self.take(byte) }
    }

    private mutating func take(_ byte: UInt8) {
        if self.left > 0 {
            self.isText = byte >= self.low && byte <= self.high
            self.left -= 1
            (self.low, self.high) = (0x80, 0xBF)
            return
        }
        switch byte {
        case 0x00..<0x80: break
        case 0xC2...0xDF: self.left = 1
        case 0xE0: (self.left, self.low) = (2, 0xA0)
        case 0xED: (self.left, self.high) = (2, 0x9F)
        case 0xE1...0xEF: self.left = 2
        case 0xF0: (self.left, self.low) = (3, 0x90)
        case 0xF4: (self.left, self.high) = (3, 0x8F)
        case 0xF1...0xF3: self.left = 3
        default: self.isText = false
        }
    }
}
