/// Remembers what was evicted lately, by fingerprint, without holding any of it.
///
/// First in, first out; bounded by the bytes that the evicted entries had and by their number, so
/// that it looks back about one cache's worth of evictions.
struct GhostQueue: Sendable {
    private struct Ghost {
        var fingerprint: UInt64
        var size: UInt64
        var serial: UInt64
    }

    private let byteLimit: UInt64
    private let countLimit: Int
    /// Oldest at `first`; what lies before it is waste, dropped when it is half of the array.
    private var queue: [Ghost] = []
    private var first = 0
    /// The serial of the ghost that counts for a fingerprint: an older one in the queue is stale.
    private var serials: [UInt64: UInt64] = [:]
    private var nextSerial: UInt64 = 0
    private(set) var bytes: UInt64 = 0

    init(byteLimit: UInt64, countLimit: Int) {
        self.byteLimit = byteLimit
        self.countLimit = countLimit
    }

    /// How many are remembered.
    var count: Int { self.serials.count }

    mutating func insert(_ fingerprint: UInt64, size: UInt64) {
        guard size <= self.byteLimit, self.countLimit > 0 else { return }
        self.nextSerial &+= 1
        self.queue.append(
            Ghost(fingerprint: fingerprint, size: size, serial: self.nextSerial))
        self.serials[fingerprint] = self.nextSerial
        self.bytes += size
        while self.bytes > self.byteLimit || self.queue.count - self.first > self.countLimit {
            self.dropOldest()
        }
    }

    /// Forgets the fingerprint; whether it was remembered.
    mutating func take(_ fingerprint: UInt64) -> Bool {
        // Its place in the queue stays and counts until it comes to the front.
        self.serials.removeValue(forKey: fingerprint) != nil
    }

    private mutating func dropOldest() {
        guard self.first < self.queue.count else { return }
        let ghost = self.queue[self.first]
        self.first += 1
        self.bytes -= ghost.size
        if self.serials[ghost.fingerprint] == ghost.serial {
            self.serials.removeValue(forKey: ghost.fingerprint)
        }
        if self.first > 64, self.first * 2 > self.queue.count {
            self.queue.removeFirst(self.first)
            self.first = 0
        }
    }
}
