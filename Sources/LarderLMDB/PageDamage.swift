/// What is wrong with a page.
package enum PageDamage: String, Sendable, CaseIterable {
    case meta = "not the meta page of its transaction"
    case outside = "a page number outside the file"
    case cutShort = "the file ends before it"
    case number = "another page's number, or noise"
    case kind = "not a page of the level that it stands on"
    case bounds = "its bounds are not those of a page"
    case node = "a node that reaches out of it"
    case key = "a key of impossible size"
    case order = "keys out of order"
    case child = "a child outside the file"
    case value = "a value of a kind that it cannot hold"
    case overflow = "overflow pages that do not fit their value"
    case record = "a record of a tree that cannot be"
    case freeList = "a list of free pages that cannot be"
    case freeAndUsed = "it is both free and used"
    case usedTwice = "it is used twice"
    case unreadable = "it could not be read from the disk"
}

/// Why Larder's own walk through a tree could not go on.
enum TreeFailure: Error {
    /// The page is not in memory, and the caller must not wait.
    case notResident
    case damaged(page: UInt64, PageDamage)
}

extension LMDBError {
    /// Names the page that is damaged.
    init(_ damage: PageDamage, page: UInt64) {
        self.init(.corrupted, operation: "page \(page): \(damage.rawValue)")
    }
}
