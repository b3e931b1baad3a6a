import LarderHTTP
import NIOCore
import Testing

/// What came of decoding: content joined, trailers, error, bytes left.
struct Decoding: Equatable {
    var content: [UInt8] = []
    var trailers: Fields?
    var error: HeadError.Reason?
    var rest: [UInt8] = []
    var largestPiece = 0

    static func of(_ pieces: [ArraySlice<UInt8>], limits: ChunkLimits = ChunkLimits()) -> Decoding {
        var decoder = ChunkedDecoder(limits: limits)
        var buffer = ByteBuffer()
        var result = Decoding()
        do throws(HeadError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                steps: while result.trailers == nil {
                    switch try decoder.decode(&buffer) {
                    case .piece(let piece):
                        result.content += Array(piece.readableBytesView)
                        result.largestPiece = max(result.largestPiece, piece.readableBytes)
                    case .needMore: break steps
                    case .end(let trailers): result.trailers = trailers
                    }
                }
            }
        } catch {
            result.error = error.reason
            return result
        }
        result.rest = Array(buffer.readableBytesView)
        return result
    }

    static func == (a: Decoding, b: Decoding) -> Bool {
        a.content == b.content && a.trailers == b.trailers && a.error == b.error && a.rest == b.rest
    }
}

@Suite("The chunked transfer coding (RFC 9112 §7.1)")
struct ChunkedTests {
    @Test(
        "is decoded whole, split at every byte, and glued",
        arguments: [
            ("0\n\n", "", [:]), ("5\nhello\n0\n\n", "hello", [:]),
            ("0005\nhello\n1;a=\"b;c\"\n!\n000\n\n", "hello!", [:]),
            ("A\n0123456789\na \t;x\n0123456789\n0;last\n\n", "01234567890123456789", [:]),
            ("1\n\u{0}\n0\nX: y\nEtag: \"1\"\n\n", "\u{0}", ["X": "y", "Etag": "\"1\""]),
            (
                "2\nab\n0\nContent-Length: 4\nHost: x\nA: b\nTransfer-Encoding: chunked\n\n", "ab",
                ["A": "b"]
            ),
        ] as [(String, String, Fields)])
    func valid(_ text: String, _ content: String, _ trailers: Fields) {
        let bytes = wire(text)
        let expected = Decoding(content: Array(content.utf8), trailers: trailers)
        #expect(Decoding.of([bytes[...]]) == expected)
        for pieces in splits(bytes) { #expect(Decoding.of(pieces) == expected) }
        let next = Array("GET / HTTP/1.1".utf8)
        let glued = Decoding(content: Array(content.utf8), trailers: trailers, rest: next)
        #expect(Decoding.of([(bytes + next)[...]]) == glued)
        for end in bytes.indices {
            let part = Decoding.of([bytes[..<end]])
            #expect(part.trailers == nil && part.error == nil)
        }
    }

    @Test(
        "is refused",
        arguments: [
            ("\n", .badChunkSize), ("x\n", .badChunkSize), ("-1\n", .badChunkSize),
            ("+1\n", .badChunkSize), (" 1\n", .badChunkSize), ("0x1\na\n", .badChunkSize),
            ("1 \na\n", .badChunkSize), ("1 2\n", .badChunkSize), (";a\n", .badChunkSize),
            ("1;\u{0}\n", .badChunkSize), ("1g\n", .badChunkSize),
            ("8000000000000000\n", .chunkSizeOverflow), ("fffffffffffffffff\n", .chunkSizeOverflow),
            ("1\na0\n\n", .badChunkEnd), ("1\nab\n0\n\n", .badChunkEnd),
            ("1\na\u{D}0", .badChunkEnd),
            ("1\u{D}a", .bareCR), ("1;x\u{D}y\n", .bareCR), ("0\n\u{D}x", .bareCR),
            ("0\nA : b\n\n", .spaceBeforeColon), ("0\nA: b\n c\n\n", .foldedLine),
            ("0\nA\n\n", .missingColon),
        ] as [(String, HeadError.Reason)])
    func bad(_ text: String, _ reason: HeadError.Reason) {
        let bytes = wire(text)
        let whole = Decoding.of([bytes[...]])
        #expect(whole.error == reason)
        for pieces in splits(bytes) { #expect(Decoding.of(pieces) == whole) }
    }

    @Test(
        "has no line end but CRLF",
        arguments: [
            "1\na\r\n0\r\n\r\n", "1;x\na\r\n0\r\n\r\n", "1\r\na\n0\r\n\r\n", "1\r\na\r\n0\n\r\n",
            "1\r\na\r\n0\r\n\n", "1\r\na\r\n0\r\nA: b\n\r\n",
        ])
    func bareLF(_ text: String) {
        let error = Decoding.of([Array(text.utf8)[...]]).error
        #expect(error == .bareLF || error == .badChunkEnd)
    }

    @Test("the largest size that can be counted is waited for")
    func largest() {
        let decoding = Decoding.of([wire("7fffffffffffffff\nabc")[...]])
        #expect(decoding.error == nil)
        #expect(decoding.content == Array("abc".utf8))
    }

    @Test("bounds size lines, extensions, trailers and pieces")
    func limits() {
        let limits = ChunkLimits(line: 8, extensions: 10, trailers: 24, trailerCount: 2, piece: 4)
        func decode(_ text: String) -> Decoding {
            let bytes = wire(text)
            let whole = Decoding.of([bytes[...]], limits: limits)
            for pieces in splits(bytes) { #expect(Decoding.of(pieces, limits: limits) == whole) }
            return whole
        }
        #expect(decode("00000001\na\n0\n\n").trailers != nil)
        #expect(decode("000000001\na\n0\n\n").error == .chunkExtensionTooLong)
        #expect(decode("1  \t   ;a\na\n0\n\n").trailers != nil)
        #expect(decode("1  \t    ;a\na\n0\n\n").error == .chunkExtensionTooLong)
        // Of one chunk.
        #expect(decode("1;1234567890\na\n0\n\n").trailers != nil)
        #expect(decode("1;12345678901\na\n0\n\n").error == .chunkExtensionTooLong)
        #expect(decode("f;12345678901\n123456789012345\n0\n\n").error == .chunkExtensionTooLong)
        // Of all of them, beyond the content.
        #expect(decode("1;123456\na\n1;12345\na\n0;1\n\n").trailers != nil)
        #expect(decode("1;123456\na\n1;123456\na\n0\n\n").error == .chunkExtensionTooLong)
        #expect(decode("1;123456\na\n1;12345\na\n0;12\n\n").error == .chunkExtensionTooLong)
        let paid = String(repeating: "a;1234567890\n1234567890\n", count: 50)
        #expect(decode(paid + "0\n\n").content.count == 500)
        #expect(decode("0\nA: 123456789012345678\n\n").error == .trailersTooLarge)
        #expect(decode("0\nA: 12345678901234567\n\n").trailers != nil)
        #expect(decode("0\nA:\nB:\nC:\n\n").error == .tooManyFields)
        let big = decode("f\n123456789012345\n0\n\n")
        #expect(big.content.count == 15)
        #expect(big.largestPiece == 4)
    }

    @Test("once ended, it takes nothing further")
    func ended() throws {
        var decoder = ChunkedDecoder()
        var buffer = ByteBuffer(bytes: wire("0\n\nGET"))
        #expect(try decoder.decode(&buffer) == .end(trailers: Fields()))
        #expect(try decoder.decode(&buffer) == .end(trailers: Fields()))
        #expect(buffer.readableBytes == 3)
    }

    @Test("takes chunks of any size", arguments: [1, 9, 10, 15, 16, 255, 256, 65_535, 65_536])
    func sizes(_ length: Int) {
        let data = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = wire("\(String(length, radix: 16))\n") + data + wire("\n0\nDigest: x\n\n")
        #expect(
            Decoding.of([bytes[...]]) == Decoding(content: data, trailers: ["Digest": "x"]))
    }
}
