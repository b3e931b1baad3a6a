package import LarderHTTP

/// The `Cookie` field of a request (RFC 6265bis §5.8.1), and the rule by which a jar's cookies join
/// those that the client sends itself.
package enum CookieField {
    /// What counts where both the client and the jar have cookies.
    package enum Merging: String, Sendable, Codable, CaseIterable {
        /// The client's come first, as it wrote them; then those of the jar whose names the client
        /// does not use. A client that sends a name knows what it means by it, and two values for
        /// one name are read differently by different servers.
        case clientFirst = "client-first"
        /// The jar's replace the client's, where the jar has any.
        case jarReplaces = "jar-replaces"
        /// The jar's are sent where the client sends none at all.
        case clientOnly = "client-only"
    }

    /// The value that says these cookies, in order; empty for none.
    ///
    /// A nameless cookie is its value alone.
    package static func value(of cookies: [Cookie]) -> [UInt8] {
        Array(
            cookies.map { $0.name.isEmpty ? $0.value : $0.name + [ASCII.equals] + $0.value }
                .joined(separator: [ASCII.semicolon, ASCII.space]))
    }

    /// The names that a client uses in its own lines; an empty one for a piece without `=`.
    package static func names(in fields: Fields) -> Set<[UInt8]> {
        var names: Set<[UInt8]> = []
        for line in fields.values(FieldName(.cookie)) {
            for piece in line.split(separator: ASCII.semicolon) {
                let pair = piece.trimmingOWS()
                guard !pair.isEmpty else { continue }
                let equals = pair.firstIndex(of: ASCII.equals)
                names.insert(equals.map { Array(pair[..<$0].trimmingOWS()) } ?? [])
            }
        }
        return names
    }

    /// Puts the jar's cookies into a request.
    ///
    /// Where the jar adds nothing, the client's lines stay byte for byte; otherwise one line holds
    /// all, as a server may understand only one (§4.2.1).
    ///
    /// - Returns: how many of the jar's cookies the request has now.
    @discardableResult
    package static func apply(
        _ cookies: [Cookie], to fields: inout Fields, by merging: Merging = .clientFirst
    ) -> Int {
        let name = FieldName(.cookie)
        let own = fields.values(name).filter { !$0.isEmpty }
        let added: [Cookie]
        switch merging {
        case .clientFirst:
            let taken = self.names(in: fields)
            added = cookies.filter { !taken.contains($0.name) }
        case .jarReplaces:
            added = cookies
        case .clientOnly:
            added = own.isEmpty ? cookies : []
        }
        guard !added.isEmpty else { return 0 }
        var parts = merging == .clientFirst ? own.map { Array($0) } : []
        parts.append(self.value(of: added))
        fields.remove(name)
        fields.append("Cookie", Array(parts.joined(separator: [ASCII.semicolon, ASCII.space])))
        return added.count
    }
}
