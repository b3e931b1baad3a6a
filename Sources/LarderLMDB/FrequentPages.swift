import Synchronization

/// The few pages of trees that most walks come to: they are used where they lie in the map.
///
/// A page is taken when it is asked for a second time, until there are ``limit`` of them: the nearer
/// to a root, the sooner. That they are in memory is a hint that may be wrong: the kernel can drop a
/// page at any time. It drops those that nobody uses, and what is in here is used all the time. All is
/// forgotten after some ten thousand questions, so that those come in that are often used now; and
/// after a commit where there is no room any more, as each commit writes the pages near the roots anew,
/// in other places.
@safe final class FrequentPages: Sendable {
    enum Answer {
        case often
        case rarely
        /// Asked for again, and there is room: to be taken if it is in memory.
        case candidate
    }

    private static let size = 8192
    private static let questionsPerLife: UInt64 = 65_536
    /// Each may bring sixteen pages into the process (`fault_around_bytes`, proc(5)).
    private static let limit: UInt64 = 256
    private static let countMask: UInt64 = 0xFFFF
    private static let takenFlag: UInt64 = 1 << 40

    // Invariant: `size` initialized atomics, freed with this object.
    private nonisolated(unsafe) let slots: UnsafeMutablePointer<Atomic<UInt64>>
    private let questions = Atomic<UInt64>(0)
    /// The life in the upper bits, and how many pages were taken in it.
    private let taken = Atomic<UInt64>(0)
    private let new = Atomic<Int>(0)

    init() {
        unsafe self.slots = .allocate(capacity: Self.size)
        for slot in 0..<Self.size { unsafe (self.slots + slot).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe self.slots.deinitialize(count: Self.size)
        unsafe self.slots.deallocate()
    }

    func ask(for page: UInt64) -> Answer {
        let asked = self.questions.wrappingAdd(1, ordering: .relaxed).oldValue
        let mark = Self.mark(page, at: asked)
        let slot = Self.slot(page)
        let found = unsafe self.slots[slot].load(ordering: .relaxed)
        if found == mark | Self.takenFlag { return .often }
        // Another page that is often used keeps its place.
        let isOthers = found & Self.takenFlag != 0 && Self.life(of: found) == Self.life(of: mark)
        if isOthers { return .rarely }
        if found == mark { return self.taken(in: mark) < Self.limit ? .candidate : .rarely }
        unsafe self.slots[slot].store(mark, ordering: .relaxed)
        return .rarely
    }

    /// Takes a page that is in memory; false where there is no room any more.
    func take(_ page: UInt64) -> Bool {
        let mark = Self.mark(page, at: self.questions.load(ordering: .relaxed))
        let count = self.taken(in: mark)
        guard count < Self.limit else { return false }
        // Where two take one each at the same time, one of them may not be counted.
        self.taken.store(
            Self.life(of: mark) << 16 | (count &+ 1), ordering: .relaxed)
        self.new.wrappingAdd(1, ordering: .relaxed)
        unsafe self.slots[Self.slot(page)].store(mark | Self.takenFlag, ordering: .relaxed)
        return true
    }

    /// Some of what was taken is used no more.
    func committed() {
        let asked = self.questions.load(ordering: .relaxed)
        guard self.taken(in: Self.mark(0, at: asked)) >= Self.limit else { return }
        // The next life begins. Questions that are asked meanwhile may not be counted.
        let next = (asked / Self.questionsPerLife &+ 1) &* Self.questionsPerLife
        self.questions.store(next, ordering: .relaxed)
    }

    func takeNew() -> Int {
        guard self.new.load(ordering: .relaxed) > 0 else { return 0 }
        return self.new.exchange(0, ordering: .relaxed)
    }

    private func taken(in mark: UInt64) -> UInt64 {
        let taken = self.taken.load(ordering: .relaxed)
        return taken >> 16 == Self.life(of: mark) ? taken & Self.countMask : 0
    }

    private static func slot(_ page: UInt64) -> Int {
        Int(truncatingIfNeeded: page % UInt64(Self.size))
    }

    /// The page's number and the life in which it was noted, the latter in the upper bits; never 0.
    private static func mark(_ page: UInt64, at asked: UInt64) -> UInt64 {
        (asked / Self.questionsPerLife &+ 1) << 41 | page & 0xFF_FFFF_FFFF
    }

    private static func life(of mark: UInt64) -> UInt64 { mark >> 41 }
}
