import LarderHTTP
import NIOCore

/// The two limits under which heads are read: the usual ones, and some that inputs reach.
private let severalLimits = [
    HeadLimits(), HeadLimits(startLine: 40, head: 160, fieldCount: 4, emptyLines: 1),
]

/// What every field section that was accepted must be.
func checkSection(_ fields: Fields) throws(Violation) {
    try hold(
        Fields(checking: fields.bytes, lines: fields.lines) != nil,
        "an accepted section holds what no section may: \(fields.pairs)")
    let again = try? Fields(
        parsing: fields.serialized().span,
        limits: HeadLimits(startLine: 1 << 20, head: 1 << 22, fieldCount: 1 << 20))
    try hold(again == fields, "written and read again: \(String(describing: again?.pairs))")
}

/// The lines of a head, by the plainest reading there is; nil where that does not suffice.
private func plainLines(_ wire: [UInt8]) -> [String]? {
    guard wire.allSatisfy({ $0 < 0x80 }), wire.text.hasSuffix("\r\n\r\n") else { return nil }
    var lines: [String] = []
    var line: [UInt8] = []
    for byte in wire where byte != 0x0D {
        if byte == 0x0A {
            lines.append(line.text)
            line = []
        } else {
            line.append(byte)
        }
    }
    return lines.dropLast().drop { $0.isEmpty }.map { $0 }
}

/// Compares a section with the plainest reading of the lines it came from.
private func agree(_ fields: Fields, _ lines: ArraySlice<String>) throws(Violation) {
    try hold(fields.count == lines.count, "\(lines.count) lines, \(fields.count) fields")
    for (pair, line) in zip(fields.pairs, lines) {
        let name = line.prefix { $0 != ":" }
        let value = Array(line.utf8.dropFirst(name.utf8.count + 1))[...].trimmingOWS()
        try hold(
            pair.name == name && pair.value == String(decoding: value, as: UTF8.self),
            "the line \(line) was read as \(pair)")
    }
}

/// Requests as a connection reads them (RFC 9112 §2, §3, §5).
enum RequestHeadPromises {
    private struct Reading: Equatable {
        var heads: [RequestHead] = []
        /// What each head was read from.
        var wires: [[UInt8]] = []
        var error: HeadError?
        var rest: [UInt8] = []
    }

