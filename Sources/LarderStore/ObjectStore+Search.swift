package import LarderPolicy
import Synchronization

extension ObjectStore {
    /// Removes all responses of a key, and all that are stored for any query of its path: those may
    /// answer the same requests (`No-Vary-Search`).
    ///
    /// Others of the path go with them; a cache may always forget.
    ///
    /// - Parameter completion: gets their number, once no lookup can find any of them.
    package func removeWithSearch(
        _ key: CacheKey, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        _ = self.removeWithSearch(key, begun: self.removalMark(), completion)
    }

    /// Removes all responses of a key, and all for any query of its path, on account of a request that
    /// was sent when the mark was `begun`.
    ///
    /// - Returns: the mark with which what that request brings may be stored: `begun` still where
    ///   something else has removed any of it since.
    package func removeWithSearch(
        _ key: CacheKey, begun: RemovalMark, _ completion: @escaping @Sendable (Int) -> Void
    ) -> RemovalMark {
        let sum = RemovalSum(completion)
        let beside = self.remove(key.withoutSearch, begun: begun) { sum.add($0) }
        let own = self.remove(key, begun: begun) { sum.add($0) }
        return beside == begun ? begun : own
    }
}

/// The number of what two removals have removed, told when both have ended.
private final class RemovalSum: Sendable {
    private struct State {
        var removed = 0
        var isHalf = false
    }

    private let state = Mutex(State())
    private let completion: @Sendable (Int) -> Void

    init(_ completion: @escaping @Sendable (Int) -> Void) {
        self.completion = completion
    }

    func add(_ removed: Int) {
        let total: Int? = self.state.withLock { state in
            state.removed += removed
            defer { state.isHalf = true }
            return state.isHalf ? state.removed : nil
        }
        if let total { self.completion(total) }
    }
}
