import LarderHTTP
package import NIOCore

/// Cuts a stream of bytes into WARC records (ISO 28500:2017 §4): heads and pieces of blocks.
///
/// ```
/// between records ─▶ head ─▶ block … block ─▶ line ends ─▶ end ─▶ between records …
/// ```
///
/// Holds nothing but where it is: the bytes are the caller's. A value: a copy goes on from where it
/// was taken. Version 1.0 is read, too, whose records differ in nothing that matters here; line ends
/// without CR are accepted, and folded fields joined (§4 allows them).
package struct WARCParser: Sendable {
    package enum Event: Equatable, Sendable {
        case head(WARCHead)
        /// The next bytes of the block; never empty.
        case block(ByteBuffer)
        /// The record is whole.
        case end
        /// The buffer ran out: call again when there is more.
        case needMore
    }

    private enum State: Sendable {
        case between
        case block(UInt64)
        /// The block has ended: line ends seen so far.
        case lineEnds(Int)
    }

    /// Bytes of a head.
    package static let longestHead = 65_536
    private static let mostFields = 256

    private var state = State.between
    /// Bytes consumed so far.
    package private(set) var position: UInt64 = 0
    /// Where the record began that was begun last, and its number, counted from one.
    package private(set) var offset: UInt64 = 0
    package private(set) var record: UInt64 = 0
    /// How much of the buffer is known to hold no end of a head.
    private var searched = 0

    package init() {}

    /// Whether the bytes so far may be all: no record has begun that is not whole.
    ///
    /// What lies in the buffer still must be nothing but line ends.
    package var isBetweenRecords: Bool {
        switch self.state {
        case .between: true
        // The last record of a file: some writers leave its line ends out.
        case .lineEnds: true
        case .block: false
        }
    }

    /// What is left of the block.
    package var blockLeft: UInt64 {
        if case .block(let left) = self.state { left } else { 0 }
    }

    /// Takes the next event from the front of `buffer`, consuming what it has read.
    ///
    /// Not usable after an error.
    package mutating func next(_ buffer: inout ByteBuffer) throws(WARCError) -> Event {
        while true {
            switch self.state {
            case .between:
                guard let head = try self.head(&buffer) else { return .needMore }
                self.state = .block(head.contentLength)
                return .head(head)
            case .block(0):
                self.state = .lineEnds(0)
            case .block(let left):
                let count = Int(clamping: min(left, UInt64(buffer.readableBytes)))
                guard count > 0, let piece = buffer.readSlice(length: count) else {
                    return .needMore
                }
                self.position += UInt64(count)
                self.state = .block(left - UInt64(count))
                return .block(piece)
            case .lineEnds(2):
                self.state = .between
                return .end
            case .lineEnds(let seen):
                guard try self.lineEnd(&buffer) else { return .needMore }
                self.state = .lineEnds(seen + 1)
            }
        }
    }

    /// Passes over the rest of the block where that does not lie in the buffer: the caller goes on
    /// with what lies so many bytes further on.
    ///
    /// What is in the buffer of the block must have been taken out of it.
    package mutating func skipBlock() -> UInt64 {
        let left = self.blockLeft
        if case .block = self.state {
            self.state = .block(0)
            self.position &+= left
        }
        return left
    }

    private func error(_ reason: WARCError.Reason) -> WARCError {
        WARCError(reason: reason, record: self.record, offset: self.offset)
    }

    /// One of the two line ends behind a block.
    private mutating func lineEnd(_ buffer: inout ByteBuffer) throws(WARCError) -> Bool {
        guard let first = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else {
            return false
        }
        var count = 1
        if first == ASCII.cr {
            guard let second = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt8.self)
            else { return false }
            guard second == ASCII.lf else { throw self.error(.noEnd) }
            count = 2
        } else if first != ASCII.lf {
            throw self.error(.noEnd)
        }
        buffer.moveReaderIndex(forwardBy: count)
        self.position += UInt64(count)
        return true
    }

    // MARK: Heads

    private mutating func head(_ buffer: inout ByteBuffer) throws(WARCError) -> WARCHead? {
        self.skipLineEnds(&buffer)
        let view = buffer.readableBytesView
        if self.searched == 0, !view.isEmpty {
            self.record += 1
            self.offset = self.position
            self.searched = 1
        }
        if view.isEmpty { return nil }
        // What is no record is said at once, and not after 64 KiB of it.
        let mark = Array("WARC/".utf8)
        guard view.prefix(mark.count).elementsEqual(mark.prefix(view.count)) else {
            throw self.error(.noVersion)
        }
        guard let length = self.headLength(view) else {
            guard view.count < Self.longestHead else { throw self.error(.headTooLarge) }
            return nil
        }
        guard length <= Self.longestHead else { throw self.error(.headTooLarge) }
        let bytes = Array(view.prefix(length))
        let head = try self.parse(bytes)
        buffer.moveReaderIndex(forwardBy: length)
        self.position += UInt64(length)
        self.searched = 0
        return head
    }

    /// Some writers leave more than two line ends between records.
    private mutating func skipLineEnds(_ buffer: inout ByteBuffer) {
        guard self.searched == 0 else { return }
        while let byte = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self),
            byte == ASCII.cr || byte == ASCII.lf
        {
            buffer.moveReaderIndex(forwardBy: 1)
            self.position += 1
        }
    }

    /// How many bytes the head has with the empty line that ends it; nil where that has not come.
    private mutating func headLength(_ view: ByteBufferView) -> Int? {
        let bytes = view.prefix(Self.longestHead + 4)
        var index = max(1, self.searched)
        while index < bytes.count {
            if bytes[bytes.startIndex + index] == ASCII.lf {
                let before = bytes[bytes.startIndex + index - 1]
                let isEmptyLine =
                    before == ASCII.lf
                    || (before == ASCII.cr && index >= 2
                        && bytes[bytes.startIndex + index - 2] == ASCII.lf)
                if isEmptyLine { return index + 1 }
            }
            index += 1
        }
        self.searched = max(1, bytes.count)
        return nil
    }

    private func parse(_ bytes: [UInt8]) throws(WARCError) -> WARCHead {
        var lines = bytes.split(separator: ASCII.lf, omittingEmptySubsequences: false)
            .map { $0.last == ASCII.cr ? $0.dropLast() : $0 }[...]
        let version = lines.popFirst() ?? []
        guard ["WARC/1.0", "WARC/1.1"].contains(String(decoding: version, as: UTF8.self)) else {
            throw self.error(.unknownVersion)
        }
        var fields = Fields()
        var open: (name: FieldValue, value: [UInt8])?
        func close() {
            guard let (name, value) = open else { return }
            fields.append(String(decoding: name, as: UTF8.self), value)
        }
        for line in lines where !line.isEmpty {
            if let first = line.first, ASCII.isOWS(first), open != nil {
                open?.value += [ASCII.space] + line.trimmingOWS()
                continue
            }
            close()
            guard let colon = line.firstIndex(of: ASCII.colon), colon > line.startIndex,
                line[..<colon].allSatisfy(ASCII.isToken), fields.count < Self.mostFields,
                colon - line.startIndex < Int(UInt16.max)
            else { throw self.error(.badField) }
            open = (line[..<colon], Array(line[(colon + 1)...].trimmingOWS()))
        }
        close()
        let lengths = fields.values("Content-Length")
        guard let text = lengths.first, lengths.allSatisfy({ $0 == text }),
            let length = UInt64(exactDigits: text), length <= UInt64(Int64.max)
        else { throw self.error(.noLength) }
        let type = (fields.string("WARC-Type") ?? "").lowercased()
        fields.remove("Content-Length")
        fields.remove("WARC-Type")
        return WARCHead(type: type, contentLength: length, fields: fields)
    }
}
