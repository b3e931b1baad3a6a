/// What must be free beyond the least so that runs of pages are found: learned, a value.
///
/// LMDB puts a value on pages that lie side by side. Where sizes differ, what is free falls to pieces:
/// measured with a third of the bytes each in bodies of some KiB, some MiB and some hundred MiB, a
/// file that is 80 to 93 % full has no sixteen pages together any more; with bodies of some KiB alone
/// it can be 95 % full. No share of the capacity is right for both. So each time that no run is found
/// it asks for a little more than what was free then, and forgets it slowly as writing goes well.
///
/// With that, eviction makes the room ahead of need and in the order of its rules. Without it, each
/// 50 MiB of such a mix met a full map, failed a batch, and took whatever was oldest.
struct FragmentationReserve: Sendable, Equatable {
    /// Pages that the capacity has room for.
    let capacityPages: UInt64
    /// Pages that must be free beyond the least.
    private(set) var pages: UInt64 = 0
    /// Pages written that have not been counted towards forgetting yet.
    private var written: UInt64 = 0

    init(capacityPages: UInt64) {
        self.capacityPages = capacityPages
    }

    /// It never asks for more than this.
    private var most: UInt64 { self.capacityPages / 4 }
    /// What is asked for beyond what was not enough.
    private var step: UInt64 { max(1, self.capacityPages / 128) }
    /// Writing the capacity once takes away two steps: so in the long run two batches find no run
    /// meanwhile.
    private static let forgetting: UInt64 = 64

    /// No run of free pages was long enough.
    ///
    /// - Parameters:
    ///   - free: pages that were free then.
    ///   - least: pages that are kept free in any case.
    mutating func foundNoRun(free: UInt64, least: UInt64) {
        let enough = free - min(free, least)
        // Much more than was asked for was free: something else than fragments was the reason, such as
        // a reader that keeps LMDB from using them again. To evict more would not help.
        guard enough <= self.most else { return }
        self.pages = min(self.most, max(self.pages, min(enough, self.most)) + self.step)
        self.written = 0
    }

    /// Notes that this many pages were written without trouble.
    mutating func wrote(_ count: UInt64) {
        guard self.pages > 0 else { return }
        let sum = self.written.addingReportingOverflow(count)
        let total = sum.overflow ? UInt64.max : sum.partialValue
        self.pages -= min(self.pages, total / Self.forgetting)
        self.written = total % Self.forgetting
    }
}
