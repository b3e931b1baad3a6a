import LarderHTTP
import Testing

@Suite("Several ranges (RFC 9110 §14.2, §15.3.7.2, §17.15)")
struct MultipartByteRangesTests {
    @Test(
        "are given as asked for, joined, or refused",
        arguments: [
            ("0-4, 10-14", [0..<5, 10..<15]), ("10-14, 0-4", [10..<15, 0..<5]),
            ("0-4, 5-9", [0..<10]), ("0-4, 3-9, 50-59", [0..<10, 50..<60]),
            ("50-59, 0-4, 60-69", [50..<70, 0..<5]), ("0-4, 20-29, 5-19", [0..<30]),
            ("0-4, 2000-", [0..<5]), ("2000-, 3000-", []), ("-5, 0-4", [995..<1000, 0..<5]),
            ("0-0", [0..<1]), ("0-", [0..<1000]),
            // As much as the whole has, or more than two that overlap, or many tiny ones.
            ("0-499, 500-999", nil), ("0-5, 2-7, 4-9", nil), ("0-998, 999-999", nil),
            (
                "0-1,4-5,8-9,12-13,16-17,20-21,24-25",
                [
                    0..<2, 4..<6, 8..<10, 12..<14, 16..<18, 20..<22, 24..<26,
                ]
            ),
            ("0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29", nil),
        ] as [(String, [Range<UInt64>]?)])
    func parts(_ text: String, _ parts: [Range<UInt64>]?) throws {
        let set = try #require(RangeSet.parse(Array("bytes=\(text)".utf8)[...]))
        #expect(set.parts(length: 1000) == parts)
    }

    @Test("of an empty representation cannot be given")
    func empty() {
        #expect(RangeSet([.from(0, through: 4), .from(9, through: 9)]).parts(length: 0) == [])
        #expect(RangeSet([.suffix(4), .suffix(9)]).parts(length: 0) == nil)
        #expect(RangeSet([.suffix(4)]).parts(length: 0) == nil)
    }

    @Test("are framed as RFC 2046 §5.1.1 says, and their length is known beforehand")
    func framing() {
        let framing = MultipartByteRanges(
            ranges: [0..<2, 5..<6], completeLength: 9,
            contentType: Array("text/plain".utf8)[...], boundary: "xyz")
        #expect(framing.mediaType == "multipart/byteranges; boundary=xyz")
        let whole =
            framing.opening(ofPart: 0) + Array("ab".utf8) + framing.opening(ofPart: 1)
            + Array("f".utf8) + framing.closing
        #expect(
            String(decoding: whole, as: UTF8.self)
                == "--xyz\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/9\r\n\r\nab"
                + "\r\n--xyz\r\nContent-Type: text/plain\r\nContent-Range: bytes 5-5/9\r\n\r\nf"
                + "\r\n--xyz--\r\n")
        #expect(framing.length == UInt64(whole.count))
        #expect(framing.opening(ofPart: 2).isEmpty)
        let untyped = MultipartByteRanges(
            ranges: [0..<2], completeLength: 9, contentType: nil, boundary: "xyz")
        #expect(
            untyped.opening(ofPart: 0)
                == Array("--xyz\r\nContent-Range: bytes 0-1/9\r\n\r\n".utf8))
    }

    @Test("have no length that does not fit")
    func overflow() {
        let huge = MultipartByteRanges(
            ranges: [0..<(.max - 1), 0..<(.max - 1)], completeLength: .max, contentType: nil,
            boundary: "x")
        #expect(huge.length == nil)
    }
}
