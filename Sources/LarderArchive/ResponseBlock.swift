package import LarderHTTP
package import NIOCore

/// Reads an HTTP response that lies in an archive as it came over the wire: its head, and its content
/// without its transfer coding.
///
/// ```
/// head ─▶ piece … piece ─▶ (block ends) finish
/// ```
package struct ResponseBlock: Sendable {
    package enum Event: Sendable {
        /// With the length of the content where that is known.
        case head(ResponseHead, BodyLength)
        case piece(ByteBuffer)
        case needMore
    }

    package enum Failure: Error, Sendable, Equatable {
        case malformed(HeadError)
        /// The content is shorter or longer than its head says.
        case wrongLength
        /// The block ends before its head or its coding does.
        case incomplete
    }

    private enum State: Sendable {
        case head
        case plain(expected: UInt64?)
        case chunked
        case ended(Fields)
    }

    private static let limits = HeadLimits(startLine: 65_536, head: 1 << 20, fieldCount: 1_024)

    private var state = State.head
    private var parser = ResponseHeadParser(limits: Self.limits, lenientLineEnds: true)
    private var decoder = ChunkedDecoder()
    private let method: Method
    /// The length of the block, where it is known: what the head leaves of it is content.
    private let blockLength: UInt64?
    private var headLength: UInt64 = 0
    private var received: UInt64 = 0

    /// - Parameters:
    ///   - method: that it answers: a HEAD has no content.
    ///   - blockLength: nil where it is not known.
    package init(to method: Method, blockLength: UInt64?) {
        self.method = method
        self.blockLength = blockLength
    }

    /// Whether the parser takes a head: it has bounds for the size and the number of fields.
    package static func canRead(_ head: [UInt8], to method: Method) -> Bool {
        var block = ResponseBlock(to: method, blockLength: nil)
        var buffer = ByteBuffer(bytes: head)
        if case .head? = try? block.next(&buffer) { return true }
        return false
    }

    /// Takes the next event from the front of `buffer`, which is consumed as far as it is read.
    package mutating func next(_ buffer: inout ByteBuffer) throws(Failure) -> Event {
        do throws(HeadError) {
            switch self.state {
            case .head:
                let before = buffer.readableBytes
                guard let head = try self.parser.parse(&buffer) else { return .needMore }
                self.headLength = UInt64(before - buffer.readableBytes)
                return .head(head, try self.begin(head))
            case .plain:
                guard buffer.readableBytes > 0,
                    let piece = buffer.readSlice(length: buffer.readableBytes)
                else { return .needMore }
                self.received += UInt64(piece.readableBytes)
                return .piece(piece)
            case .chunked:
                switch try self.decoder.decode(&buffer) {
                case .piece(let piece): return .piece(piece)
                case .needMore: return .needMore
                case .end(let trailers):
                    self.state = .ended(trailers)
                    return try Self.nothingMore(in: buffer)
                }
            case .ended: return try Self.nothingMore(in: buffer)
            }
        } catch {
            throw .malformed(error)
        }
    }

    /// Nothing of the message lies behind its end, whether it comes with the end or later.
    private static func nothingMore(in buffer: ByteBuffer) throws(HeadError) -> Event {
        guard buffer.readableBytes == 0 else { throw HeadError.behindEnd }
        return .needMore
    }

    /// The block has ended: the trailers.
    package func finish() throws(Failure) -> Fields {
        switch self.state {
        case .head, .chunked: throw .incomplete
        case .plain(let expected):
            guard expected == nil || expected == self.received else { throw .wrongLength }
            return Fields()
        case .ended(let trailers): return trailers
        }
    }

    private mutating func begin(_ head: ResponseHead) throws(HeadError) -> BodyLength {
        if try MessageFraming.isChunked(head), head.version >= .http11 {
            self.state = .chunked
            self.decoder = ChunkedDecoder(named: HopByHop.namedFields(head.fields))
            return .unknown
        }
        let announced = try MessageFraming.responseBody(of: head, to: self.method)
        switch announced {
        case .none:
            self.state = .plain(expected: 0)
            return .none
        case .known(let length):
            self.state = .plain(expected: length)
            return .known(length)
        case .unknown:
            let content = self.blockLength.map { $0 - min($0, self.headLength) }
            self.state = .plain(expected: content)
            return content.map { .known($0) } ?? .unknown
        }
    }
}

extension HeadError {
    /// There are bytes where the message has ended.
    fileprivate static var behindEnd: HeadError {
        HeadError(status: .badGateway, reason: .badChunkEnd, detail: "bytes behind the content")
    }
}
