import LarderHTTP
import LarderPolicy
import Synchronization

/// The fillings that other requests may join, by key; and the keys for which joining is no use.
///
/// Sharded, each shard locked for a few lines.
final class FillingTable: Sendable {
    private struct Shard {
        var fillings: [CacheKey: Filling] = [:]
        /// Fillings of parts, of which a key may have several.
        var parts: [CacheKey: [Filling]] = [:]
        /// When requests for a key are not made to wait for each other.
        var uncollapsed: [CacheKey: Span] = [:]
        /// When nothing is validated in the background, as that has just failed.
        var resting: [CacheKey: Span] = [:]
    }

    /// A while from a moment on; over also where the clock was set back behind that.
    private struct Span {
        let start: Timestamp
        let end: Timestamp

        func holds(at now: Timestamp) -> Bool { self.start <= now && now < self.end }
    }

    /// A slot of the table: `Mutex` cannot live in an array.
    private final class Slot: Sendable {
        let shard = Mutex(Shard())
    }

    private static let uncollapsedLimit = 512
    private let slots: [Slot]
    private let removals = Atomic<UInt64>(0)

    init() {
        self.slots = (0..<16).map { _ in Slot() }
    }

    private func slot(of key: CacheKey) -> Slot {
        self.slots[Int(UInt(bitPattern: key.digest) % 16)]
    }

    enum Place {
        /// There is one already.
        case existing(Filling)
        /// The filling was entered: the caller fetches.
        case entered
        /// The last responses for the key could not be shared: fetch without entering.
        case notWorthWhile
        /// Something was removed since the store was asked, perhaps of another key.
        ///
        /// Who asks the store again can join or be joined; who does not must fetch without entering.
        case removedMeanwhile
        /// There is none, but the store may have more than it had.
        case storedMeanwhile
    }

    /// How often fillings were removed because what they may bring must not be served any more.
    ///
    /// Read before the store is asked, and handed in to `find`.
    var era: UInt64 { self.removals.load(ordering: .acquiring) }

    /// - Parameter era: from before the store was asked: who has found there what was removed since
    ///   must not have others join.
    /// - Parameter hasMore: whether the store has taken something since it was asked; a filling that
    ///   is not in the table any more has noted that before. Called under the lock, for a few lines.
    /// - Parameter makesWait: others may come to wait for what the filling brings. What is fetched for
    ///   nobody is entered also where joining is no use: nobody is referred to it then.
    func find(
        _ key: CacheKey, or filling: () -> Filling, at now: Timestamp, era: UInt64,
        makesWait: Bool = true, unless hasMore: () -> Bool = { false }
    ) -> Place {
        let slot = self.slot(of: key)
        return slot.shard.withLock { shard in
            guard era == self.era else { return .removedMeanwhile }
            if makesWait, let span = shard.uncollapsed[key] {
                if span.holds(at: now) { return .notWorthWhile }
                shard.uncollapsed[key] = nil
            }
            if let existing = shard.fillings[key] { return .existing(existing) }
            if hasMore() { return .storedMeanwhile }
            shard.fillings[key] = filling()
            return .entered
        }
    }

    /// Finds the filling of the same part, or enters this one.
    ///
    /// - Parameter era: nil where it does not matter when what is stored was found.
    func find(
        part filling: Filling, at now: Timestamp, era: UInt64?,
        unless hasMore: () -> Bool = { false }
    ) -> Place {
        guard let part = filling.part else { return .notWorthWhile }
        let key = filling.key
        return self.slot(of: key).shard.withLock { shard in
            if let era, era != self.era { return .removedMeanwhile }
            // Of a gap something is stored, which was shared.
            if case .range = part, shard.uncollapsed[key]?.holds(at: now) == true {
                return .notWorthWhile
            }
            let all = shard.parts[key] ?? []
            if let existing = all.first(where: { $0.part?.isSame(as: part) == true }) {
                return .existing(existing)
            }
            if hasMore() { return .storedMeanwhile }
            shard.parts[key] = all + [filling]
            return .entered
        }
    }

