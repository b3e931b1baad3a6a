package import LarderHTTP
import LarderPolicy
import LarderStore

/// What a lookup has found for one target.
struct FoundObjects: Sendable {
    /// May answer it, those of invalidated groups marked as invalid.
    var usable: [StoredObject] = []
    /// Stored under the same key, for other queries.
    var neighbours: [StoredObject] = []
}

extension Session {
    /// Measures how long others wait for the head that a filling is to bring.
    func timeWaiting(for filling: Filling) {
        _ = self.timers.schedule(
            after: self.snapshot.values.collapsingPatience
        ) { [weak self, weak filling] in
            guard let self, let filling else { return }
            let joined = filling.releaseJoined()
            // Else it is there for those who come next.
            guard !joined.isEmpty else { return }
            self.fillings.remove(filling)
            for waiter in joined { waiter.fillingIsSlow() }
        }
    }

    /// Finds what is stored under a key and answers `uri`.
    ///
    /// `completion` is called once: at once where memory knows, else on a thread of the store's.
    func find(
        _ key: CacheKey, for uri: TargetURI,
        _ completion: @escaping @Sendable (FoundObjects) -> Void
    ) {
        if let resident = self.store.lookupResident(key) {
            return completion(self.sorted(resident, under: key, for: uri))
        }
        self.store.lookup(key) { objects in
            completion(self.sorted(objects, under: key, for: uri))
        }
    }

    /// Tells whether the whole response that a request selects is stored, fresh or not.
    ///
    /// - Parameter completion: called once, here or on a thread of the store's; must not block.
    package func holds(_ request: Request, _ completion: @escaping @Sendable (Bool) -> Void) {
        let request =
            self.conduct?.prepared(request, permits: nil, isSent: false, at: self.clock.now())
            ?? request
        let key = CacheKey(method: .get, uri: request.uri, partition: self.partition)
        let policy = self.configuration.policy.resolved(for: request.uri)
        let isWhole = { @Sendable (object: StoredObject) in
            object.head.extent == nil
                && Variance.matches(object.head, request, configuration: policy)
        }
        self.find(key, for: request.uri) { found in
            if found.usable.contains(where: isWhole) { return completion(true) }
            guard policy.honoursNoVarySearch, self.store.mayHoldWithoutSearch else {
                return completion(false)
            }
            self.find(key.withoutSearch, for: request.uri) { more in
                completion(more.usable.contains(where: isWhole))
            }
        }
    }

    private func sorted(
        _ objects: [StoredObject], under key: CacheKey, for uri: TargetURI
    ) -> FoundObjects {
        var found = FoundObjects()
        // As it nearly always is: the objects as they are.
        if !key.leavesOutSearch, !objects.contains(where: { CacheGroups.hasAny($0.head) }) {
            found.usable = objects
            return found
        }
        var asked = AskedSearch(uri.pathAndQuery)
        for object in objects {
            if key.leavesOutSearch, !object.head.answers(&asked) {
                found.neighbours.append(object)
            } else {
                found.usable.append(self.judged(object, at: uri))
            }
        }
        return found
    }

    func judged(_ object: StoredObject, at uri: TargetURI) -> StoredObject {
        var object = object
        object.head = self.judged(object.head, at: uri)
        return object
    }

    /// The head, invalid if one of its groups has been invalidated since it was asked for.
    func judged(_ head: StoredHead, at uri: TargetURI) -> StoredHead {
        guard self.isInvalidated(head, at: uri) else { return head }
        var head = head
        head.isInvalidated = true
        return head
    }

    /// Whether one of the groups of a response has been invalidated since it was asked for
    /// (RFC 9875 §2.2.1).
    func isInvalidated(_ head: StoredHead, at uri: TargetURI) -> Bool {
        CacheGroups.isInvalidated(head) { group in
            self.store.groupInvalidation(
                of: CacheGroups.name(of: group, at: uri, partition: self.partition))
        }
    }
}
