extension Fields {
    /// The members of a list in whose syntax no quoted string stands (`Connection`, `Upgrade`): all
    /// lines of this name, split at every comma, white space trimmed, empty ones left out.
    ///
    /// A quotation mark protects nothing there, so that none hides what comes behind it.
    func plainMembers(_ name: FieldName) -> [FieldValue] {
        var found: [FieldValue] = []
        for line in self.lines where self.matches(line, name) {
            for part in self.value(of: line).split(separator: ASCII.comma) {
                let member = part.trimmingOWS()
                if !member.isEmpty { found.append(member) }
            }
        }
        return found
    }
}

extension FieldValue {
    /// The parts between semicolons outside quoted strings, white space trimmed; empty ones are left
    /// out.
    func parametersSplit() -> [FieldValue] {
        var found: [FieldValue] = []
        var start = self.startIndex
        var isQuoted = false
        var isEscaped = false
        for index in self.indices {
            let byte = self[index]
            if isEscaped {
                isEscaped = false
            } else if byte == ASCII.backslash, isQuoted {
                isEscaped = true
            } else if byte == ASCII.quote {
                isQuoted.toggle()
            } else if byte == ASCII.semicolon, !isQuoted {
                found.append(self[start..<index].trimmingOWS())
                start = index + 1
            }
        }
        found.append(self[start...].trimmingOWS())
        return found.filter { !$0.isEmpty }
    }
}
