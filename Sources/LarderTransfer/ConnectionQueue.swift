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

    private struct Waiter {
        let id: UInt64
        let priority: Float
        let number: UInt64

        func isBehind(_ other: Waiter) -> Bool {
            self.priority == other.priority
                ? self.number > other.number : self.priority < other.priority
        }
    }

    private struct Line {
        var running: Set<UInt64> = []
        var isMultiplexed = false
        /// The next one last.
        var waiting: [Waiter] = []
    }

    /// At a time for each destination; 0: no bound.
    private let limit: Int
    private var lines: [Destination: Line] = [:]
    private var count: UInt64 = 0

    init(limit: Int) {
        self.limit = Swift.max(0, limit)
    }

    /// Lets a transfer in; false where it has to wait.
    mutating func enter(_ id: UInt64, for destination: Destination, priority: Float) -> Bool {
        guard self.limit > 0 else { return true }
        self.count &+= 1
        var line = self.lines[destination] ?? Line()
        defer { self.lines[destination] = line }
        if line.isMultiplexed || line.running.count < self.limit {
            line.running.insert(id)
            return true
        }
        let priority = priority.isNaN ? 0.5 : priority
        let waiter = Waiter(id: id, priority: priority, number: self.count)
        var (low, high) = (0, line.waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if line.waiting[middle].isBehind(waiter) { low = middle + 1 } else { high = middle }
        }
        line.waiting.insert(waiter, at: low)
        return false
    }

    /// Lets go of a transfer, whether it ran or waited; who may go in its place.
    mutating func leave(_ id: UInt64, for destination: Destination) -> [UInt64] {
        guard var line = self.lines[destination] else { return [] }
        if line.running.remove(id) == nil { line.waiting.removeAll { $0.id == id } }
        let next = self.admit(&line)
        // What is known of an origin is not worth keeping without a connection to it.
        self.lines[destination] = line.running.isEmpty && !line.isMultiplexed ? nil : line
        return next
    }

    /// The destination's requests share connections; who may go now.
    mutating func shares(_ destination: Destination) -> [UInt64] {
        guard self.limit > 0, var line = self.lines[destination], !line.isMultiplexed else {
            return []
        }
        line.isMultiplexed = true
        let next = self.admit(&line)
        self.lines[destination] = line
        return next
    }

    private func admit(_ line: inout Line) -> [UInt64] {
        var admitted: [UInt64] = []
        while line.isMultiplexed || line.running.count < self.limit,
            let next = line.waiting.popLast()
        {
            line.running.insert(next.id)
            admitted.append(next.id)
        }
        return admitted
    }
}
