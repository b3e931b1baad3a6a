package import LarderHTTP
import NIOCore

/// The head of a WARC record (ISO 28500:2017 §4): its version and its named fields.
package struct WARCHead: Sendable, Equatable {
    /// What the record is, in lower case: `response`, `request`, `revisit`, …; empty where it does
    /// not say.
    package var type: String
    /// The block's length in bytes.
    package var contentLength: UInt64
    /// All fields, in the order in which they stand there.
    package var fields: Fields

    package init(type: String, contentLength: UInt64, fields: Fields) {
        self.type = type
        self.contentLength = contentLength
        self.fields = fields
    }

    /// `WARC-Record-ID`, with its angle brackets; nil where there is none.
    package var recordID: String? { self.fields.string("WARC-Record-ID") }

    /// Every `WARC-Concurrent-To`: the one field that may be repeated (§5.7).
    package var concurrentTo: [String] {
        self.fields.values("WARC-Concurrent-To").map { String(decoding: $0, as: UTF8.self) }
    }

    /// The URI that the record is about.
    ///
    /// Some writers put angle brackets around it, as the grammar of WARC 1.0 had it.
    package var targetURI: String? {
        guard let text = self.fields.string("WARC-Target-URI") else { return nil }
        return text.hasPrefix("<") && text.hasSuffix(">") && text.count > 2
            ? String(text.dropFirst().dropLast()) : text
    }

    package var date: Timestamp? {
        self.fields.first("WARC-Date").flatMap { WARCDate.parse($0) }
    }

    /// Whether the block is an HTTP message.
    package var isHTTP: Bool {
        let type = (self.fields.first("Content-Type") ?? []).prefix { $0 != ASCII.semicolon }
        return String(decoding: type, as: UTF8.self).filter { $0 != " " }.lowercased()
            == "application/http"
    }

    /// Only the beginning of the content was captured (§5.13).
    package var isTruncated: Bool { self.fields.contains("WARC-Truncated") }

    /// The record as it goes into a file, up to its block; two line ends follow that.
    package func serialized() -> [UInt8] {
        var out = Array("WARC/1.1\r\nWARC-Type: \(self.type)\r\n".utf8)
        self.fields.serialize(into: &out)
        out += Array("Content-Length: \(self.contentLength)\r\n\r\n".utf8)
        return out
    }

    /// Whether `WARCParser` reads what `serialized` writes: a head may be too large, or have too many
    /// fields.
    package var isReadable: Bool {
        var parser = WARCParser()
        var buffer = ByteBuffer(bytes: self.serialized())
        if case .head? = try? parser.next(&buffer) { return true }
        return false
    }

    /// What follows each block.
    package static let end = Array("\r\n\r\n".utf8)
}

/// Why bytes are no WARC records.
package struct WARCError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Reason: String, Sendable, Equatable, CaseIterable {
        case noVersion = "no line WARC/1.x where a record should begin"
        case unknownVersion = "a version of WARC that is not known here"
        case headTooLarge = "the head of the record is too large"
        case badField = "a field of the record is malformed"
        case noLength = "the record does not say how long it is"
        case noEnd = "the record does not end where it says"
    }

    package var reason: Reason
    /// Counted from one.
    package var record: UInt64
    /// Where in the file the record begins.
    package var offset: UInt64

    package var description: String {
        "record \(self.record) at byte \(self.offset): \(self.reason.rawValue)"
    }
}
