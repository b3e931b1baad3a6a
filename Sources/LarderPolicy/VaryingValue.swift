import LarderHTTP

/// The comparison of one field in two requests (RFC 9111 §4.1).
///
/// Two are the same when one can be turned into the other by joining lines, by white space where the
/// syntax allows it, or, for fields whose meaning is known, by writing the same thing otherwise.
enum VaryingValue {
    static func equal(_ name: FieldName, _ a: Fields, _ b: Fields, semantic: Bool) -> Bool {
        let left = a.values(name)
        let right = b.values(name)
        // "If a header field is absent from a request, it can only match another request if it is
        // also absent there."
        if left.isEmpty || right.isEmpty { return left.isEmpty == right.isEmpty }
        if left == right { return true }
        guard !self.isSingleton(name), self.mayBeSplit(left), self.mayBeSplit(right) else {
            return false
        }
        // What an empty member means in a field that nobody here knows is its own affair.
        if name.known == .other, (left + right).contains(where: { self.hasEmptyMember($0) }) {
            return false
        }
        let leftMembers = self.members(left)
        let rightMembers = self.members(right)
        if leftMembers == rightMembers { return true }
        guard semantic, self.isPreference(name) else { return false }
        guard let leftSet = Preference.list(leftMembers, of: name),
            let rightSet = Preference.list(rightMembers, of: name)
        else { return false }
        return leftSet == rightSet
    }

    /// Whether values are short enough to be taken apart for each stored variant: longer ones are compared
    /// byte for byte.
    private static func mayBeSplit(_ lines: [FieldValue]) -> Bool {
        lines.reduce(0) { $0 + $1.count } <= self.splitLimit
    }

    /// Four times what the longest `Accept` of a browser takes.
    private static let splitLimit = 1024

    /// Whether the stored response is in the one language that the request likes best: the ranking
    /// that §4.1 lets a cache use.
    ///
    /// The origin has shown that it has this language, so it would choose it again. Only what is
    /// successful shows that: a failure or a list of choices is in some language, too.
    static func prefersLanguage(
        of stored: Fields, status: StatusCode, _ presented: Fields
    ) -> Bool {
        let name = FieldName(.acceptLanguage)
        let languages = stored.members(FieldName(.contentLanguage))
        guard status.isSuccessful, languages.count == 1, presented.contains(name),
            self.mayBeSplit(presented.values(name)),
            let preferences = Preference.list(self.members(presented.values(name)), of: name),
            let best = preferences.max(by: { $0.weight < $1.weight }), best.weight > 0,
            preferences.count(where: { $0.weight == best.weight }) == 1
        else { return false }
        return languages[0].spells(best.name)
    }

    /// Whether a request takes its answer with a content coding.
    static func takesCodings(_ fields: Fields) -> Bool {
        let name = FieldName(.acceptEncoding)
        let values = fields.values(name)
        guard self.mayBeSplit(values) else { return true }
        let preferences = Preference.list(self.members(values), of: name)
        // What nobody can read may say so.
        guard let preferences else { return fields.has(.acceptEncoding) }
        return preferences.contains { $0.name != "identity" && $0.weight > 0 }
    }

    /// Whether a request takes its answer with one content coding, named or as any (`*`).
    static func takesCoding(_ coding: FieldValue, _ fields: Fields) -> Bool {
        let name = FieldName(.acceptEncoding)
        let values = fields.values(name)
        guard self.mayBeSplit(values), let wanted = Preference(coding, of: name),
            let preferences = Preference.list(self.members(values), of: name)
        else { return false }
        if wanted.name == "identity" { return true }
        let weight =
            preferences.last { $0.name == wanted.name } ?? preferences.last { $0.name == "*" }
        return weight.map { $0.weight > 0 } ?? false
    }

    /// Fields whose value is one thing: a comma in it separates nothing, so they are compared as
    /// they stand.
    private static func isSingleton(_ name: FieldName) -> Bool {
        switch name.known {
        case .cookie, .userAgent, .authorization, .referer, .from, .host, .ifModifiedSince,
            .ifUnmodifiedSince, .ifRange, .range:
            true
        default: name.lowercased == "origin"
        }
    }

    private static func isPreference(_ name: FieldName) -> Bool {
        name.known == .acceptEncoding || name.known == .acceptLanguage
    }

    private static func hasEmptyMember(_ line: FieldValue) -> Bool {
        var isEmpty = true
        for byte in line {
            if byte == ASCII.comma, isEmpty { return true }
            isEmpty = byte == ASCII.comma || (isEmpty && ASCII.isOWS(byte))
        }
        return isEmpty
    }

    private static func members(_ lines: [FieldValue]) -> [FieldValue] {
        lines.flatMap { Array(ListMembers($0)) }
    }
}

/// One weighted member of `Accept-Encoding` or `Accept-Language` (RFC 9110 §12.5.3, §12.5.4).
///
/// Their order has no defined meaning, weights do, and the default weight is 1.
private struct Preference: Hashable, Comparable {
    let name: String
    /// Thousandths.
    let weight: Int

    static func < (a: Preference, b: Preference) -> Bool {
        (a.name, a.weight) < (b.name, b.weight)
    }

    /// More members than any program sends.
    ///
    /// What is longer is compared byte for byte: it would be read again for each stored variant.
    private static let limit = 32

    /// The members in one order, each once; nil where one of them is malformed, or there are too many.
    static func list(_ members: [FieldValue], of field: FieldName) -> [Preference]? {
        guard members.count <= self.limit else { return nil }
        var all = Set<Preference>()
        for member in members {
            guard let preference = Preference(member, of: field) else { return nil }
            all.insert(preference)
        }
        return all.sorted()
    }

    init?(_ member: FieldValue, of field: FieldName) {
        let name = member.prefix { $0 != ASCII.semicolon }
        let trimmed = name.trimmingOWS()
        guard trimmed.isToken else { return nil }
        let text = String(decoding: trimmed, as: UTF8.self).lowercased()
        // RFC 9110 §8.4.1: x-gzip and x-compress are the same as gzip and compress.
        let isOldName = field.known == .acceptEncoding && ["x-gzip", "x-compress"].contains(text)
        self.name = isOldName ? String(text.dropFirst(2)) : text
        guard name.endIndex < member.endIndex else {
            self.weight = 1000
            return
        }
        let parameter = member[(name.endIndex + 1)...].trimmingOWS()
        guard parameter.prefix(2).spells("q="), let weight = Self.weight(parameter.dropFirst(2))
        else { return nil }
        self.weight = weight
    }

    /// `qvalue` in thousandths (RFC 9110 §12.4.2).
    private static func weight(_ bytes: FieldValue) -> Int? {
        guard let first = bytes.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1")
        else { return nil }
        var thousandths = first == UInt8(ascii: "1") ? 1000 : 0
        let fraction = bytes.dropFirst()
        if fraction.isEmpty { return thousandths }
        guard fraction.first == UInt8(ascii: "."), fraction.count <= 4 else { return nil }
        var unit = 100
        for byte in fraction.dropFirst() {
            guard ASCII.isDigit(byte) else { return nil }
            thousandths += Int(byte - 0x30) * unit
            unit /= 10
        }
        return thousandths <= 1000 ? thousandths : nil
    }
}
