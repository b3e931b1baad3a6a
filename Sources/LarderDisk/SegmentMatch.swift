import LarderPolicy
import LarderStore

/// Holds entries and segments, both in the order of ids, against each other.
///
/// Says what looks wrong: whoever drives it looks again, for both may have changed since they were
/// read.
struct SegmentMatch {
    struct Step {
        /// Segments that are missing, damaged or too short for their entry; one for each entry.
        var suspects: [(ObjectKey, UInt32)] = []
        /// A segment that its entry does not need.
        var isLeftover = false
        /// A body that belongs to none of the entries; told once.
        var unknown: ObjectID?
    }

    private let entries: [DiskVerifier.Expected]
    /// The entry that segments are looked at for, and those behind it.
    private var position = 0
    private var extent: StoredExtent?
    private var hasBegun = false
    /// The next cell in which the entry has something.
    private var next: UInt32?
    private var isSuspect = false
    private var lastUnknown: ObjectID?

    init(entries: [DiskVerifier.Expected]) {
        self.entries = entries
    }

    /// Takes the next segment.
    ///
    /// - Parameters:
    ///   - held: what it holds of its cell; nil where it is damaged.
    ///   - extent: what is stored of an entry; nil where it has gone.
    mutating func take(
        _ key: SegmentKey, held: Range<Int>?, extent: (DiskVerifier.Expected) -> StoredExtent?
    ) -> Step {
        var step = Step()
        while self.position < self.entries.count,
            self.entries[self.position].key.id.rawValue < key.id.rawValue
        {
            self.leave(&step, extent)
        }
        guard self.position < self.entries.count, self.entries[self.position].key.id == key.id
        else {
            if self.lastUnknown != key.id { step.unknown = key.id }
            self.lastUnknown = key.id
            return step
        }
        self.begin(extent)
        guard let stored = self.extent, !self.isSuspect else { return step }
        if let next = self.next, next < key.index { return self.suspect(next, step) }
        guard let needed = stored.hull(inCell: key.index) else {
            step.isLeftover = true
            return step
        }
        guard let held, needed.clamped(to: held) == needed else {
            return self.suspect(key.index, step)
        }
        let (after, overflow) = key.index.addingReportingOverflow(1)
        self.next = overflow ? nil : stored.cell(from: after)
        return step
    }

    /// There are no more segments.
    mutating func finish(extent: (DiskVerifier.Expected) -> StoredExtent?) -> [Step] {
        var steps: [Step] = []
        while self.position < self.entries.count {
            var step = Step()
            self.leave(&step, extent)
            if !step.suspects.isEmpty { steps.append(step) }
        }
        return steps
    }

    private mutating func begin(_ extent: (DiskVerifier.Expected) -> StoredExtent?) {
        if self.hasBegun { return }
        self.hasBegun = true
        self.extent = extent(self.entries[self.position])
        self.next = self.extent?.cell(from: 0)
    }

    /// Goes on to the next entry: what this one still lacks is missing.
    private mutating func leave(
        _ step: inout Step, _ extent: (DiskVerifier.Expected) -> StoredExtent?
    ) {
        self.begin(extent)
        if let next = self.next, !self.isSuspect {
            step.suspects.append((self.entries[self.position].key, next))
        }
        self.position += 1
        self.hasBegun = false
        self.isSuspect = false
        self.extent = nil
        self.next = nil
    }

    private mutating func suspect(_ index: UInt32, _ step: Step) -> Step {
        self.isSuspect = true
        var step = step
        step.suspects.append((self.entries[self.position].key, index))
        return step
    }
}
