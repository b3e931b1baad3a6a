import LarderArchive
import LarderHTTP
import NIOCore

/// An archive from anywhere: its records mean the same however the file is cut, and what is read as
/// Larder's own is written again as it was.
enum WARCPromises {
    /// What came of some bytes.
    private struct Reading: Equatable {
        var heads: [WARCHead] = []
        var blocks: [[UInt8]] = []
        var ends = 0
        var error: WARCError?
        var isBetween = false
    }

    static func check(_ input: [UInt8]) throws(Violation) {
        let whole = self.read([input[...]])
        for pieces in Pieces.some(input) {
            let cut = self.read(pieces)
            try hold(cut == whole, "cut in pieces: \(cut), whole: \(whole)")
        }
        try hold(whole.ends <= whole.heads.count, "more ends than heads: \(whole)")
        for (index, head) in whole.heads.enumerated() where index < whole.ends {
            let block = whole.blocks[index]
            try hold(
                UInt64(block.count) == head.contentLength, "a block of another length: \(head)")
            try self.checkAgain(head)
            try self.checkMessage(head, block)
        }
        if let moment = WARCDate.parse(input[...]) {
            let text = WARCDate.format(moment)
            try hold(WARCDate.parse(Array(text.utf8)[...]) == moment, "\(text) is not \(moment)")
        }
    }

    private static func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
        var reading = Reading()
        var parser = WARCParser()
        var buffer = ByteBuffer()
        do throws(WARCError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                try self.drain(&parser, &buffer, &reading)
            }
        } catch {
            reading.error = error
        }
        reading.isBetween = parser.isBetweenRecords
        return reading
    }

    private static func drain(
        _ parser: inout WARCParser, _ buffer: inout ByteBuffer, _ reading: inout Reading
    ) throws(WARCError) {
        while true {
            switch try parser.next(&buffer) {
            case .head(let head):
                reading.heads.append(head)
                reading.blocks.append([])
            case .block(let piece):
                reading.blocks[reading.blocks.count - 1] += piece.readableBytesView
            case .end: reading.ends += 1
            case .needMore: return
            }
        }
    }

    /// A head that is written is read as the same.
    private static func checkAgain(_ head: WARCHead) throws(Violation) {
        // A type is written as it is: one that is no word would be another line.
        guard head.type.utf8.allSatisfy(ASCII.isToken), !head.type.isEmpty else { return }
        var buffer = ByteBuffer(bytes: head.serialized())
        var parser = WARCParser()
        let again: WARCParser.Event?
        do throws(WARCError) {
            again = try parser.next(&buffer)
        } catch {
            again = nil
        }
        try hold(again == .head(head), "written and read again: \(again as Any), first: \(head)")
    }

    private static func checkMessage(_ head: WARCHead, _ block: [UInt8]) throws(Violation) {
        let whole = self.message(head, [block[...]])
        for pieces in Pieces.some(block) {
            let cut = self.message(head, pieces)
            try hold(cut == whole, "a message in pieces: \(cut), whole: \(whole)")
        }
        guard ArchivedResponse.isOwn(head), let response = whole.head,
            let own = try? ArchivedResponse(
                head, response, request: ["Host": "a"], contentLength: UInt64(whole.body.count))
        else { return }
        try self.checkOwn(own)
    }

    private struct Message: Equatable {
        var head: ResponseHead?
        var body: [UInt8] = []
        var failure: ResponseBlock.Failure?
    }

    private static func message(_ record: WARCHead, _ pieces: [ArraySlice<UInt8>]) -> Message {
        var message = Message()
        var block = ResponseBlock(to: .get, blockLength: record.contentLength)
        var buffer = ByteBuffer()
        do throws(ResponseBlock.Failure) {
            for piece in pieces {
                buffer.writeBytes(piece)
                reading: while true {
                    switch try block.next(&buffer) {
                    case .head(let head, _): message.head = head
                    case .piece(let piece): message.body += piece.readableBytesView
                    case .needMore: break reading
                    }
                }
            }
            _ = try block.finish()
        } catch {
            message.failure = error
        }
        return message
    }

    /// What Larder writes of what it has read is read as the same.
    private static func checkOwn(_ own: ArchivedResponse) throws(Violation) {
        var fields = own.larderFields(object: "x")
        fields.append("WARC-Target-URI", own.uri.description)
        fields.append("WARC-Date", WARCDate.format(own.responseTime))
        let record = WARCHead(type: "response", contentLength: 0, fields: fields)
        guard
            let head = try? ResponseHeadParser.parse(block: own.responseHead().span),
            var request = Optional(ByteBuffer(bytes: own.requestHead()))
        else { return }
        var parser = RequestHeadParser()
        guard let asked = try? parser.parse(&request) else { return }
        let again = try? ArchivedResponse(
            record, head, request: asked.fields, contentLength: own.contentLength)
        try hold(again == own, "written and read again: \(again as Any), first: \(own)")
    }
}
