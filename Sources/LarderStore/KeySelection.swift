package import LarderPolicy

/// Which keys a removal is about.
package enum KeySelection: Sendable {
    /// All that is stored: a store may have a shorter way than to look at each.
    case all
    /// Asked of each key, on any thread; must not block.
    case matching(@Sendable (CacheKey) -> Bool)

    package func contains(_ key: CacheKey) -> Bool {
        switch self {
        case .all: true
        case .matching(let matches): matches(key)
        }
    }
}
