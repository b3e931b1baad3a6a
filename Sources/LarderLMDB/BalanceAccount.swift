/// What is known in a write transaction of how LMDB may have balanced one tree, and so of which
/// committed pages it can come to when it deletes from a leaf.
///
/// A deletion that leaves a leaf less than a quarter full makes LMDB look at the leaf beside it, and
/// move a node over or merge the two (`mdb_rebalance`). As long as no leaf around comes near to that,
/// no other page is looked at. After that the working tree differs from the committed one in a way
/// that LMDB does not show: a dirty leaf may have taken in its neighbours. It takes in one with each
/// merge, which the number of leaves shows, and one more each time that what it had is deleted and
/// refilled from beside, which costs a quarter of a page in deletions at least. So the leaves up to
/// that far are vetted.
struct BalanceAccount {
    private let pageSize: Int
    private var leafPages: UInt64
    private var branchPages: UInt64
    private var merges = 0
    private var branchWasSplit = false
    /// Bytes deleted from leaves that may have been balanced.
    private var unsteadyBytes = 0
    /// Bytes deleted and nodes deleted, by committed leaf; those that may have been balanced have
    /// ``unsteady``.
    private var removed: [UInt64: (bytes: Int, nodes: Int)] = [:]

    private static let unsteady = Int.max / 2

    init(_ record: TreeRecord, _ pageSize: Int) {
        self.pageSize = pageSize
        self.leafPages = record.leafPages
        self.branchPages = record.branchPages
    }

    /// How many leaves on either side LMDB may come to from a leaf that was balanced.
    var reach: Int { 2 + self.merges + self.unsteadyBytes / max(1, self.pageSize / 4) }

    var branchReach: Int { 1 + self.merges }

    /// Another one whenever ``branchReach`` or ``mayBalanceBranch(nodes:)`` may say something else.
    var branchState: Int { self.branchWasSplit ? -1 - self.merges : self.merges }

    /// Whether anything was deleted from the leaf, or it was split.
    func isTouched(_ leaf: UInt64) -> Bool { self.removed[leaf] != nil }

    /// Whether a branch page with so many nodes may lose all but one: LMDB keeps two.
    func mayBalanceBranch(nodes: Int) -> Bool {
        self.branchWasSplit || nodes - self.merges - 1 < 3
    }

    /// Notes a deletion of `bytes` from a leaf that had so many used and so many nodes.
    ///
    /// - Returns: how many leaves on either side are to be vetted.
    mutating func willDelete(from leaf: UInt64, bytes: Int, used: Int, nodes: Int) -> Int {
        var sum = self.removed[leaf] ?? (0, 0)
        if sum.bytes < Self.unsteady {
            sum = (sum.bytes + bytes, sum.nodes + 1)
            // A third of a page, where LMDB's own threshold is a quarter.
            if (used - sum.bytes) * 3 >= self.pageSize, nodes - sum.nodes >= 2 {
                self.removed[leaf] = sum
                return 0
            }
        }
        self.removed[leaf] = (Self.unsteady, 0)
        self.unsteadyBytes += bytes
        return self.reach
    }

    /// Notes that a node of `bytes` gives way to another, maybe a shorter one.
    mutating func willReplace(in leaf: UInt64, bytes: Int) {
        var sum = self.removed[leaf] ?? (0, 0)
        if bytes == 0 || sum.bytes >= Self.unsteady { return }
        sum.bytes += bytes
        self.removed[leaf] = sum
    }

    /// Takes over the numbers of pages; true where a leaf was split.
    mutating func changed(leafPages: UInt64, branchPages: UInt64) -> Bool {
        defer {
            self.leafPages = leafPages
            self.branchPages = branchPages
        }
        if leafPages < self.leafPages {
            self.merges += Int(clamping: self.leafPages - leafPages)
        }
        if branchPages < self.branchPages {
            self.merges += Int(clamping: self.branchPages - branchPages)
        }
        if branchPages > self.branchPages { self.branchWasSplit = true }
        return leafPages > self.leafPages
    }

    /// Notes that what a leaf holds is spread over two.
    mutating func wasSplit(_ leaf: UInt64) {
        self.removed[leaf] = (Self.unsteady, 0)
    }
}
