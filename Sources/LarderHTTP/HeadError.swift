/// How large a message head may be.
///
/// Sizes are bytes on the wire. What exceeds them is refused as soon as that is certain, never
/// buffered further.
package struct HeadLimits: Hashable, Sendable {
    /// The request line or status line, without its line end.
    package var startLine: Int
    /// The whole head: start line, field lines, the empty line.
    package var head: Int
    /// Field lines in a head.
    package var fieldCount: Int
    /// Empty lines that are passed over before a request line (RFC 9112 §2.2).
    package var emptyLines: Int

    package init(
        startLine: Int = 16_384, head: Int = 65_536, fieldCount: Int = 128, emptyLines: Int = 4
    ) {
        self.startLine = startLine
        self.head = head
        self.fieldCount = fieldCount
        self.emptyLines = emptyLines
    }

    /// These limits, brought to where offsets of 32 bits are certain to suffice.
    var bounded: HeadLimits {
        let head = Swift.min(Swift.max(self.head, 16), 1 << 24)
        return HeadLimits(
            startLine: Swift.min(Swift.max(self.startLine, 14), head), head: head,
            fieldCount: Swift.max(self.fieldCount, 0), emptyLines: Swift.max(self.emptyLines, 0))
    }
}

/// A message that breaks the rules of HTTP/1.1, with the status that says so.
///
/// For a request the status is the answer to its client; for a response it is 502, the answer to
/// the client for which the origin was asked. Either way the connection cannot be used further.
package struct HeadError: Error, Hashable, Sendable {
    package var status: StatusCode
    package var reason: Reason
    /// For people: one line of constant text, holding nothing that was received.
    package var detail: String

    package init(status: StatusCode, reason: Reason, detail: String) {
        self.status = status
        self.reason = reason
        self.detail = detail
    }

    /// An error with the status that its rule asks for when a request breaks it.
    init(_ reason: Reason, _ detail: String) {
        self.init(status: reason.status, reason: reason, detail: detail)
    }

    /// This error found in a response: the origin's fault, thus 502 (RFC 9110 §15.6.3).
    var inResponse: HeadError {
        HeadError(status: .badGateway, reason: self.reason, detail: self.detail)
    }
}

extension HeadError {
    /// The rule that was broken.
    ///
    /// The raw value is a stable token for logs and counters.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        // Lines (RFC 9112 §2.2)
        case bareCR = "bare-cr"
        case bareLF = "bare-lf"
        case emptyLines = "empty-lines"
        case incomplete = "incomplete"
        // Request line and status line (RFC 9112 §3, §4)
        case badRequestLine = "bad-request-line"
        case badStatusLine = "bad-status-line"
        case badMethod = "bad-method"
        case badVersion = "bad-version"
        case unsupportedVersion = "unsupported-version"
        case startLineTooLong = "start-line-too-long"
        // Request target (RFC 9112 §3.2, RFC 3986)
        case badTarget = "bad-target"
        case targetForm = "target-form"
        case unknownScheme = "unknown-scheme"
        case userInfo = "user-info"
        case badHost = "bad-host"
        case badPort = "bad-port"
        case badPercentEncoding = "bad-percent-encoding"
        // Fields (RFC 9112 §5, RFC 9110 §5)
        case headTooLarge = "head-too-large"
        case tooManyFields = "too-many-fields"
        case foldedLine = "folded-line"
        case spaceBeforeColon = "space-before-colon"
        case missingColon = "missing-colon"
        case emptyFieldName = "empty-field-name"
        case badFieldName = "bad-field-name"
        case badFieldValue = "bad-field-value"
        // Host (RFC 9112 §3.2)
        case missingHost = "missing-host"
        case repeatedHost = "repeated-host"
        case hostMismatch = "host-mismatch"
        // Framing (RFC 9112 §6)
        case badContentLength = "bad-content-length"
        case repeatedContentLength = "repeated-content-length"
        case bothLengths = "both-lengths"
        case transferEncodingVersion = "transfer-encoding-version"
        case badTransferEncoding = "bad-transfer-encoding"
        case chunkedNotLast = "chunked-not-last"
        case unknownTransferCoding = "unknown-transfer-coding"
        // Chunked coding (RFC 9112 §7.1)
        case badChunkSize = "bad-chunk-size"
        case chunkSizeOverflow = "chunk-size-overflow"
        case chunkExtensionTooLong = "chunk-extension-too-long"
        case badChunkEnd = "bad-chunk-end"
        case trailersTooLarge = "trailers-too-large"

        /// What a request is answered with that breaks the rule.
        package var status: StatusCode {
            switch self {
            case .startLineTooLong: StatusCode(414)
            case .headTooLarge, .tooManyFields, .trailersTooLarge: StatusCode(431)
            case .unknownTransferCoding: StatusCode(501)
            case .unsupportedVersion: StatusCode(505)
            case .bareCR, .bareLF, .emptyLines, .incomplete, .badRequestLine, .badStatusLine,
                .badMethod, .badVersion, .badTarget, .targetForm, .unknownScheme,
                .userInfo, .badHost, .badPort, .badPercentEncoding, .foldedLine,
                .spaceBeforeColon, .missingColon, .emptyFieldName, .badFieldName, .badFieldValue,
                .missingHost, .repeatedHost, .hostMismatch, .badContentLength,
                .repeatedContentLength, .bothLengths, .transferEncodingVersion,
                .badTransferEncoding, .chunkedNotLast, .badChunkSize, .chunkSizeOverflow,
                .chunkExtensionTooLong, .badChunkEnd:
                StatusCode(400)
            }
        }
    }
}
