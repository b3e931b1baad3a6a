/// The framing of `multipart/byteranges` (RFC 9110 §14.6): what stands before, between and behind the
/// parts, and how long it all is.
///
/// A value that knows no content: whoever sends it puts the bytes of each range between the texts.
package struct MultipartByteRanges: Sendable, Equatable {
    package let boundary: String
    /// The parts, in the order in which they are sent.
    package let ranges: [Range<UInt64>]
    /// The length of the whole representation.
    package let completeLength: UInt64
    /// The representation's own media type, as the origin gave it; nil where it gave none.
    package let contentType: FieldValue?

    /// - Parameter boundary: must not occur in the content. Random digits of at least 128 bits make
    ///   that as good as sure without reading it beforehand.
    package init(
        ranges: [Range<UInt64>], completeLength: UInt64, contentType: FieldValue?,
        boundary: String
    ) {
        self.ranges = ranges
        self.completeLength = completeLength
        self.contentType = contentType
        self.boundary = boundary
    }

    /// The media type of the answer.
    package var mediaType: String { "multipart/byteranges; boundary=\(self.boundary)" }

    /// What stands before the bytes of a part: the delimiter and the part's fields.
    ///
    /// - Parameter index: of one of `ranges`.
    package func opening(ofPart index: Int) -> [UInt8] {
        guard self.ranges.indices.contains(index) else { return [] }
        var text: [UInt8] = []
        // The CRLF before a delimiter belongs to it (RFC 2046 §5.1.1); nothing precedes the first.
        if index > 0 { text.append(contentsOf: "\r\n".utf8) }
        text.append(contentsOf: "--\(self.boundary)\r\n".utf8)
        if let type = self.contentType {
            text.append(contentsOf: "Content-Type: ".utf8)
            text.append(contentsOf: type)
            text.append(contentsOf: "\r\n".utf8)
        }
        let range = ContentRange.bytes(self.ranges[index], of: self.completeLength)
        text.append(contentsOf: "Content-Range: \(range.value)\r\n\r\n".utf8)
        return text
    }

    /// What stands behind the last part.
    package var closing: [UInt8] { Array("\r\n--\(self.boundary)--\r\n".utf8) }

    /// The exact length of the answer's content; nil where it cannot be written as a number.
    package var length: UInt64? {
        var total = UInt64(self.closing.count)
        for (index, range) in self.ranges.enumerated() {
            let own = UInt64(self.opening(ofPart: index).count)
            let (withOpening, overflow) = total.addingReportingOverflow(own)
            let (sum, carry) = withOpening.addingReportingOverflow(
                range.upperBound - range.lowerBound)
            guard !overflow, !carry else { return nil }
            total = sum
        }
        return total
    }
}
