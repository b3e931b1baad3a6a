import LarderHTTP
package import LarderPolicy

extension CacheKey {
    /// The URL that a response under this key was stored for, also where the key says less than
    /// that (`No-Vary-Search`).
    package func url(of head: StoredHead) -> String {
        let text = self.parts.uri
        guard let own = head.pathAndQuery, var uri = TargetURI(text: text) else { return text }
        uri.pathAndQuery = own
        return uri.description
    }
}

extension StoredHead {
    /// Every field that `Vary` names, with what the request had in it: nothing where it was absent.
    package var variant: [(name: String, value: String)] {
        let selecting = self.varyingFields.pairs
        return self.fields.members(FieldName(.vary)).map { element in
            let name = String(decoding: element, as: UTF8.self)
            let values = selecting.filter { $0.name.lowercased() == name.lowercased() }
            return (name, values.map(\.value).joined(separator: ", "))
        }
    }
}
