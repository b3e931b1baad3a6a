/// A number of bytes in the configuration: `64 MiB`, `1.5 GiB`, `0`.
///
/// Never without a unit but for zero: nobody has to guess whether `64` means bytes or mebibytes.
package struct ByteSize: SettingText, Comparable, Hashable {
    package var bytes: UInt64

    package init(bytes: UInt64) {
        self.bytes = bytes
    }

    package static func kibibytes(_ n: UInt64) -> ByteSize { ByteSize(bytes: n << 10) }
    package static func mebibytes(_ n: UInt64) -> ByteSize { ByteSize(bytes: n << 20) }
    package static func gibibytes(_ n: UInt64) -> ByteSize { ByteSize(bytes: n << 30) }
    package static func tebibytes(_ n: UInt64) -> ByteSize { ByteSize(bytes: n << 40) }

    package static var kind: String { "size" }
    package static var expectation: String { "a size such as 512 B, 64 KiB, 1.5 MiB or 10 GiB" }

    private static let units: [(name: String, bytes: UInt64)] = [
        ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
        ("kB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
        // As other programs have them.
        ("k", 1 << 10), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40),
    ]

    package init(settingText text: String) throws(SettingTextProblem) {
        let quantity = try Quantity(text)
        if quantity.unit.isEmpty {
            guard quantity.isZero else {
                throw SettingTextProblem("has no unit: write \"\(text) MiB\", for example")
            }
            self.bytes = 0
            return
        }
        guard let unit = Self.units.first(where: { $0.name == quantity.unit }) else {
            throw SettingTextProblem("has the unknown unit \"\(quantity.unit)\"")
        }
        guard let bytes = quantity.times(unit.bytes) else {
            throw SettingTextProblem("is too large")
        }
        self.bytes = bytes
    }

    /// The size in the largest binary unit that divides it.
    package var settingText: String {
        let unit = Self.units.prefix(5).last {
            self.bytes % $0.bytes == 0 && self.bytes >= $0.bytes
        }
        guard let unit else { return "0 B" }
        return "\(self.bytes / unit.bytes) \(unit.name)"
    }

    package static func < (a: ByteSize, b: ByteSize) -> Bool { a.bytes < b.bytes }
}

/// A decimal number and the word after it, taken apart without rounding.
struct Quantity {
    private var digits: UInt64
    /// Ten to the number of decimal places in `digits`.
    private var scale: UInt64
    var unit: String

    var isZero: Bool { self.digits == 0 }

    init(_ text: String) throws(SettingTextProblem) {
        var digits: UInt64 = 0
        var scale: UInt64 = 1
        var seen = 0
        var afterPoint = false
        var rest = text.utf8[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "."), !afterPoint, seen > 0 {
                afterPoint = true
                rest.removeFirst()
                continue
            }
            guard byte >= 0x30, byte <= 0x39 else { break }
            let (tenfold, overflow) = digits.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tenfold.addingReportingOverflow(UInt64(byte - 0x30))
            guard !overflow, !carry, scale < 1_000_000_000 else {
                throw SettingTextProblem("has too many digits")
            }
            digits = sum
            if afterPoint { scale *= 10 }
            seen += 1
            rest.removeFirst()
        }
        guard seen > 0, !(afterPoint && scale == 1) else { throw SettingTextProblem() }
        while rest.first == 0x20 { rest.removeFirst() }
        self.digits = digits
        self.scale = scale
        self.unit = String(Substring(rest))
    }

    /// The quantity in the smallest unit; nil where that is no whole number or does not fit.
    func times(_ factor: UInt64) -> UInt64? {
        let product = self.digits.multipliedFullWidth(by: factor)
        guard product.high < self.scale else { return nil }
        // Half of the smallest unit does not exist; it is dropped.
        return self.scale.dividingFullWidth(product).quotient
    }
}
