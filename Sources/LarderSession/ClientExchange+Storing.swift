import LarderHTTP
import LarderPolicy
import LarderStore

/// Waiting for what is just being stored.
extension ClientExchange {
    /// How often one exchange looks into the store, where something is stored or removed all the
    /// time.
    static let mostLooks = 32

    /// Looks into the store again where that will know more than it did: at once, or when it has taken
    /// what it is being given.
    ///
    /// Asked where what was found is not enough. A storing is waited for only when all its bytes have
    /// come, and no longer than the session's patience with the store.
    ///
    /// - Returns: whether it does; the exchange goes on when it has looked.
    func looksAgain(beyond objects: [StoredObject]) -> Bool {
        guard self.request.method == .get || self.request.method == .head else { return false }
        let (looks, mark) = self.looked
        guard looks < Self.mostLooks, !self.session.storings.isIdle(since: mark) else {
            return false
        }
        for key in self.storedKeys {
            // First: what has ended by now is in the list no more.
            let storings = self.session.storings.storings(of: key)
            if self.session.storings.hasEnded(key, since: mark) {
                self.lookAgain()
                return true
            }
            for storing in storings where self.isWorthWaiting(for: storing, beyond: objects) {
                switch storing.wait({ self.lookAgain() }) {
                case .overdue: continue
                case .over: self.lookAgain()
                case .waiting(let isFirst): if isFirst { self.limit(storing) }
                }
                return true
            }
        }
        return false
    }

    /// Where a response to this request may lie.
    private var storedKeys: [CacheKey] {
        self.policy.honoursNoVarySearch ? [self.key, self.key.withoutSearch] : [self.key]
    }

    private func isWorthWaiting(for storing: Storing, beyond objects: [StoredObject]) -> Bool {
        storing.isAlmostOver
            && (!storing.key.leavesOutSearch || storing.head.answers(self.request.uri))
            && Variance.matches(storing.head, self.request, configuration: self.policy)
            && !storing.isShown(among: objects)
    }

    private func limit(_ storing: Storing) {
        let token = self.session.timers.schedule(after: self.configuration.storePatience) {
            [weak storing] in storing?.patienceOver()
        }
        storing.limit(by: token)
    }
}
