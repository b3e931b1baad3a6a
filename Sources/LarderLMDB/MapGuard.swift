import CLMDB

/// Keeps what a disk does not give from ending the process.
///
/// Within a guarded range a page that cannot be read, or that lies behind the end of a file that was
/// cut short, reads as zeros, which no check of a page and no checksum takes for sound; and it is
/// counted, so that the environment is given up. Faults elsewhere go to whoever handled SIGBUS
/// before.
enum MapGuard {
    /// The handler is installed with the first range, and stays.
    private static let isInstalled = larder_guard_install() == 0

    /// Guards a range of addresses until ``remove(_:)``; throws where too many are guarded.
    static func add(_ range: Range<UInt>, isWritable: Bool) throws(LMDBError) -> Int32 {
        guard self.isInstalled else { throw LMDBError(.other, operation: "sigaction") }
        let slot = larder_guard_add(range.lowerBound, range.upperBound, isWritable ? 1 : 0)
        guard slot >= 0 else { throw LMDBError(.other, operation: "too many maps") }
        return slot
    }

    /// To be called before the range is unmapped, when nobody reads it any more.
    static func remove(_ slot: Int32) {
        larder_guard_remove(slot)
    }

    /// How many pages of the range could not be read.
    static func faults(_ slot: Int32) -> UInt32 {
        larder_guard_faults(slot)
    }
}
