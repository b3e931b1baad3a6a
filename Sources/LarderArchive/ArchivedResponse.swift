package import LarderHTTP

/// A stored response, or one stored part of it, as Larder writes it into an archive and reads it back.
///
/// What WARC has no name for stands in fields of the `response` record whose names begin with
/// `Larder-`; the fields of the request that select it are those of the `request` record before it.
/// Both together say all that a store knows of a response but its body.
package struct ArchivedResponse: Sendable, Equatable {
    /// A part of what was stored of a representation.
    package struct Part: Sendable, Equatable {
        package var range: Range<UInt64>
        /// nil where the length of the whole is not known.
        package var completeLength: UInt64?
        /// Which part it is, counted from zero, and how many there are.
        package var index: Int
        package var count: Int

        package init(range: Range<UInt64>, completeLength: UInt64?, index: Int, count: Int) {
            self.range = range
            self.completeLength = completeLength
            self.index = index
            self.count = count
        }
    }

    package var uri: TargetURI
    package var partition = ""
    package var method = Method.get
    package var status: StatusCode
    package var reason: String
    /// As they are stored.
    package var fields: Fields
    /// The fields of the request that `Vary` names.
    package var varyingFields = Fields()
    package var trailers = Fields()
    package var requestTime: Timestamp
    package var responseTime: Timestamp
    package var storedTime: Timestamp
    package var lastUsed: Timestamp
    package var hits: UInt64 = 0
    package var isInvalidated = false
    /// A request with credentials led to it (RFC 9111 §3.5).
    package var answersCredentials = false
    /// nil for a whole response.
    package var part: Part?
    /// The length in bytes of what follows its head in the archive.
    package var contentLength: UInt64

    package init(
        uri: TargetURI, status: StatusCode, reason: String, fields: Fields,
        requestTime: Timestamp, responseTime: Timestamp, storedTime: Timestamp,
        lastUsed: Timestamp, contentLength: UInt64
    ) {
        self.uri = uri
        self.status = status
        self.reason = reason
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.storedTime = storedTime
        self.lastUsed = lastUsed
        self.contentLength = contentLength
    }

    /// The version of the fields that this writes; another one is not read as Larder's own.
    package static let format = "1"
}

// MARK: Writing

extension ArchivedResponse {
    /// The HTTP head that stands before the content: with the length of just that content, and that of
    /// a 206 for a part.
    package func responseHead() -> [UInt8] {
        let reason = self.part == nil ? self.reason : StatusCode.partialContent.reasonPhrase
        let status = self.part == nil ? self.status : .partialContent
        let safe = String(
            reason.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : Character($0) })
        var out = Array("HTTP/1.1 \(status) \(safe)\r\n".utf8)
        self.framedFields().serialize(into: &out)
        return out + [ASCII.cr, ASCII.lf]
    }

    /// The stored fields with the length of the content in place of the one that was stored.
    private func framedFields() -> Fields {
        var framed = Fields()
        var isTold = self.status.forbidsContent && self.part == nil
        for line in self.fields.lines {
            if line.known == .contentLength {
                if !isTold { framed.append("Content-Length", String(self.contentLength)) }
                isTold = true
            } else {
                framed.append(line, of: self.fields)
            }
        }
        if !isTold { framed.append("Content-Length", String(self.contentLength)) }
        if let part = self.part {
            let value = ContentRange.bytes(part.range, of: part.completeLength).value
            framed.append("Content-Range", value)
        }
        return framed
    }

    /// A request that this answers: its line, `Host`, `Range` for a part, and what `Vary` names.
    package func requestHead() -> [UInt8] {
        var out = Array("\(self.method.rawValue) \(self.uri.pathAndQuery) HTTP/1.1\r\n".utf8)
        out += Array("Host: \(self.uri.authority)\r\n".utf8)
        if let range = self.part?.range {
            out += Array("Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)\r\n".utf8)
        }
        self.varyingFields.serialize(into: &out)
        return out + [ASCII.cr, ASCII.lf]
    }

    /// What the `response` record says beyond WARC's own fields.
    ///
    /// - Parameter object: the same for all parts of one stored response.
    package func larderFields(object: String) -> Fields {
        var fields = Fields()
        fields.append("Larder-Format", Self.format)
        fields.append("Larder-Object", object)
        fields.append("Larder-Request-Time", WARCDate.format(self.requestTime))
        fields.append("Larder-Stored-Time", WARCDate.format(self.storedTime))
        fields.append("Larder-Last-Used", WARCDate.format(self.lastUsed))
        fields.append("Larder-Hits", String(self.hits))
        if !self.partition.isEmpty { fields.append("Larder-Partition", self.partition) }
        if self.isInvalidated { fields.append("Larder-Invalidated", "yes") }
        if self.answersCredentials { fields.append("Larder-Authorized", "yes") }
        let lengths = self.fields.values(FieldName(.contentLength))
        let asWritten = [Array(String(self.contentLength).utf8)]
        if lengths.map({ Array($0) }) != asWritten {
            if lengths.isEmpty { fields.append("Larder-Content-Length", "none") }
            // A line for each: a value may be a list itself (RFC 9112 §6.3).
            for length in lengths { fields.append("Larder-Content-Length", Array(length)) }
        }
        if let part = self.part {
            fields.append("Larder-Part", "\(part.index + 1)/\(part.count)")
            fields.append("Larder-Status", "\(self.status) \(self.reason)")
        }
        for line in self.trailers.lines {
            // Byte by byte: what is no UTF-8 (RFC 9110 §5.5, obs-text) stays what it is.
            fields.append(
                "Larder-Trailer",
                Array(self.trailers.name(of: line)) + Array(": ".utf8)
                    + Array(self.trailers.value(of: line)))
        }
        return fields
    }
}

