/// Some of the known fields: those that a section has, found in one pass, or a list of some.
package struct KnownFieldSet: Sendable, ExpressibleByArrayLiteral {
    private var bits: UInt128 = 0

    package init(_ fields: Fields) {
        for line in fields.lines { self.insert(line.known) }
    }

    package init(arrayLiteral fields: KnownField...) {
        for field in fields { self.insert(field) }
    }

    package mutating func insert(_ field: KnownField) {
        self.bits |= 1 &<< UInt128(field.rawValue)
    }

    package func contains(_ field: KnownField) -> Bool {
        self.bits &>> UInt128(field.rawValue) & 1 == 1
    }
}
