import LarderHTTP

/// Reads what an origin sends around its content, by the one parser of heads (RFC 9112 §4–§6).
///
/// A block is a whole head with its empty line, as libcurl hands it on line by line; an HTTP/2 head
/// comes in the dress of HTTP/1 (`HTTP/2 200`).
enum OriginHead {
    /// Takes a head apart, or says which rule it breaks.
    static func parse(
        _ block: [UInt8], limits: HeadLimits
    ) throws(UpstreamFailure) -> ResponseHead {
        do throws(HeadError) {
            return try ResponseHeadParser.parse(block: block.span, limits: limits)
        } catch {
            throw UpstreamFailure(error)
        }
    }

    /// Field lines without an empty line at the end: a trailer section.
    static func trailers(
        _ block: [UInt8], limits: HeadLimits
    ) throws(UpstreamFailure) -> Fields {
        do throws(HeadError) {
            return try Fields(parsing: block.span, limits: limits)
        } catch {
            throw UpstreamFailure(error)
        }
    }

    /// The content that follows a head (RFC 9112 §6.3), given the method that it answers.
    static func bodyLength(
        of head: ResponseHead, to method: Method
    ) throws(UpstreamFailure) -> BodyLength {
        do throws(HeadError) {
            // Of what it knows libcurl would undo the coding.
            return try MessageFraming.responseBody(of: head, to: method, hadTE: false)
        } catch {
            throw UpstreamFailure(error)
        }
    }
}

extension UpstreamFailure {
    /// The origin broke the rules of HTTP.
    static func malformed(_ detail: String) -> UpstreamFailure {
        UpstreamFailure(.httpProtocolError, cause: .badResponse, detail: detail)
    }

    /// What a rejected head says of its origin.
    init(_ error: HeadError) {
        switch error.reason {
        case .headTooLarge, .tooManyFields, .startLineTooLong:
            self.init(
                .httpResponseHeaderSectionSize, cause: .headTooLarge, detail: error.detail)
            switch error.reason {
            case .headTooLarge: self.limit = .head
            case .tooManyFields: self.limit = .fieldCount
            default: break
            }
        default:
            self.init(.httpProtocolError, cause: .badResponse, detail: error.detail)
        }
    }
}
