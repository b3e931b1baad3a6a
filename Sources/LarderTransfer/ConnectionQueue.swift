import LarderHTTP

/// Which transfers may have a connection, and which wait for one: in the order of their priority,
/// and of their coming where that is equal.
///
/// A value: who comes, who goes and who learned what goes in, who may go now comes out. libcurl has a
/// queue of its own, but no order in it that anybody promises. An origin that speaks HTTP/2 has no
/// bound here: its requests share connections, and libcurl bounds those.
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

    fileprivate struct Waiter {
        let id: UInt64
        let priority: Float
        let number: UInt64

        func isBehind(_ other: Waiter) -> Bool {
            self.priority == other.priority
                ? self.number > other.number : self.priority < other.priority
        }
    }

    fileprivate struct Line {
        var running: Set<UInt64> = []
        var isMultiplexed = false
        /// The next one last.
        var waiting: [Waiter] = []
        /// Passed over until they are released.
        var held: [Waiter] = []
    }

    /// Beyond so many destinations none is remembered where nothing is under way.
    static let mostKept = 256

    /// At a time for each destination.
    private let limit: Int
    private var lines: [Destination: Line] = [:]
    /// The line that was looked for last, and its place until one is added or removed: a transfer enters
    /// and leaves, and mostly others to the same destination have done so before it.
    private var found: (destination: Destination, place: Dictionary<Destination, Line>.Index)?
    var destinationCount: Int { self.lines.count }
    private var count: UInt64 = 0

    /// nil where nobody ever has to wait: `limit` is 0.
    init?(limit: Int) {
        guard limit > 0 else { return nil }
        self.limit = limit
    }

    /// Lets a transfer in; false where it has to wait.
    mutating func enter(_ id: UInt64, for destination: Destination, priority: Float) -> Bool {
        self.count &+= 1
        let waiter = Waiter(
            id: id, priority: priority.isNaN ? 0.5 : priority, number: self.count)
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
    mutating func leave(_ id: UInt64, for destination: Destination) -> [UInt64] {
        guard let place = self.place(of: destination) else { return [] }
        let next = self.lines.values[place].leave(id, limit: self.limit)
        let line = self.lines.values[place]
        // What is known of an origin is not worth keeping without a connection to it; but where it
        // is the only one, it is likely to be asked again, and that its requests share connections
        // is learned anew by requests that wait.
        let most = line.isMultiplexed ? Self.mostKept : 1
        if line.running.isEmpty, line.held.isEmpty, self.lines.count > most {
            self.found = nil
            self.lines.remove(at: place)
        }
        return next
    }

    /// The destination's requests share connections; who may go now.
    mutating func shares(_ destination: Destination) -> [UInt64] {
        guard let place = self.place(of: destination),
            !self.lines.values[place].isMultiplexed
        else { return [] }
        return self.lines.values[place].share(limit: self.limit)
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
    fileprivate mutating func enter(_ waiter: ConnectionQueue.Waiter, limit: Int) -> Bool {
        if self.isMultiplexed || self.running.count < limit {
            self.running.insert(waiter.id)
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

    fileprivate mutating func leave(_ id: UInt64, limit: Int) -> [UInt64] {
        if self.running.remove(id) == nil {
            self.waiting.removeAll { $0.id == id }
            self.held.removeAll { $0.id == id }
        }
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

    fileprivate mutating func share(limit: Int) -> [UInt64] {
        self.isMultiplexed = true
        return self.admit(limit)
    }

    private mutating func admit(_ limit: Int) -> [UInt64] {
        var admitted: [UInt64] = []
        while self.isMultiplexed || self.running.count < limit, let next = self.waiting.popLast() {
            self.running.insert(next.id)
            admitted.append(next.id)
        }
        return admitted
    }
}