    private static func read(
        _ pieces: [ArraySlice<UInt8>], _ limits: HeadLimits
    ) -> Reading {
        var parser = RequestHeadParser(limits: limits)
        var buffer = ByteBuffer()
        var reading = Reading()
        var passed: [UInt8] = []
        do throws(HeadError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                while true {
                    let before = Array(buffer.readableBytesView)
                    let head = try parser.parse(&buffer)
                    passed += before.prefix(before.count - buffer.readableBytes)
                    guard let head else { break }
                    reading.heads.append(head)
                    reading.wires.append(passed)
                    passed = []
                }
            }
        } catch {
            reading.error = error
            return reading
        }
        reading.rest = Array(buffer.readableBytesView)
        return reading
    }

    /// A head with a gist is refused where its gist is, and says the same but for what is left out.
    private static func checkGist(
        of input: [UInt8], _ whole: Reading, _ limits: HeadLimits
    ) throws(Violation) {
        var buffer = ByteBuffer()
        guard RequestGist.write(of: input.span, limits: limits, into: &buffer) else { return }
        let gist = self.read([Array(buffer.readableBytesView)[...]], limits)
        try hold((gist.error == nil) == (whole.error == nil), "\(gist) is the gist of \(whole)")
        guard whole.error == nil else { return }
        try hold(whole.heads.count == 1 && whole.rest.isEmpty, "a gist of more than a head")
        var heads = whole.heads
        heads[0].fields.keep { _, line in !RequestGist.leavesOut(line.known) }
        try hold(gist.heads == heads, "\(gist) is the gist of \(whole)")
    }

    static func check(_ input: [UInt8]) throws(Violation) {
        for limits in severalLimits {
            let whole = self.read([input[...]], limits)
            try self.checkGist(of: input, whole, limits)
            for pieces in Pieces.some(input) {
                let cut = self.read(pieces, limits)
                try hold(cut == whole, "cut into \(pieces.count): \(cut), whole: \(whole)")
            }
            if let error = whole.error {
                try hold(
                    error.status == error.reason.status && error.status.isClientError
                        || [501, 505].contains(error.status.rawValue),
                    "a bad request is answered with \(error)")
            } else {
                try hold(whole.rest.count <= limits.head, "more is waited for than is accepted")
            }
            for (head, wire) in zip(whole.heads, whole.wires) {
                try hold(
                    wire.count <= limits.head + 2 * limits.emptyLines
                        && head.fields.count <= limits.fieldCount, "accepted beyond the limits")
                try self.check(head, wire)
            }
        }
    }

    private static func check(_ head: RequestHead, _ wire: [UInt8]) throws(Violation) {
        try checkSection(head.fields)
        if let lines = plainLines(wire), let first = lines.first {
            try agree(head.fields, lines[1...])
            try hold(
                first.split(separator: " ", omittingEmptySubsequences: false).count == 3,
                "a request line of other than three parts: \(first)")
        }
        let target =
            switch head.target {
            case .absolute(let uri):
                uri.scheme.rawValue + "://"
                    + ((uri.userInfo ?? head.userInfo).map { $0 + "@" } ?? "")
                    + uri.authority + (uri.pathAndQuery == "*" ? "" : uri.pathAndQuery)
            case .origin(let path): path
            case .authority(let host, let port): "\(host):\(port)"
            case .asterisk: "*"
            }
        let version = "HTTP/\(head.version.major).\(head.version.minor)"
        let written =
            Array("\(head.method) \(target) \(version)\r\n".utf8) + head.fields.serialized()
            + Array("\r\n".utf8)
        // The URI's normal form and a space after each colon may make it a little longer.
        let again = self.read([written[...]], HeadLimits(startLine: 1 << 20, head: 1 << 22))
        try hold(
            again.heads == [head] && again.error == nil,
            "read again: \(again), first: \(head)")
    }
}

/// Responses as they come from an origin (RFC 9112 §4, §5).
enum ResponseHeadPromises {
    private struct Reading: Equatable {
        var heads: [ResponseHead] = []
        var wires: [[UInt8]] = []
        var error: HeadError?
        var rest: [UInt8] = []
    }

    private static func read(
        _ pieces: [ArraySlice<UInt8>], _ limits: HeadLimits, lenient: Bool
    ) -> Reading {
        var parser = ResponseHeadParser(limits: limits, lenientLineEnds: lenient)
        var buffer = ByteBuffer()
        var reading = Reading()
        do throws(HeadError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                while true {
                    let before = Array(buffer.readableBytesView)
                    guard let head = try parser.parse(&buffer) else { break }
                    reading.heads.append(head)
                    reading.wires.append(Array(before.prefix(before.count - buffer.readableBytes)))
                }
            }
        } catch {
            reading.error = error
            return reading
        }
        reading.rest = Array(buffer.readableBytesView)
        return reading
    }

    static func check(_ input: [UInt8]) throws(Violation) {
        for limits in severalLimits {
            let strict = self.read([input[...]], limits, lenient: false)
            let lenient = self.read([input[...]], limits, lenient: true)
            for pieces in Pieces.some(input) {
                let cut = self.read(pieces, limits, lenient: false)
                try hold(cut == strict, "cut: \(cut), whole: \(strict)")
                let cutLenient = self.read(pieces, limits, lenient: true)
                try hold(cutLenient == lenient, "cut: \(cutLenient), whole: \(lenient)")
            }
            if strict.error == nil {
                try hold(strict == lenient, "strict: \(strict), lenient: \(lenient)")
            }
            for reading in [strict, lenient] {
                if let error = reading.error {
                    try hold(error.status == .badGateway, "a bad response is answered \(error)")
                }
                for (head, wire) in zip(reading.heads, reading.wires) {
                    try hold(
                        wire.count <= limits.head && head.fields.count <= limits.fieldCount,
                        "accepted beyond the limits")
                    try self.check(head, wire, isStrict: reading == strict)
                }
            }
        }
    }

    private static func check(
        _ head: ResponseHead, _ wire: [UInt8], isStrict: Bool
    ) throws(Violation) {
        try checkSection(head.fields)
        let code = head.status.rawValue
        try hold((100...999).contains(code), "the status \(code)")
        // Not in text: there, CR and LF are one character.
        let isFolded = zip(wire, wire.dropFirst()).contains {
            $0 == ASCII.lf && ASCII.isOWS($1)
        }
        if isStrict, !isFolded, let lines = plainLines(wire) {
            try agree(head.fields, lines.dropFirst())
        }
        let one = try? ResponseHeadParser.parse(block: wire.span, lenientLineEnds: !isStrict)
        try hold(one == head, "alone it is read as \(String(describing: one)), not \(head)")
        for method in [Method.get, .head, .connect] {
            guard let length = try? MessageFraming.responseBody(of: head, to: method) else {
                continue
            }
            if case .known(let count) = length {
                try hold(count <= UInt64(Int64.max), "a length that no sum may hold: \(count)")
            }
            if method == .head { try hold(length == .none, "HEAD has content") }
        }
    }
}

