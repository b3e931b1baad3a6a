import LarderHTTP
import NIOCore

/// The head of an answer as it goes over the wire, to be sent again with another `Age` and another
/// remaining freshness.
struct RepeatedHead {
    /// A number in decimal digits, and where in `bytes` it stands.
    private struct Number {
        var value: Int64
        var start: Int
        var digits: Int
    }

    private(set) var bytes: ByteBuffer
    private var age: Number
    private var ttl: Number

    var capacity: Int { self.bytes.storageCapacity }

    /// - Parameter bytes: a head with one `Age` and, as its last line of that name, a `Cache-Status`
    ///   with a `ttl`; nil for any other.
    init?(_ bytes: ByteBuffer) {
        // With no bytes of the body behind it, however large the buffer is that it came in.
        var copy = ByteBuffer()
        copy.reserveCapacity(bytes.readableBytes)
        copy.writeImmutableBuffer(bytes)
        let text = Array(copy.readableBytesView)
        var age: Number?
        var ttl: Number?
        var start = 0
        while let end = text[start...].firstIndex(of: ASCII.lf) {
            let line = text[start..<end]
            if let value = Self.value(of: line, named: "age") {
                guard age == nil, let number = Self.number(in: text, at: value) else { return nil }
                age = number
            } else if let value = Self.value(of: line, named: "cache-status") {
                ttl = Self.find("; ttl=", in: text[value..<end])
                    .flatMap { Self.number(in: text, at: $0) }
            }
            start = end + 1
        }
        // In this order both are written.
        guard let age, let ttl, age.start < ttl.start else { return nil }
        self.bytes = copy
        self.age = age
        self.ttl = ttl
    }

    private static func value(of line: ArraySlice<UInt8>, named name: String) -> Int? {
        guard line.count > name.utf8.count + 2,
            line.prefix(name.utf8.count).elementsEqual(
                name.utf8, by: { ASCII.lowercased($0) == $1 })
        else { return nil }
        let colon = line.startIndex + name.utf8.count
        guard line[colon] == ASCII.colon, line[colon + 1] == ASCII.space else { return nil }
        return colon + 2
    }

    /// Where the text ends in the bytes, the last time that it stands there.
    private static func find(_ text: String, in bytes: ArraySlice<UInt8>) -> Int? {
        let text = Array(text.utf8)
        guard bytes.count >= text.count else { return nil }
        for start in (bytes.startIndex...bytes.endIndex - text.count).reversed()
        where bytes[start..<start + text.count].elementsEqual(text) { return start + text.count }
        return nil
    }

    private static func number(in bytes: [UInt8], at start: Int) -> Number? {
        let digits = bytes[start...].prefix(while: ASCII.isDigit)
        guard let value = Int64(String(decoding: digits, as: UTF8.self)) else { return nil }
        return Number(value: value, start: start, digits: digits.count)
    }

    /// Whether it says these.
    func says(age: Int64, ttl: Int64) -> Bool { self.age.value == age && self.ttl.value == ttl }

    /// Lets it say these.
    mutating func say(age: Int64, ttl: Int64) {
        if self.age.value != age { self.write(age, \.age) }
        if self.ttl.value != ttl { self.write(ttl, \.ttl) }
    }

    private mutating func write(_ value: Int64, _ place: WritableKeyPath<Self, Number>) {
        let text = String(value)
        let old = self[keyPath: place]
        self[keyPath: place].value = value
        guard text.utf8.count != old.digits else {
            self.bytes.setString(text, at: old.start)
            return
        }
        let rest = self.bytes.getSlice(
            at: old.start + old.digits, length: self.bytes.writerIndex - old.start - old.digits)
        self.bytes.moveWriterIndex(to: old.start)
        self.bytes.writeString(text)
        if let rest { self.bytes.writeImmutableBuffer(rest) }
        self[keyPath: place].digits = text.utf8.count
        if old.start < self.ttl.start { self.ttl.start += text.utf8.count - old.digits }
    }
}
