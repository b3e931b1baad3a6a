import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Puts parts of one representation together that were stored beside each other, as neither was there
/// when the storing of the other began.
///
/// Copies what the larger one lacks from the smaller one within the store, piece by piece, and then
/// removes that; looks again until no two are left that belong together. Of two that are whole one is
/// removed. Those who find nothing of use in the store meanwhile wait for it as for any other storing.
/// Any thread.
final class PartMerge: Sendable {
    private struct Copy {
        /// What is still to be copied, the next stretch last.
        var stretches: [Range<UInt64>]
        let target: StoredObject
        let other: StoredObject
        let removals: RemovalMark
    }

    private struct State: ~Copyable {
        var copy: Copy?
        var rounds = 0
    }

    /// Against a store that shows what it was told to remove.
    private static let mostRounds = 64

    private let session: Session
    private let policy: PolicyConfiguration
    private let storing: Storing
    private let state = Mutex(State())

    private init(_ session: Session, _ policy: PolicyConfiguration, _ storing: Storing) {
        self.session = session
        self.policy = policy
        self.storing = storing
    }

    /// Begins, unless one is under way for the key, which then looks once more.
    ///
    /// - Parameter head: of the part that has just been stored.
    static func start(
        _ session: Session, _ policy: PolicyConfiguration, _ key: CacheKey, _ head: StoredHead
    ) {
        guard session.merges.begin(key) else { return }
        let storing = Storing(rearranging: head, of: key)
        session.storings.begin(storing)
        PartMerge(session, policy, storing).look()
    }

    private func look() {
        let key = self.storing.key
        let rounds = self.state.withLock { state in
            state.copy = nil
            state.rounds += 1
            return state.rounds
        }
        guard rounds <= Self.mostRounds else { return self.end() }
        // Before the store is asked: what is removed from then on must not come back.
        let removals = self.session.store.removalMark()
        self.session.store.lookup(key) { objects in
            guard let (target, other) = Self.pair(objects) else { return self.endUnlessAsked() }
            self.begin(target, other, removals)
        }
    }

    /// Two that belong together, the one that stays first.
    private static func pair(_ objects: [StoredObject]) -> (StoredObject, StoredObject)? {
        for (index, one) in objects.enumerated() {
            for other in objects[(index + 1)...] {
                if let staysFirst = self.staysFirst(one, other) {
                    return staysFirst ? (one, other) : (other, one)
                }
            }
        }
        return nil
    }

    /// Whether the first is the one that stays: that with more bytes, or of two that are whole the newer;
    /// nil: both do.
    private static func staysFirst(_ one: StoredObject, _ other: StoredObject) -> Bool? {
        if let newer = Combination.newer(one.head, other.head) { return newer == one.head }
        guard
            Combination.belongTogether(one.head, one.bodyLength, other.head, other.bodyLength)
        else { return nil }
        return self.weight(one) >= self.weight(other)
    }

    private static func weight(_ object: StoredObject) -> UInt64 {
        object.head.extent?.storedBytes ?? .max
    }

    private func begin(_ target: StoredObject, _ other: StoredObject, _ removals: RemovalMark) {
        if target.head.extent == nil, other.head.extent == nil { return self.drop(other) }
        var target = target
        if other.head.responseTime > target.head.responseTime {
            target.head = Combination.head(
                target.head,
                combinedWith: ResponseHead(status: other.head.status, fields: other.head.fields),
                requestTime: other.head.requestTime, responseTime: other.head.responseTime,
                configuration: self.policy)
            self.session.store.update(
                target.id, of: target.key, head: target.head, begun: removals)
        }
        var stretches: [Range<UInt64>] = []
        if let extent = target.head.extent, let lent = other.head.extent {
            stretches = lent.ranges.flatMap { extent.gaps(in: $0) }
        }
        self.state.withLock {
            $0.copy = Copy(
                stretches: stretches.reversed(), target: target, other: other, removals: removals)
        }
        self.copyNext()
    }

    private func copyNext() {
        let (copy, stretch) = self.state.withLock { state in
            (state.copy, state.copy?.stretches.popLast())
        }
        guard let copy else { return }
        guard let stretch else { return self.drop(copy.other) }
        let bytes = BodyCopy(length: stretch.length, isWhole: false) { self.copied($0, copy) }
        let sink = self.session.store.extend(
            copy.target.id, of: copy.target.key, at: stretch.lowerBound, length: stretch.length,
            completeLength: copy.target.head.extent?.completeLength
                ?? copy.other.head.extent?.completeLength,
            begun: copy.removals, observer: bytes)
        // Gone, or grown by now: what is there stays as it is.
        guard let sink else { return self.end() }
        bytes.begin(from: copy.other.body.reader(range: stretch), into: sink)
    }

    private func copied(_ outcome: SinkOutcome, _ copy: Copy) {
        switch outcome {
        case .visible: self.copyNext()
        // One validator, two contents: of the two the larger one is kept.
        case .abandoned(.contradictory): self.drop(copy.other)
        case .abandoned: self.end()
        }
    }

    private func drop(_ object: StoredObject) {
        self.session.store.remove(object.key, ids: [object.id]) { _ in self.look() }
    }

    // MARK: The end

    private func endUnlessAsked() {
        if self.session.merges.mayEnd(self.storing.key) { self.release() } else { self.look() }
    }

    private func end() {
        self.session.merges.end(self.storing.key)
        self.release()
    }

    private func release() {
        self.session.storings.end(self.storing)
        self.storing.release()
    }
}

/// For which keys parts are being put together: one at a time each.
final class PartMerges: Sendable {
    /// Whether something came meanwhile that is to be looked at, too.
    private let asked = Mutex<[CacheKey: Bool]>([:])

    /// - Returns: whether the caller is to do it.
    func begin(_ key: CacheKey) -> Bool {
        self.asked.withLock { asked in
            let isFirst = asked[key] == nil
            asked[key] = !isFirst
            return isFirst
        }
    }

    /// Nothing is left to be done; false where something came meanwhile.
    func mayEnd(_ key: CacheKey) -> Bool {
        self.asked.withLock { asked in
            guard asked[key] == true else {
                asked[key] = nil
                return true
            }
            asked[key] = false
            return false
        }
    }

    func end(_ key: CacheKey) { self.asked.withLock { $0[key] = nil } }
}
