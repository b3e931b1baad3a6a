import Synchronization

/// What is known in memory of the keys that are stored, so that a look-up of another asks no file.
///
/// Each miss looks here first. In a file of some size the way to the place where a record would lie takes
/// a read of one or two pages, which on a disk that has not read them lately is what a client waits for.
///
/// ```
/// begin ─▶ (a walk adds what is stored, the writer what it writes meanwhile) ─▶ ended ─▶ begin …
/// ```
///
/// Nothing is taken out of a filter, so it is made anew after about as many new responses as there were,
/// while the one before goes on to serve. Until there is a first one, everything may be stored.
final class StoredKeys: Sendable {
    struct State {
        /// Holds every key that is stored.
        var whole: KeyFilter?
        /// Will, when the walk that fills it is over.
        var growing: KeyFilter?
        /// The last walk could not read the file.
        var hasFailed = false
        /// How often another file took the place of one, and how often it had when the walk began.
        var exchanges = 0
        var exchangesAtBegin = 0
    }

    /// Keys for which there is room at most: 64 MiB.
    ///
    /// With more of them it is wrong more often, which costs a look at the file.
    static let most: UInt64 = 1 << 25

    private let fewest: UInt64
    private let state = Mutex(State())

    /// - Parameter fewest: keys for which there is room at the least; 0: everything may be stored, always.
    init(fewest: UInt64) {
        self.fewest = fewest
    }

    /// Whether something may be stored under a key with this hash; false where certainly nothing is.
    func mayHold(_ hash: KeyHash) -> Bool {
        self.state.withLock { $0.whole }?.mayHold(hash) ?? true
    }

    /// A record with this key is about to be committed.
    ///
    /// On the writer's thread, as `begin`.
    func willStore(_ hash: KeyHash) {
        let (whole, growing) = self.state.withLock { ($0.whole, $0.growing) }
        whole?.add(hash)
        growing?.add(hash)
    }

    /// Begins a filter where it is time for one: the caller is to have all keys added to it that are
    /// committed by now, and to call `ended`.
    ///
    /// On the writer's thread, between two transactions: so each key is either committed, or will be told
    /// by `willStore`.
    ///
    /// - Parameter objects: how many responses are stored; where none is, nothing is to be added.
    func begin(holding objects: UInt64) -> KeyFilter? {
        let isDue = self.state.withLock { state in
            self.fewest > 0 && state.growing == nil && !state.hasFailed
                && state.whole.map { self.isSpent($0, objects) } ?? true
        }
        guard isDue else { return nil }
        // To make a large one takes a while, and look-ups go on meanwhile: nobody else begins one.
        let filter = KeyFilter(keys: self.size(for: objects))
        let isFilled = objects == 0
        let old = self.state.withLock { state -> KeyFilter? in
            guard isFilled else {
                state.growing = filter
                state.exchangesAtBegin = state.exchanges
                return nil
            }
            return exchange(&state.whole, with: filter)
        }
        withExtendedLifetime(old) {}
        return isFilled ? nil : filter
    }

    /// As many again as there are: at the next one each was added once, and half of them left meanwhile.
    func size(for objects: UInt64) -> UInt64 {
        min(max(self.fewest, 2 * min(objects, Self.most)), Self.most)
    }

    /// Full, or most of what it holds is not stored any more.
    func isSpent(_ filter: KeyFilter, _ objects: UInt64) -> Bool {
        filter.keys < Self.most && filter.added >= filter.keys
            || filter.added / 4 >= max(self.fewest, objects)
    }

    /// A walk is over.
    ///
    /// - Parameter isWhole: it has added every key that it was to add.
    func ended(isWhole: Bool) {
        // Let go of out of the lock, which every look-up takes: it may be large.
        let old = self.state.withLock { state -> KeyFilter? in
            guard let filter = state.growing.take() else { return nil }
            if isWhole { return exchange(&state.whole, with: filter) }
            // Where another file has come meanwhile, it may be read.
            state.hasFailed = state.exchanges == state.exchangesAtBegin
            return filter
        }
        withExtendedLifetime(old) {}
    }

    /// Another file has taken the place of the one that could perhaps not be read.
    ///
    /// Nothing is in it that was not in the one before, or will be told.
    func fileExchanged() {
        self.state.withLock { state in
            state.hasFailed = false
            state.exchanges &+= 1
        }
    }
}
