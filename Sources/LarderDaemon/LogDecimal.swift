import LarderHTTP

extension [UInt8] {
    /// Adds a number in decimal digits, with zeros before it up to a width of at most twenty.
    ///
    /// Without a string between: a line has up to ten numbers.
    mutating func add(decimal number: UInt64, width: Int = 1) {
        self.append(addingCapacity: 20) { $0.append(decimal: number, width: width) }
    }

    mutating func add(decimal number: Int64) {
        if number < 0 { self.append(UInt8(ascii: "-")) }
        self.add(decimal: number.magnitude)
    }
}
