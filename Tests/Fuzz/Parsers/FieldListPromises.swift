@testable import LarderHTTP
@testable import LarderPolicy

/// Lists, quoted strings, and the fields whose rules are small (RFC 9110 §5.6, §7.6, §10.1).
enum FieldListPromises {
    private static let names = [
        "Via", "Connection", "Accept", "Expect", "Upgrade", "Max-Forwards", "Content-Length",
        "Transfer-Encoding", "Vary", "Proxy-Connection", "Accept-Language", "Accept-Encoding",
        "Content-Language", "Forwarded",
    ]

    static func check(_ input: [UInt8]) throws(Violation) {
        let lines = input.textLines
        var fields = Fields()
        for line in lines {
            for name in self.names { fields.append(name, line) }
            fields.append(String(decoding: line, as: UTF8.self), line)
            try self.checkList(line)
            try self.checkQuoted(line)
        }
        try checkSection(fields)
        try self.checkRules(fields)
        try self.checkVarying(fields, lines)
        HopByHop.strip(&fields)
        try hold(
            fields.contains("Via")
                && !fields.lines.contains { HopByHop.isConnectionField($0.known) },
            "left after stripping: \(fields.pairs.map(\.name))")
        Trailers.strip(&fields)
        try hold(!fields.contains("Vary"), "a trailer that no trailer may be")
    }

    /// Without quotes, every way to cut a list finds the same members.
    private static func checkList(_ line: FieldValue) throws(Violation) {
        let members = Array(ListMembers(line))
        for member in members {
            try hold(
                !member.isEmpty && member == member.trimmingOWS(), "the member \(Array(member))")
        }
        guard !line.contains(ASCII.quote), !line.contains(0) else { return }
        let plain = line.split(separator: ASCII.comma).map { $0.trimmingOWS() }
            .filter { !$0.isEmpty }
        try hold(plain == members, "\(plain) was read as \(members)")
    }

    private static func checkQuoted(_ line: FieldValue) throws(Violation) {
        var quoted: [UInt8] = [ASCII.quote]
        for byte in line {
            if byte == ASCII.quote || byte == ASCII.backslash { quoted.append(ASCII.backslash) }
            quoted.append(byte)
        }
        quoted.append(ASCII.quote)
        try hold(quoted[...].unquoted == line, "\(quoted) loses what it holds")
        try hold(Array(ListMembers(quoted[...])) == [quoted[...]], "\(quoted) is cut in two")
        if let content = line.unquoted {
            try hold(content.count <= line.count - 2, "\(Array(line)) holds more than it has")
        }
    }

    private static func checkRules(_ fields: Fields) throws(Violation) {
        _ = Via.contains(pseudonym: "larder", in: fields)
        _ = ProblemDocument.Format(acceptedBy: fields)
        _ = Expect(fields, version: .http11)
        for name in Upgrade.protocols(in: fields, version: .http11) {
            try hold(!name.isEmpty, "a protocol without a name")
        }
        let verdict = MaxForwards.judge(method: .trace, fields: fields)
        if case .forward(let remaining) = verdict {
            var passed = fields
            passed.set("Max-Forwards", String(remaining))
            let next = MaxForwards.judge(method: .trace, fields: passed)
            let expected: MaxForwards.Verdict =
                remaining == 0 ? .respond : .forward(remaining: remaining - 1)
            try hold(next == expected, "\(verdict), then \(next)")
        }
        var via: Fields = [:]
        let text = String(decoding: fields.values("Via").first ?? [], as: UTF8.self)
        Via.append(to: &via, version: .http11, pseudonym: text)
        try checkSection(via)
        if case .some(.some(let length)) = try? MessageFraming.contentLength(of: fields) {
            try hold(length <= UInt64(Int64.max), "a content length of \(length)")
        }
        _ = HopByHop.keepsAlive(fields, version: .http11)
    }

    /// The comparison for `Vary` is one of equals, and a response matches its own request.
    private static func checkVarying(
        _ fields: Fields, _ lines: [FieldValue]
    ) throws(Violation) {
        let first = lines.prefix(lines.count / 2)
        let second = lines.suffix(lines.count - first.count)
        for text in ["Accept-Language", "Accept-Encoding", "Cookie", "Other"] {
            var a = Fields()
            var b = Fields()
            for line in first { a.append(text, line) }
            for line in second { b.append(text, line) }
            let name = FieldName(text)
            for semantic in [false, true] {
                let ab = VaryingValue.equal(name, a, b, semantic: semantic)
                let ba = VaryingValue.equal(name, b, a, semantic: semantic)
                try hold(ab == ba, "\(text) is equal one way only")
                try hold(
                    VaryingValue.equal(name, a, a, semantic: semantic), "\(text) is not itself")
            }
            _ = VaryingValue.prefersLanguage(of: fields, status: .ok, a)
            for coding in lines { _ = VaryingValue.takesCoding(coding, a) }
        }
        for member in Variance.varies(fields) {
            guard case .field(let name) = member else { continue }
            try hold(
                !name.lowercased.isEmpty && name.lowercased.utf8.allSatisfy(ASCII.isToken),
                "Vary names \(name)")
        }
    }
}
