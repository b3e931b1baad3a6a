import LarderHTTP
import NIOCore
import Testing

@testable import LarderArchive

@Suite("Responses in archives")
struct ResponseBlockTests {
    private struct Reading: Equatable {
        var status: Int?
        var content = ""
        var trailers: Int?
        var failure: ResponseBlock.Failure?
    }

    private static func read(_ text: String, piece: Int) -> Reading {
        var reading = Reading()
        var block = ResponseBlock(to: .get, blockLength: UInt64(text.utf8.count))
        var buffer = ByteBuffer()
        var rest = Array(text.utf8)[...]
        do throws(ResponseBlock.Failure) {
            while !rest.isEmpty {
                buffer.writeBytes(rest.prefix(piece))
                rest = rest.dropFirst(piece)
                events: while true {
                    switch try block.next(&buffer) {
                    case .head(let head, _): reading.status = Int(head.status.rawValue)
                    case .piece(let bytes): reading.content += String(buffer: bytes)
                    case .needMore: break events
                    }
                }
            }
            reading.trailers = try block.finish().count
        } catch {
            reading.failure = error
        }
        return reading
    }

    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let plain = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"

    @Test(
        "are read to their end, and not beyond, whatever the pieces they come in",
        arguments: [1, 2, 7, 60, Int.max])
    func pieces(_ piece: Int) {
        func read(_ text: String) -> Reading { Self.read(text, piece: piece) }
        let whole = Reading(status: 200, content: "hello", trailers: 0)
        #expect(read(Self.plain + "hello") == whole)
        #expect(read(Self.chunked + "5\r\nhello\r\n0\r\n\r\n") == whole)
        #expect(read(Self.chunked + "5\r\nhello\r\n0\r\na: b\r\n\r\n").trailers == 1)
        #expect(read(Self.plain + "hello, world").failure == .wrongLength)
        #expect(read(Self.chunked + "5\r\nhello\r\n").failure == .incomplete)
        let behind = read(Self.chunked + "5\r\nhello\r\n0\r\n\r\nmore")
        #expect(behind.content == "hello")
        guard case .malformed(let error) = behind.failure else {
            Issue.record("bytes behind the content: \(behind)")
            return
        }
        #expect(error.reason == .badChunkEnd)
    }
}
