import LarderConfig
package import LarderControl
import LarderHTTP
package import LarderPolicy
import LarderSession
package import LarderStore

/// Which stored responses a purge is about: a selection, read once and asked of every key.
package struct PurgeFilter: Sendable {
    private enum Test: Sendable {
        case uri(TargetURI)
        case host(String)
        case pattern(Glob)
        case all
    }

    private let test: Test

    /// - Throws: `.invalid` for a URL that is none.
    package init(_ selection: PurgeSelection) throws(ControlRefusal) {
        switch selection {
        case .url(let text):
            guard let uri = TargetURI(text: text) else {
                throw ControlRefusal(
                    failure: ControlFailure(
                        .invalid,
                        "\"\(text)\" is no URL; one begins with http://, https:// or ftp://"))
            }
            self.test = .uri(uri)
        case .host(let text):
            let bare = text.hasPrefix("[") ? String(text.dropFirst().dropLast()) : text
            self.test = .host(bare.lowercased())
        case .pattern(let text): self.test = .pattern(Glob(text))
        case .all: self.test = .all
        }
    }

    /// Removes what is meant from a store, all its tiers included.
    ///
    /// One URL is found by its key; anything else takes a walk through the whole store.
    ///
    /// - Returns: how many responses went, once no lookup can find them any more.
    package func purge(_ store: any ObjectStore) async -> Int {
        await withCheckedContinuation { continuation in
            if case .uri(let uri) = self.test {
                store.removeWithSearch(CacheKey(method: .get, uri: uri)) {
                    continuation.resume(returning: $0)
                }
            } else {
                store.removeAll(where: self.matches) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Removes what is meant from a session that runs, so that no later request can join a fetch for
    /// it that was under way.
    ///
    /// - Returns: how many responses went, once neither a lookup nor a fetch can bring them.
    func purge(_ session: Session) async -> Int {
        await withCheckedContinuation { continuation in
            if case .uri(let uri) = self.test {
                session.remove(CacheKey(method: .get, uri: uri)) {
                    continuation.resume(returning: $0)
                }
            } else {
                session.removeAll(where: self.matches) { continuation.resume(returning: $0) }
            }
        }
    }

    package func matches(_ key: CacheKey) -> Bool {
        switch self.test {
        case .uri(let uri): key.parts.uri == CacheKey(method: .get, uri: uri).parts.uri
        case .host(let host): Self.host(of: key.parts.uri) == host[...]
        case .pattern(let glob): glob.matches(key.parts.uri)
        case .all: true
        }
    }

    /// The host of a key's URI, without brackets and port; nil where there is none.
    private static func host(of uri: String) -> Substring? {
        guard let colon = uri.firstIndex(of: ":") else { return nil }
        let rest = uri[uri.index(after: colon)...]
        guard rest.hasPrefix("//") else { return nil }
        let authority = rest.dropFirst(2).prefix { $0 != "/" && $0 != "?" }
        if authority.hasPrefix("[") {
            return authority.dropFirst().prefix { $0 != "]" }
        }
        return authority.prefix { $0 != ":" }
    }
}
