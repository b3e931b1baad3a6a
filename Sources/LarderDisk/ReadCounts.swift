import Synchronization

/// How often reading was done at once, and how often it took a thread of the pool.
package struct ReadCounts: Sendable, Equatable {
    /// Lookups answered on the caller's thread, all pages that they need being in memory.
    package var lookupsInPlace: UInt64 = 0
    package var lookupsOnPool: UInt64 = 0
    /// Lookups of what is known not to be stored, without a look at the file.
    package var lookupsSpared: UInt64 = 0
    /// Pieces of bodies read on the caller's thread.
    package var piecesInPlace: UInt64 = 0
    /// Steps of bodies that had to wait for the disk.
    package var stepsOnPool: UInt64 = 0
    /// Jobs that only told the kernel what will be read.
    package var hints: UInt64 = 0
    /// Values of `segments` that were looked for, bodies small enough to come with their heads
    /// included: what a lookup of an absent key does not do.
    package var segments: UInt64 = 0
}

/// Counts what ``ReadCounts`` tells, by many threads.
final class ReadCounters: Sendable {
    let lookupsInPlace = Atomic<UInt64>(0)
    let lookupsOnPool = Atomic<UInt64>(0)
    let lookupsSpared = Atomic<UInt64>(0)
    let piecesInPlace = Atomic<UInt64>(0)
    let stepsOnPool = Atomic<UInt64>(0)
    let hints = Atomic<UInt64>(0)
    let segments = Atomic<UInt64>(0)

    var now: ReadCounts {
        ReadCounts(
            lookupsInPlace: self.lookupsInPlace.load(ordering: .relaxed),
            lookupsOnPool: self.lookupsOnPool.load(ordering: .relaxed),
            lookupsSpared: self.lookupsSpared.load(ordering: .relaxed),
            piecesInPlace: self.piecesInPlace.load(ordering: .relaxed),
            stepsOnPool: self.stepsOnPool.load(ordering: .relaxed),
            hints: self.hints.load(ordering: .relaxed),
            segments: self.segments.load(ordering: .relaxed))
    }
}

/// Something that is read, as a test names it that says what is in memory.
enum ReadPlace: Sendable, Hashable {
    /// The records of a key.
    case records
    case segment(UInt32)
}
