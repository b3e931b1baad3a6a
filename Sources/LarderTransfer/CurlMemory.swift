import CBlocks

/// The memory that libcurl gave back to the loops of one thread, kept for their next transfers.
///
/// libcurl takes 45 blocks for each transfer, among them the one that it reads into, which glibc
/// merges with its neighbours when it comes back; and where a guest begins what the thread ends, blocks
/// wander from one of glibc's caches to the other's. Its bound is `LARDER_BLOCKS_LIMIT`.
///
/// Not `Sendable`: goes from owner to owner with the loops (`LoopOwnership`).
@safe final class CurlMemory {
    private let store: OpaquePointer?

    /// Without memory for it, libcurl has malloc(3) alone: slower, and nothing else.
    init() {
        unsafe self.store = larder_blocks_open()
    }

    deinit { unsafe larder_blocks_close(self.store) }

    /// Has libcurl's calls on this thread take their memory here until `work` returns.
    func lend<Result>(_ work: () -> Result) -> Result {
        let before = unsafe larder_blocks_enter(self.store)
        defer { _ = unsafe larder_blocks_enter(before) }
        return work()
    }

    /// The bytes that wait to be used again.
    var kept: Int { unsafe Int(larder_blocks_kept(self.store)) }
}
