import Foundation
import NIOCore

/// One connection of the origin: takes requests apart, as far as well-behaved clients send them, and
/// writes the answers.
final class TourConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        case head
        /// This many bytes of content are to come.
        case content(TourOrigin.Seen, left: Int)
        /// Chunks are to come.
        case chunks(TourOrigin.Seen)
        case answering
    }

    private let ask: @Sendable (TourOrigin.Seen, @escaping @Sendable (TourAnswer) -> Void) -> Void
    private var state = State.head
    private var received = ByteBuffer()

    init(
        ask:
            @escaping @Sendable (
                TourOrigin.Seen, @escaping @Sendable (TourAnswer) -> Void
            ) -> Void
    ) {
        self.ask = ask
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = self.unwrapInboundIn(data)
        self.received.writeBuffer(&piece)
        self.advance(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func advance(_ context: ChannelHandlerContext) {
        while true {
            switch self.state {
            case .head:
                guard let request = self.takeHead() else { return }
                if request.field("transfer-encoding")?.lowercased() == "chunked" {
                    self.state = .chunks(request)
                } else {
                    let length = request.field("content-length").flatMap { Int($0) } ?? 0
                    self.state = .content(request, left: length)
                }
            case .content(var request, let left):
                let taken = min(left, self.received.readableBytes)
                self.received.moveReaderIndex(forwardBy: taken)
                request.contentLength += taken
                self.state = .content(request, left: left - taken)
                guard left == taken else { return }
                return self.answer(request, context)
            case .chunks(var request):
                guard let size = self.takeChunk() else { return }
                request.contentLength += size
                self.state = .chunks(request)
                if size == 0 { return self.answer(request, context) }
            case .answering: return
            }
        }
    }

    private func takeHead() -> TourOrigin.Seen? {
        guard let text = self.takeText(through: "\r\n\r\n") else { return nil }
        let lines = text.split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ")
        let fields = lines.dropFirst().map { line in
            let name = line.prefix { $0 != ":" }
            let value = line.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            return (name: String(name), value: value)
        }
        return TourOrigin.Seen(
            method: words.first.map { String($0) } ?? "",
            path: words.count > 1 ? String(words[1]) : "", fields: fields)
    }

    /// The size of the next chunk, which is taken with its content; nil while it is not whole.
    private func takeChunk() -> Int? {
        let before = self.received
        guard let line = self.takeText(through: "\r\n"), let size = Int(line, radix: 16),
            self.received.readableBytes >= size + 2
        else {
            self.received = before
            return nil
        }
        self.received.moveReaderIndex(forwardBy: size + 2)
        return size
    }

    /// What stands before an end mark, which is taken, too.
    private func takeText(through end: String) -> String? {
        let bytes = Data(self.received.readableBytesView)
        guard let place = bytes.range(of: Data(end.utf8)) else { return nil }
        self.received.moveReaderIndex(forwardBy: place.upperBound - bytes.startIndex)
        return String(decoding: bytes[..<place.lowerBound], as: UTF8.self)
    }

    private func answer(_ request: TourOrigin.Seen, _ context: ChannelHandlerContext) {
        self.state = .answering
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        self.ask(request) { answer in
            loop.execute {
                let (connection, context) = bound.value
                connection.write(answer, context)
            }
        }
    }

    private func write(_ answer: TourAnswer, _ context: ChannelHandlerContext) {
        var bytes = context.channel.allocator.buffer(string: answer.head)
        bytes.writeBytes(answer.content.prefix(answer.stallsAfter ?? answer.content.count))
        context.writeAndFlush(self.wrapOutboundOut(bytes), promise: nil)
        guard answer.stallsAfter == nil else { return }
        self.state = .head
        self.advance(context)
    }
}
