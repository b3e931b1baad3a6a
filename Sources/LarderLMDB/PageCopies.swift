/// Copies of a walk's last branch page and of its last leaf.
///
/// One walk's at a time. What is lent is valid until the next page of the same kind is copied.
@safe final class PageCopies {
    // Invariant: two pages, initialized and freed with this object.
    private let bytes: UnsafeMutableRawBufferPointer
    private let pageSize: Int
    /// Whose copies they are; 0, a meta page, where there are none.
    private var branch: UInt64 = 0
    private var leaf: UInt64 = 0

    init(pageSize: Int) {
        self.pageSize = max(0, pageSize)
        unsafe self.bytes = .allocate(byteCount: 2 * self.pageSize, alignment: 16)
        unsafe self.bytes.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        unsafe self.bytes.deallocate()
    }

    func forget() {
        self.branch = 0
        self.leaf = 0
    }

    /// The copy of a page; nil where another was copied since, or none was.
    @unsafe
    func page(_ number: UInt64, isLeaf: Bool) -> UnsafeBufferPointer<UInt8>? {
        guard number == (isLeaf ? self.leaf : self.branch), number != 0 else { return nil }
        return unsafe UnsafeBufferPointer(self.room(isLeaf).bindMemory(to: UInt8.self))
    }

    /// Copies a page that must lie in the file, where that needs no waiting.
    ///
    /// What goes wrong goes wrong again, and is told, where the same is read by whoever may wait.
    @unsafe
    func copy(
        _ number: UInt64, isLeaf: Bool, of map: PageMap
    ) throws(TreeFailure) -> UnsafeBufferPointer<UInt8> {
        if isLeaf { self.leaf = 0 } else { self.branch = 0 }
        let room = unsafe self.room(isLeaf)
        let count: Int?
        do throws(LMDBError) {
            count = try unsafe map.read(
                at: number &* UInt64(self.pageSize), into: room, waits: false)
        } catch {
            throw .notResident
        }
        guard count == self.pageSize else { throw .notResident }
        if isLeaf { self.leaf = number } else { self.branch = number }
        return unsafe UnsafeBufferPointer(room.bindMemory(to: UInt8.self))
    }

    @unsafe
    private func room(_ isLeaf: Bool) -> UnsafeMutableRawBufferPointer {
        let start = isLeaf ? self.pageSize : 0
        return unsafe UnsafeMutableRawBufferPointer(
            rebasing: self.bytes[start..<start &+ self.pageSize])
    }
}
