import LarderConfig
package import LarderControl
import LarderHTTP
import LarderPolicy
package import LarderStore

/// Removes stored responses on a person's command.
package enum Purge {
    /// Removes what `selection` means from a store, all its tiers included.
    ///
    /// - Returns: how many responses went, once no lookup can find them any more.
    /// - Throws: `.invalid` for a URL that is none.
    package static func run(
        _ selection: PurgeSelection, on store: any ObjectStore
    ) async throws(ControlRefusal) -> Int {
        guard case .url(let text) = selection else {
            let matches = Self.matcher(of: selection)
            return await withCheckedContinuation { continuation in
                store.removeAll(where: matches) { continuation.resume(returning: $0) }
            }
        }
        guard let uri = TargetURI(text: text) else {
            throw ControlRefusal(
                failure: ControlFailure(
                    .invalid, "\(text) is no http, https or ftp URL; give it with its scheme"))
        }
        let key = CacheKey(method: .get, uri: uri)
        return await withCheckedContinuation { continuation in
            store.remove(key, ids: nil) { continuation.resume(returning: $0) }
        }
    }

    /// Whether a selection means a key.
    private static func matcher(of selection: PurgeSelection) -> @Sendable (CacheKey) -> Bool {
        switch selection {
        case .all: return { _ in true }
        case .url(let url): return { $0.parts.uri == url }
        case .pattern(let pattern):
            let glob = Glob(pattern)
            return { glob.matches($0.parts.uri) }
        case .host(let host):
            let host = host.lowercased()
            return { TargetURI(text: $0.parts.uri)?.host == host }
        }
    }
}
