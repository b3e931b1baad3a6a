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
        var i = self.position
        while i < bytes.count {
            let byte = bytes[i]
            if byte > ASCII.cr {
                i &+= 1
            } else if byte == ASCII.cr {
                guard i &+ 1 < bytes.count else { break }
                guard bytes[i &+ 1] == ASCII.lf else {
                    throw HeadError(.bareCR, "a CR without a LF after it")
                }
                return self.endLine(at: i, next: i &+ 2)
            } else if byte == ASCII.lf {
                guard self.acceptsBareLF else {
                    throw HeadError(.bareLF, "a LF without a CR before it")
                }
                return self.endLine(at: i, next: i &+ 1)
            } else {
                i &+= 1
            }
        }
        self.position = i
        return nil
    }

    private mutating func endLine(at end: Int, next: Int) -> Range<Int> {
        let line = self.lineStart..<end
        self.position = next
        self.lineStart = next
        return line
    }
}
