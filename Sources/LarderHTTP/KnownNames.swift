/// The names of the known fields, found by their bytes: one look-up and one comparison, nearly always,
/// as each line of a head is looked up.
struct KnownNames: Sendable {
    /// A name of at most 32 bytes in lower case, as numbers that are compared.
    private struct Packed: Equatable, Sendable {
        private var first: UInt64 = 0
        private var second: UInt64 = 0
        private var third: UInt64 = 0
        /// The last eight bytes, whichever others they are among; of a shorter name 0.
        private var last: UInt64 = 0
        private let count: Int

        static let longest = 32

        init(_ name: Span<UInt8>) {
            self.count = name.count
            unsafe name.withUnsafeBytes { bytes in
                guard bytes.count >= 8 else {
                    for i in bytes.indices {
                        self.first |= unsafe UInt64(bytes[i]) &<< UInt64(i &* 8)
                    }
                    return
                }
                self.first = unsafe bytes.loadUnaligned(as: UInt64.self)
                self.last = unsafe bytes.loadUnaligned(
                    fromByteOffset: bytes.count &- 8, as: UInt64.self)
                guard bytes.count > 16 else { return }
                self.second = unsafe bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
                guard bytes.count > 24 else { return }
                self.third = unsafe bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
            }
            self.first = Self.lowercased(self.first)
            self.second = Self.lowercased(self.second)
            self.third = Self.lowercased(self.third)
            self.last = Self.lowercased(self.last)
        }

        /// Letters in lower case; no other byte becomes one that stands in a known name.
        private static func lowercased(_ bytes: UInt64) -> UInt64 {
            bytes | (bytes & 0x4040_4040_4040_4040) &>> 1
        }

        /// Where a search for it begins, among 256 places.
        var place: Int {
            let mixed = (self.first ^ self.last &* 31 ^ UInt64(self.count)) &* 0x9E37_79B9_7F4A_7C15
            return Int(mixed &>> 56)
        }
    }

    static let all = KnownNames()

    /// By the number of their field.
    private let names: [Packed]
    /// At the place of their name or behind it; `other` where there is none.
    private let fields: [KnownField]

    private init() {
        self.names = KnownField.allCases.map { Packed($0.lowercased.utf8.span) }
        var fields = [KnownField](repeating: .other, count: 256)
        for field in KnownField.allCases where field != .other {
            var place = self.names[Int(field.rawValue)].place
            while fields[place] != .other { place = (place + 1) % fields.count }
            fields[place] = field
        }
        self.fields = fields
    }

    /// The field that these bytes name in any case, or `other`.
    func field(named name: Span<UInt8>) -> KnownField {
        guard name.count <= Packed.longest else { return .other }
        let name = Packed(name)
        var place = name.place
        while true {
            let field = self.fields[place]
            // Most places are nobody's, so that this is found.
            if field == .other || self.names[Int(field.rawValue)] == name { return field }
            place = (place &+ 1) & 255
        }
    }
}
