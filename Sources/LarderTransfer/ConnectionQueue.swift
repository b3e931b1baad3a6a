import LarderHTTP

/// Which transfers may have a connection, and which wait for one: in the order of their priority,
/// and of their coming where that is equal.
///
/// A value: who comes, who goes and who learned what goes in, who may go now comes out. libcurl has a
/// queue of its own, but no order in it that anybody promises, and one for all origins: when a
/// connection becomes free, 7.88 looks at the first that waits alone, and puts it back to the end where
/// it is for another origin. So nobody is to wait there but for the limit of all connections.
///
/// Where requests may share a connection, the first to an origin finds out whether they do, and the
/// others wait for that: else each would make one of its own. Those that share have no bound here.
///
/// A client has at most three times as many connections to an origin as it leaves to others: of 96 the
/// first 72, one beside it 18, and so on. So one that holds all it can (answers that it takes slowly)
/// leaves some to whoever comes next, at any time and with none taken away.
struct ConnectionQueue {
    /// What connections are counted for.
    struct Destination: Hashable {
        let scheme: String
        let host: String
        let port: UInt16

        /// Without the scheme, which hardly ever tells two apart that are alike in the rest.
        func hash(into hasher: inout Hasher) {
            hasher.combine(self.host)
            hasher.combine(self.port)
        }

        init(_ uri: TargetURI, _ way: Way) {
            if case .relay(let parent) = way {
                self.scheme = parent.kind.rawValue
                self.host = parent.host
                self.port = parent.port
            } else {
                self.scheme = uri.scheme.rawValue
                self.host = uri.host
                self.port = uri.port
            }
        }
    }

    /// What is known of the requests to a destination.
    enum Sharing {
        case unknown
        /// Each needs a connection to itself, or may be the first to need none.
        case none
        /// They share connections.
        case shared
    }

    fileprivate struct Waiter {
        let id: UInt64
        let priority: Float
        let number: UInt64
        /// It may share a connection, if its destination does that.
        let mayShare: Bool
        /// Whose share it counts for; nil: nobody's.
        let client: Int?

        func isBehind(_ other: Waiter) -> Bool {
            self.priority == other.priority
                ? self.number > other.number : self.priority < other.priority
        }
    }

    /// Transfers that have a place, and how many of them each client has.
    fileprivate struct Group {
        private var clients = SmallTable<UInt64, Int?>()
        private var shares = SmallTable<Int, Int>()

        var count: Int { self.clients.count }
        var isEmpty: Bool { self.clients.isEmpty }

        func share(of client: Int) -> Int { self.shares[client] ?? 0 }

        /// Whose it is; nil where it is nobody's, or not in.
        func client(of id: UInt64) -> Int? { self.clients[id] ?? nil }

        mutating func insert(_ waiter: Waiter) {
            self.clients.update(waiter.client, for: waiter.id)
            guard let client = waiter.client else { return }
            self.shares.update(self.share(of: client) + 1, for: client)
        }

        /// - Returns: whether it was in.
        mutating func remove(_ id: UInt64) -> Bool {
            guard let client = self.clients.remove(id) else { return false }
            guard let client else { return true }
            let share = self.share(of: client)
            self.shares[client] = share > 1 ? share - 1 : nil
            return true
        }
    }

    fileprivate struct Line {
        /// Each has a connection to itself.
        var running = Group()
        /// Each may share one, and does once that is known.
        var sharing = Group()
        /// Forgotten when nothing runs: the connection may be gone by the next time.
        var known = Sharing.unknown
        /// Who finds out about that.
        var scout: UInt64?
        /// The next one last.
        var waiting: [Waiter] = []
        /// Passed over until they are released.
        var held: [Waiter] = []
        /// Those that may end for others, in the order of their offers.
        var offers: [UInt64] = []
        /// Those that were asked to, and have not left yet.
        var ending: [UInt64] = []
    }

    /// So many connections, and more, are divided among clients.
    fileprivate static let leastDivided = 8

    /// At a time for each destination.
    private let limit: Int
    private var lines: [Destination: Line] = [:]
    /// The line that was looked for last, and its place until one is added or removed: a transfer enters
    /// and leaves, and mostly others to the same destination have done so before it.
    private var found: (destination: Destination, place: Dictionary<Destination, Line>.Index)?
    var destinationCount: Int { self.lines.count }
    private var count: UInt64 = 0

    /// - Parameter limit: 0: none.
    init(limit: Int) {
        self.limit = limit > 0 ? limit : .max
    }

