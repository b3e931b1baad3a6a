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
        case host(HostSelector)
        case pattern(Glob)
        case all
    }

    private let test: Test
    /// nil: whosever they are.
    private let partition: String?

    /// - Parameter principal: whose responses are meant; nil: those of all.
    /// - Throws: `.invalid` for a URL or a host that is none.
    package init(
        _ selection: PurgeSelection, principal: String? = nil
    ) throws(ControlRefusal) {
        self.partition = principal.map(CacheKey.partition(of:))
        switch selection {
        case .url(let text):
            guard let uri = TargetURI(text: text) else {
                throw ControlRefusal(
                    invalid: "\"\(text)\" is no URL; one begins with http://, https:// or ftp://")
            }
            self.test = .uri(uri)
        case .host(let text):
            guard let host = HostSelector(text) else {
                throw ControlRefusal(
                    invalid: "\"\(text)\" is no host; write h.example, .h.example or *.h.example")
            }
            self.test = .host(host)
        case .pattern(let text): self.test = .pattern(Glob(text))
        case .all: self.test = .all
        }
    }

    /// Removes what is meant from a store, all its tiers included.
    ///
    /// One URL of one principal is found by its key; anything else takes a walk through the whole
    /// store.
    ///
    /// - Returns: how many responses went, once no lookup can find them any more.
    package func purge(_ store: any ObjectStore) async -> Int {
        await withCheckedContinuation { continuation in
            if let key = self.key(isSplit: true) {
                store.removeWithSearch(key) { continuation.resume(returning: $0) }
            } else {
                store.removeAll(in: self.selection) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Removes what is meant from a session that runs, so that no later request can join a fetch for
    /// it that was under way.
    ///
    /// - Parameters:
    ///   - sessions: those of all principals in memory, over the same store.
    ///   - isSplit: whether there may be others in the store.
    /// - Returns: how many responses went, once neither a lookup nor a fetch can bring them.
    func purge(_ sessions: [Session], isSplit: Bool) async -> Int {
        guard let first = sessions.first else { return 0 }
        let removed = await withCheckedContinuation { continuation in
            if let key = self.key(isSplit: isSplit) {
                first.remove(key) { continuation.resume(returning: $0) }
            } else {
                first.removeAll(in: self.selection) { continuation.resume(returning: $0) }
            }
        }
        for session in sessions.dropFirst() { session.forgetFetches(in: self.selection) }
        return removed
    }

    /// The one key that is meant; nil where there may be several.
    private func key(isSplit: Bool) -> CacheKey? {
        guard case .uri(let uri) = self.test, self.partition != nil || !isSplit else { return nil }
        return CacheKey(method: .get, uri: uri, partition: self.partition ?? "")
    }

    /// What a walk through the whole store is to remove.
    private var selection: KeySelection {
        if case .all = self.test, self.partition == nil { return .all }
        return .matching(self.matches)
    }

    package func matches(_ key: CacheKey) -> Bool {
        let parts = key.parts
        if let partition = self.partition, parts.partition != partition { return false }
        return switch self.test {
        case .uri(let uri): key.isAbout(uri)
        case .host(let host): host.matches(URLHost.of(parts.uri.utf8))
        case .pattern(let glob): glob.matches(parts.uri)
        case .all: true
        }
    }
}
