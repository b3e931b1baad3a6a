import LarderHTTP

/// Reads the head of an origin's response: strict, over bytes (RFC 9112 §4, §5).
///
/// The seam at which the module gets its parser. `block` is a whole head with its empty line, as
/// libcurl hands it on line by line; an HTTP/2 head comes in the dress of HTTP/1 (`HTTP/2 200`).
enum OriginHead {
    /// Takes a head apart, or says which rule it breaks.
    static func parse(
        _ block: [UInt8], maximumFieldCount: Int
    ) throws(UpstreamFailure) -> ResponseHead {
        guard let lineEnd = block.firstIndex(of: ASCII.lf) else {
            throw .malformed("no status line")
        }
        var head = try self.statusLine(block[..<(lineEnd + 1)])
        head.fields = try self.fields(
            block, from: lineEnd + 1, maximumFieldCount: maximumFieldCount)
        return head
    }

    /// The content that follows a head (RFC 9112 §6.3), given the method that it answers.
    static func bodyLength(
        of head: ResponseHead, to method: Method
    ) throws(UpstreamFailure) -> BodyLength {
        let length = try self.contentLength(head.fields)
        let codings =
            head.version.major >= 2 ? [] : head.fields.values(FieldName(.transferEncoding))
        if method == .head || head.status.forbidsContent { return .none }
        guard !codings.isEmpty else { return length.map { .known($0) } ?? .unknown }
        guard length == nil else {
            throw .malformed("both Content-Length and Transfer-Encoding")
        }
        guard head.version == .http11 else {
            throw .malformed("Transfer-Encoding in an HTTP/1.0 response")
        }
        // No TE was sent, so no other coding was asked for; libcurl would remove what it knows.
        guard codings.count == 1, let coding = codings.first,
            coding.elementsEqual("chunked".utf8, by: { ASCII.lowercased($0) == $1 })
        else {
            throw .malformed("a transfer coding other than chunked")
        }
        return .unknown
    }

    // MARK: Lines

    private static func statusLine(
        _ line: ArraySlice<UInt8>
    ) throws(UpstreamFailure) -> ResponseHead {
        let text = try self.content(of: line)
        guard text.starts(with: "HTTP/".utf8) else { throw .malformed("not an HTTP status line") }
        var rest = text.dropFirst(5)
        let version: HTTPVersion
        if rest.starts(with: "1.1 ".utf8) {
            version = .http11
            rest = rest.dropFirst(4)
        } else if rest.starts(with: "1.0 ".utf8) {
            version = .http10
            rest = rest.dropFirst(4)
        } else if rest.starts(with: "2 ".utf8) {
            version = .http2
            rest = rest.dropFirst(2)
        } else {
            throw .malformed("an HTTP version that was not asked for")
        }
        let digits = rest.prefix(3)
        guard digits.count == 3, digits.allSatisfy(ASCII.isDigit) else {
            throw .malformed("a status code that is not three digits")
        }
        let code = digits.reduce(UInt16(0)) { $0 * 10 + UInt16($1 & 0x0F) }
        guard code >= 100 else { throw .malformed("a status code below 100") }
        rest = rest.dropFirst(3)
        guard rest.isEmpty || rest.first == ASCII.space else {
            throw .malformed("a status code that is not three digits")
        }
        let reason = rest.dropFirst()
        guard reason.allSatisfy(ASCII.isFieldValue) else {
            throw .malformed("a control character in the reason phrase")
        }
        return ResponseHead(
            status: StatusCode(code), reason: String(decoding: reason, as: UTF8.self),
            version: version)
    }

    /// A line without its end, which must be CR LF.
    private static func content(
        of line: ArraySlice<UInt8>
    ) throws(UpstreamFailure) -> ArraySlice<UInt8> {
        guard line.last == ASCII.lf, line.dropLast().last == ASCII.cr else {
            throw .malformed("a line that does not end in CR LF")
        }
        return line.dropLast(2)
    }

    /// Field lines from `start` to the empty line or the end.
    static func fields(
        _ block: [UInt8], from start: Int, maximumFieldCount: Int
    ) throws(UpstreamFailure) -> Fields {
        var lines: [Fields.Line] = []
        lines.reserveCapacity(16)
        var position = start
        while let end = block[position...].firstIndex(of: ASCII.lf) {
            let text = try self.content(of: block[position...end])
            if text.isEmpty { break }
            guard lines.count < maximumFieldCount else {
                throw UpstreamFailure(
                    .httpResponseHeaderSectionSize,
                    detail: "more than \(maximumFieldCount) field lines")
            }
            lines.append(try self.line(text, in: block))
            position = end + 1
        }
        return Fields(parsed: block, lines: lines)
    }

    private static func line(
        _ text: ArraySlice<UInt8>, in block: [UInt8]
    ) throws(UpstreamFailure) -> Fields.Line {
        guard let colon = text.firstIndex(of: ASCII.colon) else {
            throw .malformed("a field line without a colon")
        }
        let name = text[text.startIndex..<colon]
        guard !name.isEmpty, name.count <= Int(UInt16.max), name.allSatisfy(ASCII.isToken) else {
            throw .malformed("a field name that is not a token")
        }
        var value = text[(colon + 1)...]
        while let byte = value.first, ASCII.isOWS(byte) { value = value.dropFirst() }
        while let byte = value.last, ASCII.isOWS(byte) { value = value.dropLast() }
        guard value.allSatisfy(ASCII.isFieldValue) else {
            throw .malformed("a control character in a field value")
        }
        let known = unsafe name.withUnsafeBufferPointer { unsafe KnownField(matching: $0.span) }
        return Fields.Line(
            known: known, nameStart: UInt32(clamping: name.startIndex),
            nameLength: UInt16(clamping: name.count),
            valueStart: UInt32(clamping: value.startIndex),
            valueLength: UInt32(clamping: value.count))
    }

    /// The announced length; lines or list members that repeat one number are that number.
    private static func contentLength(_ fields: Fields) throws(UpstreamFailure) -> UInt64? {
        var found: UInt64?
        for line in fields.lines where line.known == .contentLength {
            for member in fields.value(of: line).split(
                separator: ASCII.comma, omittingEmptySubsequences: false)
            {
                let digits = member.drop(while: ASCII.isOWS).reversed().drop(while: ASCII.isOWS)
                guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit),
                    // libcurl counts in a signed 64-bit offset.
                    let number = Int64(String(decoding: digits.reversed(), as: UTF8.self))
                else { throw .malformed("a Content-Length that is not a number") }
                let length = UInt64(number)
                guard found == nil || found == length else {
                    throw .malformed("Content-Length given twice, differently")
                }
                found = length
            }
        }
        return found
    }
}

extension UpstreamFailure {
    /// The origin broke the rules of HTTP.
    static func malformed(_ detail: String) -> UpstreamFailure {
        UpstreamFailure(.httpProtocolError, detail: detail)
    }
}
