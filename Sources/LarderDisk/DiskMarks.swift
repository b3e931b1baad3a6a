package import LarderHTTP

/// How full the file may be before something is done about it, in pages: a value.
///
/// ```
/// 0 ······ low ── high ── critical ── full ── capacity
///           │      │         │          └ nothing more is written: who writes is told "no space"
///           │      │         └ eviction goes before all other work
///           │      └ eviction begins
///           └ and ends
/// ```
///
/// What is kept free is what LMDB needs, and no share of a large file: pages that a transaction frees
/// are used again by the next but one, so room for three batches; and some slack, as a segment wants
/// sixteen pages side by side, which are found only where enough is free. A tenth of a small file, a
/// sixty-fourth and three batches of a large one: 664 MiB of 40 GiB.
struct DiskMarks: Sendable, Equatable {
    /// Pages that the capacity has room for.
    var capacityPages: UInt64
    /// Pages that a batch writes at most.
    var batchPages: UInt64
    /// Pages that must be free beyond the reserve, at most a quarter of the capacity: what a
    /// ``FragmentationReserve`` has learned.
    var learned: UInt64 = 0

    /// What is free when eviction begins, where fragments do not ask for more.
    var reserve: UInt64 {
        let (batches, overflow) = self.batchPages.multipliedReportingOverflow(by: 3)
        let needed = overflow ? .max : batches
        return min(self.capacityPages / 10, needed &+ min(self.capacityPages / 64, .max - needed))
    }

    var highPages: UInt64 { self.capacityPages - self.reserve - self.learned }
    var lowPages: UInt64 { self.highPages - min(self.highPages, self.reserve / 5) }
    var criticalPages: UInt64 { self.capacityPages - self.reserve / 2 - self.learned }
    var fullPages: UInt64 {
        self.capacityPages - max(self.reserve / 4, min(Self.pathPages, self.reserve / 2))
    }

    /// What three transactions copy of the paths of eight trees and LMDB's own two, if they write next
    /// to nothing.
    private static let pathPages: UInt64 = 96
}

extension DiskMarks {
    /// - Parameter capacityPages: of the file, which may differ from what is configured.
    init(capacityPages: UInt64, _ configuration: DiskConfiguration) {
        self.init(
            capacityPages: capacityPages,
            batchPages: UInt64(configuration.batchLimit / Segment.pageSize) + 1)
    }
}

extension DiskStore {
    /// The room of responses (``StoredName/bytes``) that the file would hold with another capacity before
    /// any of them is evicted.
    package func lastingRoom(at capacity: ByteCount) -> ByteCount {
        var configuration = self.core.configuration
        configuration.capacity = max(capacity, DiskConfiguration.minimumCapacity)
        let marks = DiskMarks(
            capacityPages: configuration.capacity.bytes / UInt64(Segment.pageSize), configuration)
        let pages = marks.lowPages - min(marks.lowPages, Self.ownPages)
        return ByteCount(pages * UInt64(Segment.pageSize))
    }

    /// Pages of the file itself: the roots of its trees, its state, what it remembers.
    private static let ownPages: UInt64 = 32
}

/// What one step of taking back room may do: it holds the writer, and LMDB's one write transaction.
///
/// A segment that is deleted may have to be read from the disk before (LMDB looks how long the run of
/// its pages is), and there is no saying how long that takes: so a step also ends with its time.
struct ReclaimBudget: Sendable {
    /// Entries that it may look at.
    var entries: Int
    /// Entries whose bodies are held that it may pass by: they cost it no page, and where a whole step
    /// went on them, the next one would begin with the same.
    var held = 16_384
    /// Pages of bodies that it may delete: so many LMDB notes in one value of 32 KiB.
    var pages = 4096
    /// When it ends at the latest, but for what it is at.
    var deadline: ContinuousClock.Instant

    /// - Parameter free: pages that are free. To delete an entry copies two or three of others, which
    ///   cannot be had from what this transaction frees, nor from what the last two did: so where
    ///   little is free, steps are small.
    init(free: UInt64, deadline: ContinuousClock.Instant) {
        self.entries = Int(min(2048, max(2, free / 16)))
        self.deadline = deadline
    }

    private var isUsedUp: Bool { self.entries <= 0 || self.pages <= 0 }

    var isSpent: Bool { self.isUsedUp || ContinuousClock.now >= self.deadline }

    /// Whether a step goes on that has done so much: one thing it does however late it is, as one that
    /// has done nothing is taken for one that found nothing to do.
    func goesOn(after done: Int) -> Bool { done == 0 ? !self.isUsedUp : !self.isSpent }
}