// MARK: Reading

extension ArchivedResponse {
    /// Why a record that bears Larder's fields is not what Larder writes.
    package enum Damage: String, Error, Sendable, CaseIterable {
        case times = "a time is missing or malformed"
        case fields = "a field of Larder's is malformed"
        case part = "the part does not fit its range"
        case uri = "the URI is malformed"
    }

    /// Whether a record bears the fields that `larderFields` writes.
    package static func isOwn(_ record: WARCHead) -> Bool {
        record.fields.string("Larder-Format") == self.format
    }

    /// Reads back what was written.
    ///
    /// - Parameters:
    ///   - request: the fields of the `request` record, in their order.
    ///   - contentLength: of the content behind the head.
    package init(
        _ record: WARCHead, _ head: ResponseHead, request: Fields, contentLength: UInt64
    ) throws(Damage) {
        guard let uri = record.targetURI.flatMap({ TargetURI(text: $0) }) else { throw .uri }
        guard let response = record.date,
            let sent = Self.time("Larder-Request-Time", record),
            let stored = Self.time("Larder-Stored-Time", record)
        else { throw .times }
        // How it was used is for a reader's information: no store takes it back.
        let used = Self.time("Larder-Last-Used", record) ?? response
        self.init(
            uri: uri, status: head.status, reason: head.reason, fields: head.fields,
            requestTime: sent, responseTime: response, storedTime: stored, lastUsed: used,
            contentLength: contentLength)
        self.partition = record.fields.string("Larder-Partition") ?? ""
        if self.partition.contains(" ") { throw .fields }
        self.hits = record.fields.first("Larder-Hits").flatMap { UInt64(exactDigits: $0) } ?? 0
        self.isInvalidated = record.fields.contains("Larder-Invalidated")
        self.answersCredentials = record.fields.contains("Larder-Authorized")
        try self.readPart(record, head)
        try self.readLength(record)
        try self.readTrailers(record)
        self.readRequest(request)
    }

    private static func time(_ name: FieldName, _ record: WARCHead) -> Timestamp? {
        record.fields.first(name).flatMap { WARCDate.parse($0) }
    }

    private mutating func readPart(_ record: WARCHead, _ head: ResponseHead) throws(Damage) {
        guard let text = record.fields.first("Larder-Part") else {
            guard head.status != .partialContent else { throw .part }
            return
        }
        let numbers = text.split(separator: UInt8(ascii: "/"))
        guard numbers.count == 2, let index = UInt64(exactDigits: numbers[0]),
            let count = UInt64(exactDigits: numbers[1]), index >= 1, index <= count,
            count <= 1_024, head.status == .partialContent,
            let last = head.fields.lines.last, last.known == .contentRange,
            case .bytes(let range, let length)? = ContentRange(
                parsing: head.fields.value(of: last)),
            range.upperBound - range.lowerBound == self.contentLength,
            let status = record.fields.first("Larder-Status"), status.count >= 3,
            let code = UInt64(exactDigits: status.prefix(3)), (200..<600).contains(code)
        else { throw .part }
        self.part = Part(
            range: range, completeLength: length, index: Int(index) - 1, count: Int(count))
        self.status = StatusCode(UInt16(code))
        self.reason = String(decoding: status.dropFirst(4), as: UTF8.self)
        self.fields.remove(FieldName(.contentRange))
    }

    /// Puts the stored length back where the content's own stands.
    private mutating func readLength(_ record: WARCHead) throws(Damage) {
        var values = record.fields.values("Larder-Content-Length").map { Array($0) }
        if values.isEmpty { return }
        if values == [Array("none".utf8)] { values = [] }
        try Self.checkLengths(values)
        var fields = Fields()
        var isPlaced = false
        for line in self.fields.lines {
            if line.known != .contentLength {
                fields.append(line, of: self.fields)
            } else if !isPlaced {
                for value in values { fields.append("Content-Length", value) }
                isPlaced = true
            }
        }
        // A 204 has none in the archive.
        if !isPlaced { for value in values { fields.append("Content-Length", value) } }
        self.fields = fields
    }

    /// Throws where no response that was stored bore these.
    private static func checkLengths(_ values: [[UInt8]]) throws(Damage) {
        var fields = Fields()
        for value in values { fields.append("Content-Length", value) }
        do throws(HeadError) {
            _ = try MessageFraming.contentLength(of: fields)
        } catch {
            throw .fields
        }
    }

    private mutating func readTrailers(_ record: WARCHead) throws(Damage) {
        for value in record.fields.values("Larder-Trailer") {
            guard let colon = value.firstIndex(of: ASCII.colon), colon > value.startIndex,
                value[..<colon].allSatisfy(ASCII.isToken)
            else { throw .fields }
            self.trailers.append(
                String(decoding: value[..<colon], as: UTF8.self),
                value[(colon + 1)...].trimmingOWS())
        }
    }

    /// `Host` comes first, `Range` second where this is a part; the rest is what `Vary` names.
    private mutating func readRequest(_ request: Fields) {
        let own = self.part == nil ? 1 : 2
        for line in request.lines.dropFirst(own) { self.varyingFields.append(line, of: request) }
    }
}
