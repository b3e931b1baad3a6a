/// Finds line ends in a head that arrives in pieces.
///
/// Remembers how far it has looked, so that no byte is looked at twice however small the pieces
/// are. Offsets count from the head's first byte, which must stay the first byte of what it is
/// shown.
struct HeadScanner: Sendable {
    /// The first byte that was not looked at yet.
    private var position = 0
    /// The first byte of the line under way: when a line was returned, the byte after its end.
    private(set) var lineStart = 0
    /// Accepts LF alone as a line end (RFC 9112 §2.2 "MAY recognize").
    ///
    /// A request never may: what one party reads as two lines and another as one is how requests are smuggled.
    private let acceptsBareLF: Bool

    init(acceptsBareLF: Bool = false) {
        self.acceptsBareLF = acceptsBareLF
    }

    /// The next whole line, without its end; nil when more bytes are needed.
    ///
    /// A CR that no LF follows is refused everywhere (RFC 9112 §2.2).
    mutating func nextLine(in bytes: Span<UInt8>) throws(HeadError) -> Range<Int>? {
        guard self.position < bytes.count else { return nil }
        let feed = bytes.firstIndex(of: ASCII.lf, in: self.position..<bytes.count)
        let end = feed ?? bytes.count
        if let cr = bytes.firstIndex(of: ASCII.cr, in: self.position..<end) {
            guard cr &+ 1 == end else {
                throw HeadError(.bareCR, "a CR without a LF after it")
            }
            if feed != nil { return self.endLine(at: cr, next: cr &+ 2) }
            self.position = cr
            return nil
        }
        guard let feed else {
            self.position = bytes.count
            return nil
        }
        guard self.acceptsBareLF else {
            throw HeadError(.bareLF, "a LF without a CR before it")
        }
        return self.endLine(at: feed, next: feed &+ 1)
    }

    private mutating func endLine(at end: Int, next: Int) -> Range<Int> {
        let line = self.lineStart..<end
        self.position = next
        self.lineStart = next
        return line
    }
}
