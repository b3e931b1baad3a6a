package import LarderHTTP

/// What a 206 says it holds (RFC 9110 §15.3.7).
package enum PartialContent: Sendable, Equatable {
    /// One part.
    case part(Part)
    /// Several, as `multipart/byteranges`, or none that can be told.
    case notStorable(PolicyReason)

    /// The one range of a 206.
    package struct Part: Sendable, Hashable {
        /// Never empty.
        package let range: Range<UInt64>
        /// The length of the whole; nil where the origin does not know it.
        package let completeLength: UInt64?

        package init(range: Range<UInt64>, completeLength: UInt64?) {
            self.range = range
            self.completeLength = completeLength
        }

        /// How many bytes the part has.
        package var length: UInt64 { self.range.upperBound - self.range.lowerBound }
    }

    /// Reads the head of a 206.
    ///
    /// Where the framing tells the content's length, it must be that of the range; where it does not,
    /// whoever reads the content must count.
    package static func read(
        _ response: ResponseHead, bodyLength: BodyLength, to request: Request
    ) -> PartialContent {
        // "in response to a range request": without one there is nothing that it could be a part of.
        guard response.status == .partialContent, request.fields.has(.range) else {
            return .notStorable(.contradictory)
        }
        let isMultipart = response.fields.values(FieldName(.contentType)).contains {
            $0.prefix(while: { $0 != ASCII.semicolon }).trimmingOWS()
                .spells("multipart/byteranges")
        }
        let ranges = response.fields.values(FieldName(.contentRange))
        if isMultipart {
            // §15.3.7.2: Content-Range "MUST NOT" stand in the head of a multipart response.
            return .notStorable(ranges.isEmpty ? .multipartResponse : .contradictory)
        }
        guard let value = ranges.first, ranges.allSatisfy({ $0 == value }),
            case .bytes(let range, let length)? = ContentRange(parsing: value),
            // Beyond this no content length and no offset of a file could follow.
            max(length ?? 0, range.upperBound) <= UInt64(Int64.max)
        else { return .notStorable(.contradictory) }
        let part = Part(range: range, completeLength: length)
        switch bodyLength {
        case .known(part.length), .unknown: return .part(part)
        case .known, .none: return .notStorable(.contradictory)
        }
    }

    /// Whether the head of a 206 may begin a stored response of its own (RFC 9111 §3.3).
    ///
    /// To a request with `If-Range` an origin may leave out fields that its 200 would have
    /// (RFC 9110 §15.3.7): only one that names the type of the content is taken for complete.
    package static func hasAllFields(_ response: ResponseHead, to request: Request) -> Bool {
        !request.fields.has(.ifRange) || response.fields.has(.contentType)
    }

    /// Takes out what is computed of the content of just one message (RFC 9530 §2, and the obsolete
    /// `Content-MD5`): of a part it is wrong for the whole, and the other way round.
    static func removeOwnDigests(from fields: inout Fields) {
        fields.remove(FieldName("Content-Digest"))
        fields.remove(FieldName("Content-MD5"))
    }
}

extension StoredHead {
    /// The head under which the part of a 206 is stored: that of the 200 of which it is a part
    /// (RFC 9111 §3.3).
    package init(
        storing response: ResponseHead, part: PartialContent.Part, to request: Request,
        requestTime: Timestamp, responseTime: Timestamp,
        configuration: PolicyConfiguration = PolicyConfiguration()
    ) {
        self.init(
            storing: response, to: request, requestTime: requestTime, responseTime: responseTime,
            configuration: configuration)
        self.status = .ok
        self.reason = "OK"
        self.fields.remove(FieldName(.contentRange))
        self.fields.remove(FieldName(.contentLength))
        PartialContent.removeOwnDigests(from: &self.fields)
        if let length = part.completeLength {
            self.fields.append("Content-Length", String(length))
        }
        self.extent = StoredExtent(completeLength: part.completeLength, ranges: [part.range])
    }

    /// The length of the whole representation: that of the stored content where it is complete.
    ///
    /// - Parameter bodyLength: of the stored content; counts for a complete response only.
    package func completeLength(bodyLength: UInt64) -> UInt64? {
        self.extent.map { $0.completeLength } ?? bodyLength
    }
}