    /// Lets a transfer in; false where it has to wait.
    ///
    /// - Parameters:
    ///   - mayShare: its connection may turn out to be one that requests share.
    ///   - client: whose share of the connections it counts for; nil: nobody's.
    mutating func enter(
        _ id: UInt64, for destination: Destination, priority: Float, mayShare: Bool = false,
        client: Int? = nil
    ) -> Bool {
        self.count &+= 1
        let waiter = Waiter(
            id: id, priority: priority.isNaN ? 0.5 : priority, number: self.count,
            mayShare: mayShare, client: client)
        // In place: a line that is taken out and put back is copied, with all that run.
        if let place = self.place(of: destination) {
            return self.lines.values[place].enter(waiter, limit: self.limit)
        }
        self.found = nil
        return self.lines[destination, default: Line()].enter(waiter, limit: self.limit)
    }

    /// Has a transfer that waits passed over; false where it does not wait.
    mutating func hold(_ id: UInt64, for destination: Destination) -> Bool {
        guard let place = self.place(of: destination) else { return false }
        return self.lines.values[place].hold(id)
    }

    /// Has a transfer that was held wait in its place again, or go now: then it returns true.
    mutating func release(_ id: UInt64, for destination: Destination) -> Bool {
        guard let place = self.place(of: destination) else { return false }
        return self.lines.values[place].release(id, limit: self.limit)
    }

    /// Lets go of a transfer, whether it ran or waited; who may go in its place.
    ///
    /// - Parameter isDead: it could not be connected.
    mutating func leave(
        _ id: UInt64, for destination: Destination, isDead: Bool = false
    ) -> [UInt64] {
        guard let place = self.place(of: destination) else { return [] }
        let next = self.lines.values[place].leave(id, limit: self.limit, isDead: isDead)
        // The only one is likely to be asked again.
        if self.lines.count > 1, self.lines.values[place].isEmpty {
            self.found = nil
            self.lines.remove(at: place)
        }
        return next
    }

    /// A transfer, whether it runs or waits, may end for others that wait.
    mutating func offerEnd(of id: UInt64, for destination: Destination) {
        guard let place = self.place(of: destination) else { return }
        self.lines.values[place].offerEnd(of: id)
    }

    /// Who is to end for another that waits; nil where nobody has to, or offered it.
    ///
    /// It is to leave, or to say that it does not (`keep`).
    mutating func takeOffer(for destination: Destination) -> UInt64? {
        guard let place = self.place(of: destination) else { return nil }
        return self.lines.values[place].takeOffer(limit: self.limit)
    }

    /// One that was to end for another does not.
    mutating func keep(_ id: UInt64, for destination: Destination) {
        guard let place = self.place(of: destination) else { return }
        self.lines.values[place].ending.removeAll { $0 == id }
    }

    /// A transfer stands still, and is not waited for: another finds out in its place; who may go.
    mutating func stopWaiting(for id: UInt64, to destination: Destination) -> [UInt64] {
        guard let place = self.place(of: destination) else { return [] }
        return self.lines.values[place].stopWaiting(for: id, limit: self.limit)
    }

    /// Whether the destination's requests share connections is known now; who may go.
    mutating func learn(_ sharing: Sharing, of destination: Destination) -> [UInt64] {
        guard let place = self.place(of: destination) else { return [] }
        return self.lines.values[place].learn(sharing, limit: self.limit)
    }
}

extension ConnectionQueue {
    private mutating func place(
        of destination: Destination
    ) -> Dictionary<Destination, Line>.Index? {
        if let found = self.found, found.destination == destination { return found.place }
        guard let place = self.lines.index(forKey: destination) else { return nil }
        self.found = (destination, place)
        return place
    }
}

extension ConnectionQueue.Line {
    fileprivate var isEmpty: Bool { self.isIdle && self.held.isEmpty }

    private var isIdle: Bool { self.running.isEmpty && self.sharing.isEmpty }

    private func isFull(_ limit: Int) -> Bool { self.free(of: limit) <= 0 }

    private func free(of limit: Int) -> Int {
        limit - self.running.count - (self.known == .shared ? 0 : self.sharing.count)
    }

    /// Whether a client has as much as one may have where so many connections are free.
    ///
    /// - Parameter ending: so many of its own are not counted.
    private func hasItsShare(
        _ client: Int?, of limit: Int, free: Int, ending: Int = 0
    ) -> Bool {
        // Of very few, all are for whoever comes.
        guard let client, limit >= ConnectionQueue.leastDivided else { return false }
        let share =
            self.running.share(of: client)
            + (self.known == .shared ? 0 : self.sharing.share(of: client))
        return (share - ending) / 3 >= free
    }

    private func mayGo(_ waiter: ConnectionQueue.Waiter, _ limit: Int) -> Bool {
        if waiter.mayShare, self.known == .shared { return true }
        let free = self.free(of: limit)
        guard free > 0, !self.hasItsShare(waiter.client, of: limit, free: free) else {
            return false
        }
        return !waiter.mayShare || self.known == .none || self.scout == nil
    }

