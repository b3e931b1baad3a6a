extension [UInt8] {
    /// Adds a number in decimal digits, with zeros before it up to a width of at most twenty.
    ///
    /// Without a string between: a line has up to ten numbers.
    mutating func add(decimal number: UInt64, width: Int = 1) {
        var digits: [20 of UInt8] = .init(repeating: 0x30)
        var first = digits.count
        var rest = number
        repeat {
            first -= 1
            digits[first] = UInt8(truncatingIfNeeded: 0x30 + rest % 10)
            rest /= 10
        } while rest > 0
        first = Swift.max(0, Swift.min(first, digits.count - width))
        while first < digits.count {
            self.append(digits[first])
            first += 1
        }
    }

    mutating func add(decimal number: Int64) {
        if number < 0 { self.append(UInt8(ascii: "-")) }
        self.add(decimal: number.magnitude)
    }
}