    /// The filling of the whole, if others may join it.
    func whole(_ key: CacheKey) -> Filling? {
        self.slot(of: key).shard.withLock { $0.fillings[key] }
    }

    /// Takes a filling out, if it is still the one entered under its key.
    func remove(_ filling: Filling) {
        self.slot(of: filling.key).shard.withLock { shard in
            if shard.fillings[filling.key] === filling { shard.fillings[filling.key] = nil }
            guard filling.part != nil, var rest = shard.parts[filling.key] else { return }
            rest.removeAll { $0 === filling }
            shard.parts[filling.key] = rest.isEmpty ? nil : rest
        }
    }

    /// Takes out the filling of a key that was removed from the store: those who come now must not
    /// get what was asked for before.
    ///
    /// - Parameter spared: brings what took the place of that.
    func forget(_ key: CacheKey, but spared: Filling? = nil) {
        self.removals.add(1, ordering: .acquiringAndReleasing)
        self.slot(of: key).shard.withLock { shard in
            if spared == nil || shard.fillings[key] !== spared { shard.fillings[key] = nil }
            shard.parts[key] = nil
        }
    }

    /// Takes out the fillings of all keys that match.
    ///
    /// `matches` is called with no lock held.
    func forget(where matches: (CacheKey) -> Bool) {
        self.removals.add(1, ordering: .acquiringAndReleasing)
        for filling in self.all where matches(filling.key) { self.remove(filling) }
    }

    /// Takes out what brings a response whose stored head says something else by now.
    ///
    /// It may be there after the store shows the response, until the store has said so. Of gaps
    /// nothing changes: who joins one was referred to it by what is stored.
    ///
    /// - Parameters:
    ///   - key: under which the response lies; where that is for several queries, the fillings of all
    ///     of them are meant.
    ///   - spared: brings another.
    func retire(_ key: CacheKey, but spared: Filling? = nil) {
        let brought =
            key.leavesOutSearch
            ? self.all.filter { $0.gap == nil && $0.key.withoutSearch == key }
            : self.slot(of: key).shard.withLock { shard in
                [shard.fillings[key]].compactMap { $0 }
                    + (shard.parts[key] ?? []).filter { $0.gap == nil }
            }
        for filling in brought where filling !== spared && filling.hasAnswer {
            self.remove(filling)
        }
    }

    /// Remembers that responses for `key` cannot be shared.
    ///
    /// The memory is bounded: when it is full the whole shard forgets.
    func noteUnshared(_ key: CacheKey, at now: Timestamp, for time: Duration) {
        self.slot(of: key).shard.withLock { shard in
            if shard.uncollapsed.count >= Self.uncollapsedLimit { shard.uncollapsed = [:] }
            shard.uncollapsed[key] = Span(start: now, end: now + time)
        }
    }

    /// Remembers that a validation in the background has failed; bounded likewise.
    func noteFailedValidation(_ key: CacheKey, at now: Timestamp, for time: Duration) {
        self.slot(of: key).shard.withLock { shard in
            if shard.resting.count >= Self.uncollapsedLimit { shard.resting = [:] }
            shard.resting[key] = Span(start: now, end: now + time)
        }
    }

    /// Whether a validation in the background has failed a moment ago.
    func rests(_ key: CacheKey, at now: Timestamp) -> Bool {
        self.slot(of: key).shard.withLock { shard in
            guard let span = shard.resting[key] else { return false }
            if span.holds(at: now) { return true }
            shard.resting[key] = nil
            return false
        }
    }

    func forgetUnshared(_ key: CacheKey) {
        self.slot(of: key).shard.withLock { shard in
            if !shard.uncollapsed.isEmpty { shard.uncollapsed[key] = nil }
        }
    }

    /// All fillings, for people to look at.
    var all: [Filling] {
        self.slots.flatMap { slot in
            slot.shard.withLock { Array($0.fillings.values) + $0.parts.values.joined() }
        }
    }
}
