package import LarderHTTP

/// Remembers what was evicted lately, by fingerprint, without holding any of it.
///
/// A table of buckets, sixteen ghosts of four bytes each: half a fingerprint, and when it left on a
/// clock that counts evicted bytes. A ghost counts until about a capacity of bytes has left after it,
/// or until its bucket needs the place for newer ones. So it is bounded in bytes at any capacity, a
/// look touches one line of the processor's cache, and it lies in a file as it lies in memory.
///
/// It takes a stranger for a ghost once in some four thousand looks, where all buckets are full: that
/// one enters the main queue unearned.
package struct GhostTable: Sendable {
    /// Four bytes for each 2 KiB of capacity, and no more than this.
    package static let mostBytes = 8 << 20
    /// Buckets in a chunk of the table, as it is written to a file and read from one: what fits on
    /// one page with what goes before it, so that no run of pages has to be found for it.
    package static let chunkBuckets = 62
    private static let ways = 16
    /// The horizon in ticks: a quarter of what sixteen bits tell apart is more than is needed, the rest
    /// gives the sweep time to find what is beyond it before the clock comes round.
    private static let horizon: UInt64 = 8192

    /// fingerprint << 16 | tick; 0 is free, as no fingerprint is 0.
    private var slots: GhostSlots
    private let bucketCount: Int
    /// Evicted bytes to a tick.
    private let quantum: UInt64
    /// All bytes that were ever evicted, as far as it has been told.
    private(set) package var clock: UInt64
    /// Insertions since chunks were last taken to be written.
    private(set) package var unwritten = 0
    private var dirty: [Bool]
    private var nextChunk = 0
    /// Taken to be written, and not known to be.
    private var chunksUnderWay: [Int] = []

    /// - Parameter clock: where the clock stood when what will be loaded was written.
    package init(capacity: ByteCount, clock: UInt64 = 0) {
        let slots = min(capacity.bytes / 2048, UInt64(Self.mostBytes / 4))
        self.bucketCount = max(1, Int(slots) / Self.ways)
        self.slots = GhostSlots(count: self.bucketCount * Self.ways)
        // Nine tenths: what the main queue holds, so it looks back about one cache's worth.
        self.quantum = max(1, (capacity.bytes - capacity.bytes / 10) / Self.horizon)
        self.clock = clock
        self.dirty = Array(
            repeating: false,
            count: (self.bucketCount + Self.chunkBuckets - 1) / Self.chunkBuckets)
    }

    /// What it takes in memory, for whoever must count it.
    package static func bytes(for capacity: ByteCount) -> UInt64 {
        min(capacity.bytes / 2048 * 4, UInt64(Self.mostBytes))
    }

    package var bytes: Int { self.slots.count * 4 }

    /// How many are remembered now; walks the table.
    package var count: Int {
        self.slots.count { self.isValid($0) }
    }

    private var tick: UInt64 { self.clock / self.quantum }

    private func age(_ slot: UInt32) -> UInt16 {
        UInt16(truncatingIfNeeded: self.tick) &- UInt16(truncatingIfNeeded: slot)
    }

    private func isValid(_ slot: UInt32) -> Bool { UInt64(self.age(slot)) <= Self.horizon }

    /// Where a fingerprint may lie, and what is kept of it: its upper bits choose the bucket.
    private func place(_ fingerprint: UInt64) -> (bucket: Range<Int>, mark: UInt32) {
        let mixed = (fingerprint ^ fingerprint >> 32) &* 0x9E37_79B9_7F4A_7C15
        let index = Int(mixed.multipliedFullWidth(by: UInt64(self.bucketCount)).high)
        let mark = UInt32(truncatingIfNeeded: mixed & 0xFFFF)
        return (index * Self.ways..<(index + 1) * Self.ways, (mark == 0 ? 1 : mark) << 16)
    }

    // MARK: Events

    package func contains(_ fingerprint: UInt64) -> Bool {
        let (bucket, mark) = self.place(fingerprint)
        return bucket.contains {
            self.slots[$0] & 0xFFFF_0000 == mark && self.isValid(self.slots[$0])
        }
    }

    /// Forgets the fingerprint; whether it was remembered.
    package mutating func take(_ fingerprint: UInt64) -> Bool {
        let (bucket, mark) = self.place(fingerprint)
        for i in bucket where self.slots[i] & 0xFFFF_0000 == mark {
            let isValid = self.isValid(self.slots[i])
            self.set(i, 0)
            return isValid
        }
        return false
    }

    /// Remembers the fingerprint; `size` bytes have left with it, none where it was never let in.
    package mutating func insert(_ fingerprint: UInt64, size: UInt64) {
        self.advance(by: size)
        let (bucket, mark) = self.place(fingerprint)
        var place = bucket.lowerBound
        var oldest = -1
        for i in bucket {
            let slot = self.slots[i]
            if slot & 0xFFFF_0000 == mark {
                place = i
                break
            }
            let age = slot == 0 ? Int(UInt16.max) + 1 : Int(self.age(slot))
            if age > oldest {
                oldest = age
                place = i
            }
        }
        self.set(place, mark | UInt32(UInt16(truncatingIfNeeded: self.tick)))
        self.unwritten += 1
    }

    private mutating func set(_ index: Int, _ slot: UInt32) {
        self.slots[index] = slot
        self.dirty[index / (Self.ways * Self.chunkBuckets)] = true
    }

    /// Moves the clock on, and takes out what is beyond the horizon, a part of the table each tick:
    /// all of it in two horizons, so that nothing seems new again when the ticks come round.
    private mutating func advance(by bytes: UInt64) {
        let before = self.tick
        self.clock &+= bytes
        let ticks = self.tick &- before
        guard ticks > 0 else { return }
        let round = Self.horizon * 2
        if ticks >= round { return self.sweep(0..<self.bucketCount) }
        let count = UInt64(self.bucketCount)
        for tick in (before + 1)...(before + ticks) {
            let place = tick % round
            // No product overflows: both are small.
            self.sweep(Int(place * count / round)..<Int((place + 1) * count / round))
        }
    }

    private mutating func sweep(_ buckets: Range<Int>) {
        for i in buckets.lowerBound * Self.ways..<buckets.upperBound * Self.ways
        where self.slots[i] != 0 && !self.isValid(self.slots[i]) {
            self.set(i, 0)
        }
    }

    // MARK: In a file

    package var chunkCount: Int { self.dirty.count }

    /// The next chunks that differ from what was written, in turn, at most so many.
    ///
    /// `chunksWritten` says that they were; without that they will be taken again.
    package mutating func takeChunks(_ limit: Int) -> [(index: Int, bytes: [UInt8])] {
        for lost in self.chunksUnderWay { self.dirty[lost] = true }
        self.chunksUnderWay = []
        self.unwritten = 0
        var chunks: [(index: Int, bytes: [UInt8])] = []
        for _ in self.dirty.indices where chunks.count < limit {
            let index = self.nextChunk
            self.nextChunk = (index + 1) % self.dirty.count
            guard self.dirty[index] else { continue }
            self.dirty[index] = false
            self.chunksUnderWay.append(index)
            chunks.append((index, self.encoded(index)))
        }
        return chunks
    }

    /// Whether a file would have to be told anything.
    package var differsFromFile: Bool {
        !self.chunksUnderWay.isEmpty || self.dirty.contains(true)
    }

    package mutating func chunksWritten() { self.chunksUnderWay = [] }

    /// Another file takes the place of the one that they were written to: it knows none of them.
    package mutating func forgetWritten() {
        self.chunksUnderWay = []
        self.dirty = Array(repeating: true, count: self.dirty.count)
    }

    private func range(ofChunk index: Int) -> Range<Int> {
        let size = Self.chunkBuckets * Self.ways
        return index * size..<min((index + 1) * size, self.slots.count)
    }

    /// What a chunk is good for: the table of this capacity alone.
    private static let headerSize = 16

    private func encoded(_ index: Int) -> [UInt8] {
        let range = self.range(ofChunk: index)
        var out: [UInt8] = []
        out.reserveCapacity(Self.headerSize + range.count * 4)
        for number in [UInt64(self.bucketCount), self.quantum] {
            for shift in stride(from: 0, to: 64, by: 8) {
                out.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }
        for i in range {
            let slot = self.slots[i]
            for shift in stride(from: 0, to: 32, by: 8) {
                out.append(UInt8(truncatingIfNeeded: slot >> UInt32(shift)))
            }
        }
        return out
    }

    /// Takes back a chunk; false, and nothing is changed, where it is not one of this table.
    package mutating func load(_ index: Int, _ bytes: Span<UInt8>) -> Bool {
        guard self.dirty.indices.contains(index) else { return false }
        let range = self.range(ofChunk: index)
        guard bytes.count == Self.headerSize + range.count * 4 else { return false }
        func number(_ offset: Int, _ count: Int) -> UInt64 {
            (0..<count).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
        }
        guard number(0, 8) == UInt64(self.bucketCount), number(8, 8) == self.quantum else {
            return false
        }
        var offset = Self.headerSize
        for i in range {
            self.slots[i] =
                UInt32(bytes[offset]) | UInt32(bytes[offset + 1]) << 8
                | UInt32(bytes[offset + 2]) << 16 | UInt32(bytes[offset + 3]) << 24
            offset += 4
        }
        return true
    }
}
