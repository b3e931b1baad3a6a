import LarderHTTP
import LarderPolicy
import LarderStore

/// What is to be validated behind the back of a client that was served it stale.
struct BackgroundValidation: Sendable {
    /// How often what was served is looked for again, where something is removed all the time.
    static let mostLooks = 8

    /// The client's.
    let request: Request
    let snapshot: ConfigurationSnapshot
    let key: CacheKey
    /// What the store has, and which of it was served.
    var objects: [StoredObject]
    var index: Int
    /// The era of the table of fillings, from before the store was asked.
    var era: UInt64
    var looks = 1

    var served: StoredObject? {
        self.objects.indices.contains(self.index) ? self.objects[self.index] : nil
    }

    /// The request that validates what was served, for the sake of the store.
    ///
    /// What the client demanded of caches was for its own answer: an `only-if-cached` would have one
    /// that lies further on answer 504. It stays where a stored response varies by it.
    func ownRequest(for served: StoredHead) -> Request {
        let whole = Validation.unconditional(self.request)
        // Of what is stored in part no more is fetched than somebody asked for.
        var own =
            served.extent == nil ? whole : Validation.keepingRange(whole, of: self.request)
        own.method = .get
        for name in [FieldName(.cacheControl), FieldName(.pragma)]
        where !self.objects.contains(where: { Variance.depends($0.head, on: name) }) {
            own.fields.remove(name)
        }
        return own
    }
}

extension Session {
    /// Asks the origin, behind the back of a client that was served a stale response, whether it
    /// still holds (RFC 5861 §3).
    ///
    /// One such fetch a key at a time, and a pause after one that failed: an origin that is down
    /// must not be asked once for each client that is served meanwhile.
    func revalidate(_ validation: BackgroundValidation) {
        let key = validation.key
        let now = self.clock.now()
        guard let served = validation.served, !self.fillings.rests(key, at: now) else { return }
        let mine = Filling(key: key, window: self.configuration.window)
        switch self.fillings.find(
            key, or: { mine }, at: now, era: validation.era, makesWait: false)
        {
        case .existing, .notWorthWhile, .storedMeanwhile: return
        case .removedMeanwhile: return self.findAgain(served, validation)
        case .entered: break
        }
        self.live.backgroundFetches.add()
        Fetch(
            session: self,
            order: Fetch.Order(
                request: validation.ownRequest(for: served.head), snapshot: validation.snapshot,
                body: nil, key: key, stored: validation.objects, validating: validation.index,
                client: nil,
                isEntered: true, isBackground: true),
            filling: mine
        ).start()
    }

    /// Validates what was served if it is stored still: something was removed since it was found.
    private func findAgain(_ served: StoredObject, _ validation: BackgroundValidation) {
        guard validation.looks < BackgroundValidation.mostLooks else { return }
        var again = validation
        again.looks += 1
        again.era = self.fillings.era
        self.find(served.key, for: validation.request.uri) { [again] found in
            var again = again
            again.objects = found.usable
            guard let index = again.objects.firstIndex(where: { $0.id == served.id }) else {
                return
            }
            again.index = index
            self.revalidate(again)
        }
    }
}
