/// Where a message's content ends (RFC 9112 §6).
///
/// The one place that reads `Content-Length` and `Transfer-Encoding`: two readers that differ are a
/// smuggled request.
package enum MessageFraming {
    /// How much content follows a request's head: `.unknown` means chunked.
    ///
    /// A GET or HEAD of no bytes has none, though it says so, as Java's HttpClient does: it is content
    /// *received* that has no meaning in them (RFC 9110 §9.3.1).
    package static func requestBody(
        _ fields: Fields, _ version: HTTPVersion, of method: Method
    ) throws(HeadError) -> BodyLength {
        let length = try self.requestBody(fields, version)
        return length == .known(0) && (method == .get || method == .head) ? .none : length
    }

    private static func requestBody(
        _ fields: Fields, _ version: HTTPVersion
    ) throws(HeadError) -> BodyLength {
        let hasLength = fields.has(.contentLength)
        if fields.has(.transferEncoding) {
            guard version >= .http11 else {
                throw HeadError(.transferEncodingVersion, "Transfer-Encoding in HTTP/1.0")
            }
            guard !hasLength else {
                throw HeadError(.bothLengths, "both Content-Length and Transfer-Encoding")
            }
            guard try self.endsInChunked(fields) else {
                throw HeadError(.chunkedNotLast, "the last transfer coding is not chunked")
            }
            return .unknown
        }
        guard hasLength else { return .none }
        guard fields.values(FieldName(.contentLength)).count == 1 else {
            throw HeadError(.repeatedContentLength, "more than one Content-Length")
        }
        // Zero stays known: what was announced with POST should be announced on.
        return try self.length(fields, mayRepeat: false).map { .known($0) } ?? .none
    }

    /// How much content follows a response's head, given the method that it answers.
    ///
    /// `.unknown` means chunked, or until the connection closes (`isChunked` tells which).
    ///
    /// - Parameter hadTE: the request may have said in `TE` which codings it takes: where not, chunked
    ///   is the only one that an origin may use (RFC 9110 §10.1.4).
    package static func responseBody(
        of head: ResponseHead, to method: Method, hadTE: Bool = true
    ) throws(HeadError) -> BodyLength {
        if method == .head || head.status.forbidsContent { return .none }
        if method == .connect, head.status.isSuccessful { return .none }
        guard head.fields.has(.transferEncoding), head.version.major == 1 else {
            return try self.contentLength(of: head.fields).map { .known($0) } ?? .unknown
        }
        guard head.version >= .http11 else {
            throw HeadError(.transferEncodingVersion, "Transfer-Encoding in HTTP/1.0").inResponse
        }
        // RFC 9112 §6.3: "ought to be handled as an error".
        guard !head.fields.has(.contentLength) else {
            throw HeadError(.bothLengths, "both Content-Length and Transfer-Encoding").inResponse
        }
        guard try self.isChunked(head) || hadTE else {
            throw HeadError(.badTransferEncoding, "a transfer coding other than chunked").inResponse
        }
        return .unknown
    }

    /// Whether a response's content comes in chunks.
    package static func isChunked(_ head: ResponseHead) throws(HeadError) -> Bool {
        do throws(HeadError) {
            guard head.fields.has(.transferEncoding) else { return false }
            return try self.endsInChunked(head.fields)
        } catch {
            throw error.inResponse
        }
    }

    /// The value of `Content-Length`; nil where there is none.
    ///
    /// Digits only, below 2^63 so that no later sum overflows a signed 64-bit offset. Lines and
    /// list members that repeat the same number are one (RFC 9112 §6.3 allows it in a response),
    /// different ones are an error. The status of an error is 502.
    package static func contentLength(of fields: Fields) throws(HeadError) -> UInt64? {
        do throws(HeadError) {
            return try self.length(fields, mayRepeat: true)
        } catch {
            throw error.inResponse
        }
    }

    private static func length(
        _ fields: Fields, mayRepeat: Bool
    ) throws(HeadError) -> UInt64? {
        var found: UInt64?
        for line in fields.lines where line.known == .contentLength {
            let value = fields.value(of: line)
            // As it nearly always is: one number.
            if let length = self.number(value) {
                found = try self.agreeing(length, with: found)
                continue
            }
            let members =
                mayRepeat
                ? value.split(separator: ASCII.comma, omittingEmptySubsequences: false) : [value]
            for member in members {
                guard let length = self.number(member.trimmingOWS()) else {
                    throw HeadError(.badContentLength, "Content-Length is not a number")
                }
                found = try self.agreeing(length, with: found)
            }
        }
        return found
    }

    private static func agreeing(
        _ length: UInt64, with found: UInt64?
    ) throws(HeadError) -> UInt64 {
        guard found == nil || found == length else {
            throw HeadError(.repeatedContentLength, "Content-Length twice, and different")
        }
        return length
    }

    private static func number(_ digits: FieldValue) -> UInt64? {
        guard !digits.isEmpty else { return nil }
        var value: UInt64 = 0
        for byte in digits {
            guard ASCII.isDigit(byte) else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(byte &- 0x30))
            guard !overflow, !carry, sum <= UInt64(Int64.max) else { return nil }
            value = sum
        }
        return value
    }

    /// Reads all `Transfer-Encoding` lines: whether the last coding is `chunked`.
    ///
    /// Chunked anywhere but last, a parameter to it, and an empty element are refused (400); any
    /// other coding before it is one that we cannot undo (501).
    private static func endsInChunked(_ fields: Fields) throws(HeadError) -> Bool {
        var chunked = false
        var others = 0
        for line in fields.lines where line.known == .transferEncoding {
            for coding in fields.value(of: line).split(
                separator: ASCII.comma, omittingEmptySubsequences: false)
            {
                let name = coding.trimmingOWS()
                guard !name.isEmpty else {
                    throw HeadError(.badTransferEncoding, "an empty transfer coding")
                }
                guard !chunked else {
                    throw HeadError(.chunkedNotLast, "a transfer coding after chunked")
                }
                if name.span.equalsIgnoringCase("chunked") {
                    chunked = true
                } else {
                    try self.checkCoding(name)
                    others += 1
                }
            }
        }
        guard chunked, others > 0 else { return chunked }
        throw HeadError(.unknownTransferCoding, "a transfer coding other than chunked")
    }

    /// A coding that is not chunked begins with a token; `chunked` with a parameter is no chunked.
    private static func checkCoding(_ coding: FieldValue) throws(HeadError) {
        let name = coding.prefix { ASCII.isToken($0) }
        let next = coding.dropFirst(name.count).first { !ASCII.isOWS($0) }
        guard !name.isEmpty, next == nil || next == ASCII.semicolon,
            !name.span.equalsIgnoringCase("chunked")
        else {
            throw HeadError(.badTransferEncoding, "Transfer-Encoding is malformed")
        }
    }
}
