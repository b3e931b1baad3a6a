import LarderHTTP
import NIOCore
import Testing

/// What came of feeding bytes to a parser: the messages it made, the error it ended with, the bytes
/// it left.
struct Reading<Message: Equatable>: Equatable, CustomStringConvertible {
    var messages: [Message] = []
    var error: HeadError?
    var rest: [UInt8] = []

    var description: String {
        "\(self.messages) error: \(String(describing: self.error)) rest: \(self.rest.count)"
    }
}

extension Reading where Message == RequestHead {
    /// Feeds pieces to one parser, as a connection does.
    static func requests(_ pieces: [ArraySlice<UInt8>], limits: HeadLimits = HeadLimits()) -> Self {
        var parser = RequestHeadParser(limits: limits)
        var buffer = ByteBuffer()
        var reading = Reading()
        do throws(HeadError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                while let head = try parser.parse(&buffer) {
                    reading.messages.append(head)
                }
            }
        } catch {
            reading.error = error
            return reading
        }
        reading.rest = Array(buffer.readableBytesView)
        return reading
    }
}

/// Every way to cut `bytes` in two, and the way to cut it into single bytes.
func splits(_ bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
    bytes.indices.map { [bytes[..<$0], bytes[$0...]] }
        + [bytes.indices.map { bytes[$0...$0] }]
}

/// Text with `\n` standing for CRLF, so that tables stay readable.
func wire(_ text: String) -> [UInt8] {
    Array(text.replacing("\n", with: "\r\n").utf8)
}

extension String {
    func replacing(_ old: Character, with new: String) -> String {
        self.map { $0 == old ? new : String($0) }.joined()
    }
}

/// One head from a block.
///
/// A function, because `#expect` cannot hold a `Span`.
func responseHead(_ block: [UInt8]) throws(HeadError) -> ResponseHead {
    try ResponseHeadParser.parse(block: block.span)
}

func trailerFields(_ block: [UInt8]) throws(HeadError) -> Fields {
    try Fields(parsing: block.span)
}
