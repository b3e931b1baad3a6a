/// A number of bytes.
///
/// Sizes in settings, bounds and statistics have this type, so that no bare integer needs its unit
/// guessed. Never negative.
package struct ByteCount: Hashable, Comparable, Sendable, Codable {
    package var bytes: UInt64

    package init(_ bytes: UInt64) {
        self.bytes = bytes
    }

    package static let zero = ByteCount(0)
    package static func kibibytes(_ n: UInt64) -> ByteCount { ByteCount(n << 10) }
    package static func mebibytes(_ n: UInt64) -> ByteCount { ByteCount(n << 20) }
    package static func gibibytes(_ n: UInt64) -> ByteCount { ByteCount(n << 30) }

    package static func < (a: ByteCount, b: ByteCount) -> Bool { a.bytes < b.bytes }

    /// The count as an `Int`, saturating: for indices into memory.
    package var clamped: Int { Int(clamping: self.bytes) }
}

extension ByteCount: CustomStringConvertible {
    /// The count in the largest binary unit that keeps it readable: `512 B`, `1.5 KiB`, `10 GiB`.
    package var description: String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        var value = Double(self.bytes)
        var unit = 0
        while value >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        if unit == 0 { return "\(self.bytes) B" }
        let tenths = Int64((value * 10).rounded())
        return tenths % 10 == 0
            ? "\(tenths / 10) \(units[unit])" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
