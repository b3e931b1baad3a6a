import Glibc
package import NIOCore

/// Reading text and numbers out of lent bytes. Every range must lie inside the span.
extension Span<UInt8> {
    /// A copy of a range.
    func copy(_ range: Range<Int>) -> [UInt8] {
        let part = self.extracting(range)
        return unsafe part.withUnsafeBufferPointer { unsafe [UInt8]($0) }
    }

    /// A range as text; bytes that are not UTF-8 are replaced.
    func text(_ range: Range<Int>) -> String {
        let part = self.extracting(range)
        return unsafe part.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }

    /// All of it as text; nil where it is no UTF-8.
    func validText() -> String? {
        // Looked through once: checking takes four times as long as making the text.
        if self.indices.allSatisfy({ self[$0] < 0x80 }) { return self.text(0..<self.count) }
        return unsafe self.withUnsafeBufferPointer {
            unsafe String(validating: $0, as: UTF8.self)
        }
    }

    /// A range of ASCII as text in lower case.
    func lowercasedText(_ range: Range<Int>) -> String {
        let part = self.extracting(range)
        for i in part.indices where ASCII.lowercased(part[i]) != part[i] {
            return String(decoding: part.indices.map { ASCII.lowercased(part[$0]) }, as: UTF8.self)
        }
        return part.text(part.indices)
    }

    /// Where `byte` stands first in a range.
    package func firstIndex(of byte: UInt8, in range: Range<Int>) -> Int? {
        let part = self.extracting(range)
        return unsafe part.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress,
                let found = unsafe memchr(start, Int32(byte), bytes.count)
            else { return nil }
            return unsafe range.lowerBound + (UnsafeRawPointer(found) - UnsafeRawPointer(start))
        }
    }

    /// Whether these are the same bytes as others.
    package func hasSameBytes(as other: Span<UInt8>) -> Bool {
        guard self.count == other.count else { return false }
        return unsafe self.withUnsafeBufferPointer { own in
            unsafe other.withUnsafeBufferPointer { other in
                guard let own = own.baseAddress, let bytes = other.baseAddress else { return true }
                return unsafe memcmp(own, bytes, other.count) == 0
            }
        }
    }

    /// Whether a field value may hold all bytes of a range (RFC 9110 §5.5).
    ///
    /// Eight at a time where none of them is a control character, which is nearly always.
    package func areFieldValue(_ range: Range<Int>) -> Bool {
        let part = self.extracting(range)
        let (ones, tops): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        return unsafe part.withUnsafeBytes { bytes in
            func hasControl(_ offset: Int) -> Bool {
                let word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                let deletes = word ^ (ones &* 0x7F)
                // A byte's top bit is set where it, or one below it, is less than 0x20, or is 0x7F.
                let controls = (word &- ones &* 0x20) & ~word & tops
                let others = (deletes &- ones) & ~deletes & tops
                return controls | others != 0
            }
            var i = 0
            while i &+ 8 <= bytes.count, !hasControl(i) { i &+= 8 }
            // What is left, once more with some of what lies before it.
            if i > 0, i &+ 8 > bytes.count, !hasControl(bytes.count &- 8) { return true }
            while i < bytes.count {
                guard unsafe ASCII.isFieldValue(bytes[i]) else { return false }
                i &+= 1
            }
            return true
        }
    }

    /// Whether the bytes are this lower-case ASCII text, case set aside.
    func equalsIgnoringCase(_ lowercased: StaticString) -> Bool {
        guard self.count == lowercased.utf8CodeUnitCount else { return false }
        return lowercased.withUTF8Buffer { text in
            for i in self.indices where unsafe ASCII.lowercased(self[i]) != text[i] {
                return false
            }
            return true
        }
    }
}

extension OutputSpan<UInt8> {
    /// Adds bytes in one piece.
    package mutating func append(contentsOf bytes: Span<UInt8>) {
        precondition(bytes.count <= self.freeCapacity, "more bytes than there is room for")
        unsafe bytes.withUnsafeBufferPointer { from in
            unsafe self.withUnsafeMutableBufferPointer { room, count in
                guard let start = from.baseAddress, let end = room.baseAddress else { return }
                unsafe (end + count).initialize(from: start, count: from.count)
                count += from.count
            }
        }
    }

    /// Adds the bytes of a text in one piece.
    package mutating func append(text: String) { self.append(contentsOf: text.utf8.span) }

    /// Adds a number in decimal digits, with zeros before it up to a width of at most twenty.
    package mutating func append(decimal number: UInt64, width: Int = 1) {
        var rest = number
        var digits: [20 of UInt8] = .init(repeating: UInt8(ascii: "0"))
        var start = digits.count
        repeat {
            start &-= 1
            digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        start = Swift.max(0, Swift.min(start, digits.count - width))
        for i in start..<digits.count { self.append(digits[i]) }
    }
}

extension [UInt8] {
    /// Adds the bytes of a text in one piece: `append(contentsOf:)` with a view of them takes twice the
    /// instructions, and what a miss writes is made of some thirty short texts.
    package mutating func append(text: String) {
        let bytes = text.utf8.span
        unsafe bytes.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
    }
}

extension ByteBuffer {
    /// Writes at most so many bytes in one step: each writing by itself takes some 250 instructions.
    package mutating func write(atMost count: Int, _ body: (inout OutputSpan<UInt8>) -> Void) {
        unsafe self.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            let bytes = unsafe room.bindMemory(to: UInt8.self)
            var out = unsafe OutputSpan(buffer: bytes, initializedCount: 0)
            body(&out)
            return unsafe out.finalize(for: bytes)
        }
    }
}
