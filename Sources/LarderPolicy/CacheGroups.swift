package import LarderHTTP

/// Groups of stored responses that are invalidated together (RFC 9875).
///
/// A group belongs to one origin: the same name at another origin is another group. Names are
/// compared byte for byte.
package enum CacheGroups {
    /// How many groups of one field are looked at; the RFC asks for 32 at least (§2).
    package static let limit = 64

    /// The groups that a stored response belongs to (`Cache-Groups`, §2).
    package static func of(_ head: StoredHead) -> [String] {
        head.facts.groups
    }

    /// Whether a stored response belongs to any group.
    package static func hasAny(_ head: StoredHead) -> Bool { !head.facts.groups.isEmpty }

    static func groups(in fields: Fields) -> [String] { self.names(in: fields, .cacheGroups) }

    /// The groups that a response asks to be invalidated (`Cache-Group-Invalidation`, §3), at the
    /// origin of the request.
    ///
    /// Empty for a safe method, where the field "MUST be ignored", and for an error.
    package static func invalidated(by response: ResponseHead, to request: Request) -> [String] {
        guard Invalidation.applies(request, response) else { return [] }
        return self.names(in: response.fields, .cacheGroupInvalidation)
    }

    /// What tells a group from all others: it belongs to one origin (§2.1).
    ///
    /// - Parameter partition: as of the keys of its responses.
    package static func name(
        of group: String, at uri: TargetURI, partition: String = ""
    ) -> [UInt8] {
        let origin = "\(uri.scheme.rawValue)://\(uri.host):\(uri.port)"
        return Array("\(partition) \(origin) \(group)".utf8)
    }

    /// Whether a stored response has been invalidated by one of its groups (§2.2.1): it was asked for
    /// no later than the group was invalidated.
    ///
    /// The time of the request counts, as the origin may have made the response any moment from then
    /// on; a validation since then has brought it forward.
    ///
    /// - Parameter moment: when a group of the response's origin was last invalidated.
    package static func isInvalidated(
        _ head: StoredHead, lastInvalidation moment: (String) -> Timestamp?
    ) -> Bool {
        self.of(head).contains { group in
            moment(group).map { head.requestTime <= $0 } ?? false
        }
    }

    /// The strings of a list; what is no string makes the field invalid, and it is ignored.
    private static func names(in fields: Fields, _ name: KnownField) -> [String] {
        guard fields.has(name),
            let members = StructuredField.list(in: fields, name: FieldName(name))
        else { return [] }
        var names: [String] = []
        for member in members.prefix(self.limit) {
            guard case .item(.string(let group)) = member else { return [] }
            if !names.contains(group) { names.append(group) }
        }
        return names
    }
}
