import LarderStore

/// How many entries of the main queue eviction has kept one after the other: a value.
///
/// Each costs writes and makes no room. Of a large cache, all of which was asked for again, the rules
/// would keep up to three times as many as there are before they let go of one. So after some
/// thousands the oldest leave, until the rules let one go by themselves.
struct KeptInARow: Sendable, Equatable {
    static let most = 4096

    private(set) var count = 0

    /// What becomes of the oldest entry of a queue.
    ///
    /// - Parameters:
    ///   - verdict: what the rules say.
    ///   - isUrgent: room is wanted whatever they say.
    mutating func verdict(
        after verdict: EvictionRules.Verdict, of queue: EvictionRules.Queue, isUrgent: Bool
    ) -> EvictionRules.Verdict {
        let isMain = queue == .main
        switch verdict {
        case .evict:
            if isMain { self.count = 0 }
            return verdict
        case .keep where isUrgent || isMain && self.count >= Self.most:
            return .evict(isRemembered: !isMain)
        case .keep:
            if isMain { self.count += 1 }
            return verdict
        }
    }
}
