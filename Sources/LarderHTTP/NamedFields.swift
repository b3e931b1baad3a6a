/// Field names from a list in a message, to be looked for among its lines.
///
/// A few are compared one by one. Of many, as only one who wants to make work names them, a set is
/// made: names times lines would be some ten million comparisons a message.
package struct NamedFields: Sendable {
    private static let few = 16

    package let names: [FieldName]
    private let set: Set<FieldName>?

    package init(_ names: [FieldName]) {
        self.names = names
        self.set = names.count > Self.few ? Set(names) : nil
    }

    package var isEmpty: Bool { self.names.isEmpty }

    /// These names and others.
    package func with(_ others: [FieldName]) -> NamedFields {
        others.isEmpty ? self : NamedFields(self.names + others)
    }

    package func contain(_ line: Fields.Line, of fields: Fields) -> Bool {
        guard let set = self.set else {
            return self.names.contains { fields.matches(line, $0) }
        }
        return set.contains(
            FieldName(String(decoding: fields.name(of: line), as: UTF8.self)))
    }
}
