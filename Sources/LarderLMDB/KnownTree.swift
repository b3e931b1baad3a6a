/// What a write transaction knows of one of its trees, and how far around a leaf it has looked.
///
/// A class, so that all is changed in place: as a value that was taken out and put back, each deletion
/// copied what was known of all leaves that were touched before.
final class KnownTree {
    /// The record of the committed tree.
    let record: TreeRecord
    var account: BalanceAccount
    /// How many leaves on either side of a place were looked at, and for which balance of the
    /// branches.
    private var around: [UInt64: (reach: Int, branches: Int)] = [:]
    /// How many leaves behind a place were looked at.
    private var ahead: [UInt64: Int] = [:]

    init(_ record: TreeRecord, pageSize: Int) {
        self.record = record
        self.account = BalanceAccount(record, pageSize)
    }

    /// Names the leaf that a way ends at, and the way: in a damaged tree several lead to one leaf, and
    /// what lies beside it is another's for each.
    private static func place(_ way: [TreeCursor.Step]) -> UInt64 {
        var place: UInt64 = 0
        for step in way.dropLast() {
            place = (place ^ step.page) &* 0x9E37_79B9_7F4A_7C15
            place = (place ^ UInt64(truncatingIfNeeded: step.index)) &* 0xC2B2_AE3D_27D4_EB4F
            place ^= place >> 29
        }
        return place ^ (way.last?.page ?? 0)
    }

    /// How many leaves on either side of the one that a way ends at are to be looked at now, where
    /// `reach` must have been; nil where they have.
    ///
    /// Eviction deletes from the same few leaves again and again, and the committed tree around them
    /// stays what it is.
    func looksAround(_ way: [TreeCursor.Step], reach: Int) -> Int? {
        guard reach > 0 else { return nil }
        let leaf = Self.place(way)
        let branches = self.account.branchState
        if let look = self.around[leaf], look.reach >= reach, look.branches == branches {
            return nil
        }
        let far = Self.ample(reach)
        self.around[leaf] = (far, branches)
        return far
    }

    /// How many leaves behind the one that a way ends at are to be looked at now; nil where they
    /// have been.
    func looksAhead(of way: [TreeCursor.Step]) -> Int? {
        let leaf = Self.place(way)
        let reach = self.account.reach
        let seen = max(self.ahead[leaf] ?? 0, self.around[leaf]?.reach ?? 0)
        if seen >= reach { return nil }
        let far = Self.ample(reach)
        self.ahead[leaf] = far
        return far
    }

    /// What was looked at may be another's by now.
    func forgetLooks() {
        self.around.removeAll(keepingCapacity: true)
        self.ahead.removeAll(keepingCapacity: true)
    }

    /// The reach grows with what is deleted: a look that goes beyond it is good for the next ones.
    ///
    /// Not a short one, which may have to wait for each page.
    private static func ample(_ reach: Int) -> Int { reach <= 4 ? reach : reach + reach / 2 }
}
