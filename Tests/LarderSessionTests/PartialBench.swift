import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore

/// A representation that an origin has, in parts or whole.
struct Representation: Sendable {
    var content: [UInt8]
    var tag: String? = "\"a\""
    var fields: Fields = ["Cache-Control": "max-age=60", "Content-Type": "text/plain"]

    /// Bytes of which no two stretches of eight are the same.
    init(_ length: Int, tag: String? = "\"a\"", seed: UInt64 = 1) {
        var state = seed
        var content: [UInt8] = []
        content.reserveCapacity(length + 8)
        while content.count < length {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                content.append(UInt8(truncatingIfNeeded: state >> shift))
            }
        }
        self.content = Array(content.prefix(length))
        self.tag = tag
    }

    func head(_ extra: (String, String)...) -> Fields {
        var fields = self.fields
        if let tag = self.tag { fields.append("ETag", tag) }
        for (name, value) in extra { fields.append(name, value) }
        return fields
    }
}

extension ScriptedUpstream.Fetch {
    /// Answers with a part.
    ///
    /// - Parameter sending: how many bytes of it come; nil: all, and the end.
    func part(
        _ range: Range<Int>, of representation: Representation, told: String? = nil,
        sending: Int? = nil
    ) {
        let value =
            told ?? "bytes \(range.lowerBound)-\(range.upperBound - 1)/"
            + "\(representation.content.count)"
        self.head(
            206, representation.head(("Content-Range", value)),
            length: .known(UInt64(range.count)))
        self.bytes(representation.content[range].prefix(sending ?? range.count))
        if sending == nil { self.finish() }
    }

    /// Answers with the whole.
    func whole(_ representation: Representation, sending: Int? = nil) {
        self.head(
            200, representation.head(), length: .known(UInt64(representation.content.count)))
        self.bytes(representation.content.prefix(sending ?? representation.content.count))
        if sending == nil { self.finish() }
    }

    func bytes(_ bytes: some Collection<UInt8>) {
        if !bytes.isEmpty, !self.isCancelled {
            _ = self.receiver.upstream(piece: ByteBuffer(bytes: Array(bytes)))
        }
    }

    var range: String? { self.request.fields.string("Range") }
    var ifRange: String? { self.request.fields.string("If-Range") }
}

extension RecordingClient {
    /// The bytes that there are now, and what came behind them.
    func readBytes() -> (bytes: [UInt8], last: BodyStep?) {
        switch self.answer?.body {
        case .resident(let buffer)?: return (Array(buffer.readableBytesView), .end(trailers: [:]))
        case .source(let source)?:
            var all: [UInt8] = []
            while true {
                switch source.next() {
                case .piece(let piece): all += piece.readableBytesView
                case let last: return (all, last)
                }
            }
        case Answer.Body.none?, nil: return ([], .end(trailers: [:]))
        }
    }

    /// The whole body as bytes, if it can be read to its end now.
    var wholeBytes: [UInt8]? {
        let (bytes, last) = self.readBytes()
        if case .end? = last { return bytes }
        return nil
    }
}

extension RecordingClient {
    /// Whether the body ends before its end, after what there is of it now.
    var isCutOff: Bool {
        if case .failed? = self.readBytes().last { return true }
        return false
    }
}

extension Bench {
    /// A bench whose window and store hold bodies of some MiB.
    static var large: Bench {
        Bench(store: MemoryStore(MemoryConfiguration(capacity: .mebibytes(64))))
    }

    /// Asks for a range, and has the origin answer with just that.
    @discardableResult
    func store(_ range: Range<Int>, of representation: Representation) -> RecordingClient {
        let client = self.ask("bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        // Where some of it is stored only the rest is asked for.
        let asked = self.upstream.fetches.last?.range.flatMap {
            RangeSet.parse(Array($0.utf8)[...])?
                .resolve(length: UInt64(representation.content.count))?.first
        }
        if let asked {
            self.upstream.fetches.last?.part(
                Int(asked.lowerBound)..<Int(asked.upperBound), of: representation)
        }
        return client
    }

    func ask(_ range: String? = nil, _ fields: Fields = Fields()) -> RecordingClient {
        var fields = fields
        if let range { fields.append("Range", range) }
        return self.perform("/", fields).client
    }

    var asked: Int { self.upstream.fetches.count }
}
