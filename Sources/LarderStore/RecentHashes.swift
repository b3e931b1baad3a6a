/// The last hashes put in, first in, first out.
struct RecentHashes: Sendable {
    private let limit: Int
    /// A ring once it is full.
    private var order: [Int] = []
    private var next = 0
    private var members: Set<Int> = []

    init(limit: Int) {
        self.limit = limit
    }

    func contains(_ hash: Int) -> Bool { self.members.contains(hash) }

    mutating func insert(_ hash: Int) {
        guard self.members.insert(hash).inserted else { return }
        if self.order.count < self.limit {
            self.order.append(hash)
            return
        }
        // A hash that was removed and put in again has an older place too and may leave with it.
        self.members.remove(self.order[self.next])
        self.members.insert(hash)
        self.order[self.next] = hash
        self.next = (self.next + 1) % self.limit
    }

    /// Whether it was in.
    @discardableResult
    mutating func remove(_ hash: Int) -> Bool {
        self.members.remove(hash) != nil
    }
}
