package import LarderHTTP

/// What a response says about the queries that it answers too (`No-Vary-Search`,
/// draft-ietf-httpbis-no-vary-search-10): which parameters do not matter, and whether their order does.
///
/// Whatever the field's grammar does not know makes it the default, under which two queries are the
/// same only byte for byte: a mistake costs hits and never answers with the wrong thing.
package struct NoVarySearch: Sendable, Equatable {
    /// A decoded name, as the bytes of its UTF-8: text would be compared by canonical equivalence,
    /// and the draft knows no normalisation.
    package typealias Key = [UInt8]

    package enum Parameters: Sendable, Equatable {
        /// All parameters but these matter.
        case allBut(Set<Key>)
        /// Only these matter.
        case only(Set<Key>)
    }

    package let parameters: Parameters
    package let ordersKeys: Bool

    /// Every parameter matters, and so does their order.
    package static let standard = NoVarySearch(parameters: .allBut([]), ordersKeys: true)

    private init(parameters: Parameters, ordersKeys: Bool) {
        self.parameters = parameters
        self.ordersKeys = ordersKeys
    }

    /// The meaning of all `No-Vary-Search` lines of a response together.
    package init(_ fields: Fields) {
        guard fields.has(.noVarySearch),
            let members = StructuredField.dictionary(in: fields, name: FieldName(.noVarySearch)),
            let parsed = NoVarySearch(members)
        else {
            self = .standard
            return
        }
        self = parsed
    }

    /// Nil where a value has the wrong type, and where both `params` and `except` are there.
    ///
    /// Unknown keys are ignored.
    private init?(_ members: [(key: String, value: StructuredField.Member)]) {
        var ordersKeys = true
        var parameters: Parameters?
        for (key, value) in members {
            switch key {
            case "key-order":
                guard case .item(.boolean(let ignored)) = value else { return nil }
                ordersKeys = !ignored
            case "params", "except":
                guard parameters == nil, let names = Self.names(value) else { return nil }
                parameters = key == "params" ? .allBut(names) : .only(names)
            default: break
            }
        }
        self.init(parameters: parameters ?? .allBut([]), ordersKeys: ordersKeys)
    }

    /// More names than this are not understood.
    private static let nameLimit = 64

    private static func names(_ value: StructuredField.Member) -> Set<Key>? {
        guard case .innerList(let items) = value, items.count <= self.nameLimit else { return nil }
        var names = Set<Key>()
        for item in items {
            guard case .string(let text) = item else { return nil }
            names.insert(SearchParameters.decoded(Array(text.utf8)[...]))
        }
        return names
    }

    // MARK: Comparing

    /// Whether one response answers both targets, given as path and query.
    package func equates(_ a: String, _ b: String) -> Bool {
        var asked = AskedSearch(b)
        return asked.isEqual(to: a, by: self)
    }

    func matters(_ key: Key) -> Bool {
        switch self.parameters {
        case .allBut(let names): !names.contains(key)
        case .only(let names): names.contains(key)
        }
    }

    /// The parameters that matter, in an order of their own where theirs does not.
    func sorted(_ pairs: [SearchParameters.Pair]) -> [SearchParameters.Pair] {
        guard !self.ordersKeys else { return pairs }
        // By key alone and keeping the order of equal ones, which is that of a key's values.
        return pairs.enumerated()
            .sorted { a, b in
                if a.element.key == b.element.key { return a.offset < b.offset }
                return a.element.key.lexicographicallyPrecedes(b.element.key)
            }
            .map(\.element)
    }
}

/// A query as `application/x-www-form-urlencoded` reads it (WHATWG URL §5.1).
enum SearchParameters {
    struct Pair: Equatable {
        let key: [UInt8]
        let value: [UInt8]
    }

    /// Longer queries are the same only byte for byte: one is read for each stored response that it
    /// may be answered with.
    private static let limit = 256

    /// Whether there are more pairs than that, empty ones counted.
    static func isLong(_ query: FieldValue) -> Bool {
        query.count { $0 == UInt8(ascii: "&") } >= self.limit
    }

    /// The pairs between `&` whose keys matter, empty ones left out; one without `=` has an empty value.
    static func parse(_ query: FieldValue, where matters: ([UInt8]) -> Bool) -> [Pair] {
        query.split(separator: UInt8(ascii: "&")).compactMap { part in
            let equals = part.firstIndex(of: ASCII.equals)
            let key = self.decoded(part[..<(equals ?? part.endIndex)])
            guard matters(key) else { return nil }
            return Pair(key: key, value: equals.map { self.decoded(part[($0 + 1)...]) } ?? [])
        }
    }

    /// `+` is a space, `%41` an A, and what is no UTF-8 then is U+FFFD.
    static func decoded(_ bytes: FieldValue) -> [UInt8] {
        // As most are.
        let isPlain = bytes.allSatisfy {
            $0 < 0x80 && $0 != UInt8(ascii: "%") && $0 != UInt8(ascii: "+")
        }
        if isPlain { return Array(bytes) }
        var raw: [UInt8] = []
        raw.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), bytes.endIndex - index > 2,
                let high = ASCII.hexDigit(bytes[index + 1]),
                let low = ASCII.hexDigit(bytes[index + 2])
            {
                raw.append(high << 4 | low)
                index += 3
                continue
            }
            raw.append(byte == UInt8(ascii: "+") ? ASCII.space : byte)
            index += 1
        }
        return Array(String(decoding: raw, as: UTF8.self).utf8)
    }
}