    private mutating func go(_ waiter: ConnectionQueue.Waiter) {
        if waiter.mayShare {
            self.sharing.insert(waiter)
            if self.known == .unknown { self.scout = waiter.id }
        } else {
            self.running.insert(waiter)
        }
    }

    fileprivate mutating func enter(_ waiter: ConnectionQueue.Waiter, limit: Int) -> Bool {
        if self.mayGo(waiter, limit) {
            self.go(waiter)
            return true
        }
        var (low, high) = (0, self.waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if self.waiting[middle].isBehind(waiter) { low = middle + 1 } else { high = middle }
        }
        self.waiting.insert(waiter, at: low)
        return false
    }

    fileprivate mutating func leave(_ id: UInt64, limit: Int, isDead: Bool) -> [UInt64] {
        if !self.running.remove(id), !self.sharing.remove(id) {
            self.waiting.removeAll { $0.id == id }
            self.held.removeAll { $0.id == id }
        }
        if !self.offers.isEmpty { self.offers.removeAll { $0 == id } }
        if !self.ending.isEmpty { self.ending.removeAll { $0 == id } }
        if self.scout == id {
            self.scout = nil
            // One after the other would be slow to learn the same.
            if isDead { self.known = .none }
        }
        if self.isIdle, self.waiting.isEmpty { self.known = .unknown }
        return self.admit(limit)
    }

    fileprivate mutating func offerEnd(of id: UInt64) {
        if !self.offers.contains(id) { self.offers.append(id) }
    }

    fileprivate mutating func takeOffer(limit: Int) -> UInt64? {
        guard !self.offers.isEmpty, let next = self.waiting.last, !self.mayGo(next, limit) else {
            return nil
        }
        let line = self
        // One for each that waits; those that wait themselves are in the way of the others only.
        let place = self.offers.firstIndex { id in
            let others = line.waiting.count - (line.waiting.contains { $0.id == id } ? 1 : 0)
            return others > line.ending.count && line.endHelps(id, next, limit)
        }
        guard let place else { return nil }
        let id = self.offers.remove(at: place)
        self.ending.append(id)
        return id
    }

    /// Whether one that waits may go when another ends, or is nearer to that.
    ///
    /// Who waits for its client's share alone is helped by the end of one of that client's own.
    private func endHelps(_ id: UInt64, _ next: ConnectionQueue.Waiter, _ limit: Int) -> Bool {
        let free = self.free(of: limit)
        if free > 0, !self.hasItsShare(next.client, of: limit, free: free) { return true }
        let owner = self.running.client(of: id) ?? self.sharing.client(of: id)
        return self.waiting.contains { waiter in
            guard waiter.id != id else { return false }
            let isOwn = owner != nil && owner == waiter.client
            return (isOwn || free <= 0)
                && !self.hasItsShare(
                    waiter.client, of: limit, free: max(free, 0) + 1, ending: isOwn ? 1 : 0)
        }
    }

    fileprivate mutating func stopWaiting(for id: UInt64, limit: Int) -> [UInt64] {
        guard self.scout == id else { return [] }
        self.scout = nil
        return self.admit(limit)
    }

    fileprivate mutating func hold(_ id: UInt64) -> Bool {
        guard let place = self.waiting.firstIndex(where: { $0.id == id }) else { return false }
        self.held.append(self.waiting.remove(at: place))
        return true
    }

    fileprivate mutating func release(_ id: UInt64, limit: Int) -> Bool {
        guard let place = self.held.firstIndex(where: { $0.id == id }) else { return false }
        return self.enter(self.held.remove(at: place), limit: limit)
    }

    fileprivate mutating func learn(
        _ sharing: ConnectionQueue.Sharing, limit: Int
    ) -> [UInt64] {
        // Of several connections one may be shared, and is what others will find.
        guard self.known != sharing, self.known != .shared else { return [] }
        self.known = sharing
        self.scout = nil
        return self.admit(limit)
    }

    private mutating func admit(_ limit: Int) -> [UInt64] {
        var admitted: [UInt64] = []
        // Whose share is used up.
        var spent: [Int] = []
        var place = self.waiting.count
        while place > 0 {
            place -= 1
            let next = self.waiting[place]
            if let client = next.client, self.known != .shared, spent.contains(client) { continue }
            if self.mayGo(next, limit) {
                self.waiting.remove(at: place)
                self.go(next)
                admitted.append(next.id)
            } else if self.known != .shared, self.isFull(limit) {
                break
            } else if let client = next.client,
                self.hasItsShare(client, of: limit, free: self.free(of: limit))
            {
                spent.append(client)
            }
        }
        return admitted
    }
}
