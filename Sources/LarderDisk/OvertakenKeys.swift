import LarderPolicy
import LarderStore

/// Keys of which something newer was stored elsewhere, a bounded number of them.
struct OvertakenKeys: Sendable {
    private static let keyLimit = 16_384
    private static let byteLimit = 4 << 20

    private var keys: Set<CacheKey> = []
    private var bytes = 0
    private var isOverfull = false

    var isEmpty: Bool { self.keys.isEmpty && !self.isOverfull }

    /// Has a file forget what it has of them.
    func remove(from disk: DiskStore) {
        // There were too many to remember, and it may be any.
        if self.isOverfull { return disk.removeAll(in: .all) { _ in } }
        for key in self.keys { disk.remove(key, ids: nil, nil) }
    }

    mutating func insert(_ key: CacheKey) {
        guard !self.isOverfull, self.keys.insert(key).inserted else { return }
        self.bytes += key.bytes.count
        guard self.keys.count > Self.keyLimit || self.bytes > Self.byteLimit else { return }
        self.keys = []
        self.isOverfull = true
    }
}
