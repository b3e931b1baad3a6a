extension Fields {
    /// A section read back from where its bytes may have been damaged; nil where they were.
    ///
    /// Checks what `init(parsed:lines:)` takes on trust: every range lies inside `bytes`, names are
    /// tokens and their identities right, values hold no control characters.
    package init?(checking bytes: [UInt8], lines: [Line]) {
        for line in lines {
            let nameEnd = UInt64(line.nameStart) + UInt64(line.nameLength)
            let valueEnd = UInt64(line.valueStart) + UInt64(line.valueLength)
            guard line.nameLength > 0, nameEnd <= UInt64(bytes.count),
                valueEnd <= UInt64(bytes.count)
            else { return nil }
            let name = bytes[Int(line.nameStart)..<Int(nameEnd)]
            let value = bytes[Int(line.valueStart)..<Int(valueEnd)]
            guard name.allSatisfy(ASCII.isToken), value.allSatisfy(ASCII.isFieldValue),
                KnownField(matching: name.span) == line.known
            else { return nil }
        }
        self.init(parsed: bytes, lines: lines)
    }

    /// The bytes of memory that they hold beside themselves: room that is not used counts, too.
    package var heldBytes: Int {
        self.bytes.capacity + self.lines.capacity * MemoryLayout<Line>.stride
    }
}