/// The chunked transfer coding (RFC 9112 §7.1).
enum ChunkedPromises {
    private struct Decoding: Equatable {
        var content: [UInt8] = []
        var trailers: Fields?
        var error: HeadError.Reason?
        var rest: [UInt8] = []
    }

    private static func decode(_ pieces: [ArraySlice<UInt8>], _ limits: ChunkLimits) -> Decoding {
        var decoder = ChunkedDecoder(limits: limits)
        var buffer = ByteBuffer()
        var result = Decoding()
        do throws(HeadError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                steps: while result.trailers == nil {
                    switch try decoder.decode(&buffer) {
                    case .piece(let piece): result.content += Array(piece.readableBytesView)
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

    static func check(_ input: [UInt8]) throws(Violation) {
        let small = ChunkLimits(line: 8, extensions: 10, trailers: 24, trailerCount: 2, piece: 4)
        for limits in [ChunkLimits(), small] {
            let whole = self.decode([input[...]], limits)
            for pieces in Pieces.some(input) {
                let cut = self.decode(pieces, limits)
                try hold(cut == whole, "cut: \(cut), whole: \(whole)")
            }
            guard let trailers = whole.trailers else { continue }
            try checkSection(trailers)
            try hold(
                !trailers.lines.contains { HopByHop.isConnectionField($0.known) },
                "a trailer that belongs to the connection")
            try hold(
                self.plainContent(input[...]) == whole.content,
                "content differs from the plainest reading")
            try self.checkRoundTrip(whole.content, trailers)
        }
    }

    /// The content by the plainest reading of chunks that are known to be sound.
    private static func plainContent(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = bytes
        var content: [UInt8] = []
        while let end = rest.firstIndex(of: ASCII.lf) {
            let digits = rest[..<end].prefix { ASCII.hexDigit($0) != nil }
            guard let size = Int(String(decoding: digits, as: UTF8.self), radix: 16) else {
                return nil
            }
            rest = rest[(end + 1)...]
            if size == 0 { return content }
            content += rest.prefix(size)
            rest = rest.dropFirst(size).dropFirst(2)
        }
        return nil
    }

    private static func checkRoundTrip(
        _ content: [UInt8], _ trailers: Fields
    ) throws(Violation) {
        var buffer = ByteBuffer()
        if !content.isEmpty {
            buffer.writeString("\(String(content.count, radix: 16))\r\n")
            buffer.writeBytes(content)
            buffer.writeString("\r\n")
        }
        buffer.writeString("0\r\n")
        buffer.writeBytes(trailers.serialized())
        buffer.writeString("\r\n")
        let again = self.decode(
            [Array(buffer.readableBytesView)[...]],
            ChunkLimits(trailers: 1 << 24, trailerCount: 1 << 20))
        try hold(
            again == Decoding(content: content, trailers: trailers),
            "written and read again: \(again)")
    }
}
