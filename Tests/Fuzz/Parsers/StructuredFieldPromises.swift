import LarderHTTP

/// Structured fields: lists and dictionaries read, and the members that Larder writes (RFC 9651).
enum StructuredFieldPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        var fields = Fields()
        for line in input.textLines { fields.append("A", line) }
        if let list = StructuredField.list(in: fields, name: "A") {
            let text = list.map(self.text).joined(separator: ", ")
            let again = StructuredField.list(in: ["A": text], name: "A")
            try hold(
                again?.map(self.text) == list.map(self.text),
                "written and read again: \(text), \(again as Any)")
        }
        if let dictionary = StructuredField.dictionary(in: fields, name: "A") {
            let names = dictionary.map(\.key)
            try hold(Set(names).count == names.count, "a key twice: \(names)")
            let parts = dictionary.map { "\($0.key)=\(self.text($0.value))" }
            let again = StructuredField.dictionary(
                in: ["A": parts.joined(separator: ", ")], name: "A")
            try hold(
                again?.map { "\($0.key)=\(self.text($0.value))" } == parts,
                "written and read again: \(parts), \(again as Any)")
        }
        try self.checkWritten(input.text)
    }

    /// What Larder says itself is one item, whatever text goes into it.
    private static func checkWritten(_ text: String) throws(Violation) {
        let status = CacheStatus(
            forward: .stale, forwardStatus: .ok, ttl: .min, stored: true, detail: text)
        let proxy = ProxyStatus(
            error: .dnsError, nextHop: text, receivedStatus: .badGateway, details: text)
        for member in [status.member(named: text), proxy.member(named: text)] {
            // The smallest number has more digits than RFC 9651 lets an integer have.
            let sane = member.replacing(String(Int64.min), with: "-1")
            let read = StructuredField.list(in: ["A": sane], name: "A")
            try hold(read?.count == 1, "\(member) is read as \(read as Any)")
        }
    }

    private static func text(_ member: StructuredField.Member) -> String {
        switch member {
        case .item(let item): self.text(item)
        case .innerList(let items): "(" + items.map(self.text).joined(separator: " ") + ")"
        }
    }

    private static func text(_ item: StructuredField.BareItem) -> String {
        switch item {
        case .integer(let value): return String(value)
        case .decimal(let value):
            let thousandths = Int64((value.magnitude * 1000).rounded())
            let fraction = String(thousandths % 1000 + 1000).dropFirst()
            return "\(value < 0 ? "-" : "")\(thousandths / 1000).\(fraction)"
        case .string(let text): return StructuredField.string(text)
        case .token(let text): return text
        case .bytes(let text): return ":\(text):"
        case .boolean(let value): return value ? "?1" : "?0"
        case .date(let seconds): return "@\(seconds)"
        case .displayString(let text): return "%" + StructuredField.string(text)
        }
    }
}

extension String {
    fileprivate func replacing(_ old: String, with new: String) -> String {
        var out = ""
        var rest = self[...]
        while !rest.isEmpty {
            if rest.hasPrefix(old) {
                out += new
                rest = rest.dropFirst(old.count)
            } else if let first = rest.popFirst() {
                out.append(first)
            }
        }
        return out
    }
}
