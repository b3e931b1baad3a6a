// Make lines, scalars and characters of bytes that come one by one.

/// Collects the bytes of a line until its end comes.
struct LineAssembler {
    private var line: [UInt8] = []
    /// The byte before was CR: an LF now is the same end.
    private var isBehindCR = false

    /// - Returns: the line that ends with this byte; nil for none, or an empty one.
    mutating func push(_ byte: UInt8) -> String? {
        let wasBehindCR = self.isBehindCR
        self.isBehindCR = byte == 0x0D
        switch byte {
        case 0x0A where wasBehindCR: return nil
        case 0x0A...0x0D: return self.finish()
        default: break
        }
        self.line.append(byte)
        // NEL in two bytes, the separators in three; none is a part of another scalar's bytes.
        if byte == 0x85, self.line.suffix(2).elementsEqual([0xC2, 0x85]) { return self.end(2) }
        if byte == 0xA8 || byte == 0xA9, self.line.count >= 3,
            self.line.suffix(3).prefix(2).elementsEqual([0xE2, 0x80])
        {
            return self.end(3)
        }
        return nil
    }

    private mutating func end(_ count: Int) -> String? {
        self.line.removeLast(count)
        return self.finish()
    }

    /// What has come behind the last end.
    mutating func finish() -> String? {
        guard !self.line.isEmpty else { return nil }
        defer { self.line.removeAll(keepingCapacity: true) }
        return String(decoding: self.line, as: UTF8.self)
    }
}

/// Decodes UTF-8 byte by byte; what is none becomes U+FFFD, by the longest beginnings of sequences
/// as Unicode recommends (chapter 3.9), and as `String(decoding:as:)` does it.
struct ScalarAssembler {
    private static let replacement: Unicode.Scalar = "\u{FFFD}"

    /// Decoded and not yet taken: two at most.
    private var ready: [Unicode.Scalar] = []
    private var value: UInt32 = 0
    /// How many bytes the sequence still lacks.
    private var missing = 0
    /// What the next byte of the sequence may be.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    mutating func next() -> Unicode.Scalar? {
        self.ready.isEmpty ? nil : self.ready.removeFirst()
    }

    mutating func push(_ byte: UInt8) {
        guard self.missing > 0 else { return self.begin(byte) }
        guard self.allowed.contains(byte) else {
            self.missing = 0
            self.ready.append(Self.replacement)
            return self.begin(byte)
        }
        self.value = self.value << 6 | UInt32(byte & 0x3F)
        self.missing -= 1
        self.allowed = 0x80...0xBF
        if self.missing == 0 {
            self.ready.append(Unicode.Scalar(self.value) ?? Self.replacement)
        }
    }

    /// No more bytes come.
    mutating func finish() {
        if self.missing > 0 { self.ready.append(Self.replacement) }
        self.missing = 0
    }

    private mutating func begin(_ byte: UInt8) {
        switch byte {
        case 0x00...0x7F: self.ready.append(Unicode.Scalar(byte))
        case 0xC2...0xDF: self.expect(1, byte & 0x1F, 0x80...0xBF)
        case 0xE0: self.expect(2, 0, 0xA0...0xBF)
        // No surrogates.
        case 0xED: self.expect(2, byte & 0x0F, 0x80...0x9F)
        case 0xE1...0xEF: self.expect(2, byte & 0x0F, 0x80...0xBF)
        case 0xF0: self.expect(3, 0, 0x90...0xBF)
        case 0xF1...0xF3: self.expect(3, byte & 0x07, 0x80...0xBF)
        case 0xF4: self.expect(3, byte & 0x07, 0x80...0x8F)
        default: self.ready.append(Self.replacement)
        }
    }

    private mutating func expect(_ count: Int, _ bits: UInt8, _ allowed: ClosedRange<UInt8>) {
        self.missing = count
        self.value = UInt32(bits)
        self.allowed = allowed
    }
}

/// Joins scalars to characters.
struct CharacterAssembler {
    private var scalars = String.UnicodeScalarView()
    private var recognizer = Unicode._CharacterRecognizer()

    /// - Returns: the character that this scalar does not belong to any more.
    mutating func push(_ scalar: Unicode.Scalar) -> Character? {
        let isNext = self.recognizer.hasBreak(before: scalar)
        defer { self.scalars.append(scalar) }
        return isNext ? self.finish() : nil
    }

    /// The last character.
    mutating func finish() -> Character? {
        guard !self.scalars.isEmpty else { return nil }
        defer { self.scalars = String.UnicodeScalarView() }
        return String(self.scalars).first
    }
}
