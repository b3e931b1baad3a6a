package import LarderHTTP

/// The bytes that a response brings, and the means to ask for the rest of them where it breaks off
/// (RFC 9110 §14.2).
package struct Resumption: Sendable, Equatable {
    /// The bytes of the representation that the response brings.
    package let range: Range<UInt64>
    package let completeLength: UInt64?
    package let validator: StrongValidator

    /// What a 200 whose length is known, or a 206, would need to be resumed; nil where it lacks a
    /// strong validator, or has no content, or the request is not one that may be repeated.
    package init?(
        _ response: ResponseHead, bodyLength: BodyLength, to request: Request
    ) {
        // curl knows no conditions on ftp.
        guard request.method == .get, request.bodyLength == .none, request.uri.scheme != .ftp,
            let validator = StrongValidator(of: response.fields)
        else { return nil }
        switch response.status {
        case .ok:
            guard case .known(let length) = bodyLength, length > 0,
                !response.fields.has(.contentRange)
            else { return nil }
            self.init(range: 0..<length, completeLength: length, validator: validator)
        case .partialContent:
            guard
                case .part(let part) = PartialContent.read(
                    response, bodyLength: bodyLength, to: request)
            else { return nil }
            self.init(
                range: part.range, completeLength: part.completeLength, validator: validator)
        default: return nil
        }
    }

    package init(range: Range<UInt64>, completeLength: UInt64?, validator: StrongValidator) {
        self.range = range
        self.completeLength = completeLength
        self.validator = validator
    }

    package var length: UInt64 { self.range.upperBound - self.range.lowerBound }

    /// The request for what is missing after so many bytes; nil where nothing is.
    package func request(_ request: Request, after received: UInt64) -> Request? {
        guard received < self.length else { return nil }
        var asking = Validation.unconditional(request)
        let first = self.range.lowerBound + received
        asking.fields.append("Range", "bytes=\(first)-\(self.range.upperBound - 1)")
        asking.fields.append("If-Range", self.validator.ifRange)
        return asking
    }

    /// Whether a response brings exactly what is missing.
    package func isContinued(
        by response: ResponseHead, bodyLength: BodyLength, to asking: Request,
        after received: UInt64
    ) -> Bool {
        guard self.validator.matches(response.fields), received < self.length,
            case .part(let part) = PartialContent.read(
                response, bodyLength: bodyLength, to: asking),
            part.range == self.range.lowerBound + received..<self.range.upperBound
        else { return false }
        guard let told = part.completeLength, let known = self.completeLength else { return true }
        return told == known
    }
}
