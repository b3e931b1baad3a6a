package import LarderHTTP

/// Decides which entries of a tier in memory leave when room is needed: the queues to
/// ``EvictionRules``.
///
/// A value: entries are slots, small numbers that the owner may index its own arrays with. Not a
/// byte is allocated for a hit or, once the arrays have grown, for an insertion.
package struct EvictionPolicy: Sendable {
    /// Names an entry from its insertion until it is removed or evicted; then used again.
    package struct Slot: Hashable, Sendable {
        let number: Int32

        /// From 0, dense: at most one above the largest number of entries there ever were.
        package var index: Int { Int(self.number) }
    }

    package typealias Queue = EvictionRules.Queue
    package typealias Standing = EvictionRules.Standing

    private struct Node {
        var fingerprint: UInt64
        var size: UInt64
        /// Towards the newest; -1 at the end.
        var newer: Int32
        /// Towards the oldest; -1 at the end.
        ///
        /// In a free node, the next free one.
        var older: Int32
        var standing: Standing
        var isFree: Bool
    }

    private struct List {
        var newest: Int32 = -1
        var oldest: Int32 = -1
        var bytes: UInt64 = 0
        var count = 0

        var totals: EvictionRules.Totals {
            EvictionRules.Totals(bytes: self.bytes, count: UInt64(self.count))
        }
    }

    package private(set) var rules: EvictionRules
    private var nodes: [Node] = []
    private var firstFree: Int32 = -1
    private var small = List()
    private var main = List()
    private var ghosts: GhostTable

    package init(capacity: ByteCount) {
        self.rules = EvictionRules(capacity: capacity)
        self.ghosts = GhostTable(capacity: self.rules.capacity)
    }

    package var capacity: ByteCount { self.rules.capacity }
    /// The bytes of all entries; never above the capacity.
    package var bytes: UInt64 { self.small.bytes + self.main.bytes }
    package var count: Int { self.small.count + self.main.count }
    /// How many evicted entries are remembered; walks their table.
    package var ghostCount: Int { self.ghosts.count }

    // MARK: Events

    /// Takes an entry in and appends to `victims` those that must leave for it.
    ///
    /// A victim's slot may be the new entry's slot: settle the victims first. nil, and no victims,
    /// when the entry is larger than the capacity.
    ///
    /// - Parameters:
    ///   - fingerprint: a hash of what the entry is of; the same when it comes back.
    ///   - standing: what was known of it before a restart.
    package mutating func insert(
        _ fingerprint: UInt64, size: UInt64, standing: Standing? = nil, victims: inout [Slot]
    ) -> Slot? {
        guard size <= self.capacity.bytes, self.count < Int(Int32.max) else { return nil }
        let returns = self.ghosts.take(fingerprint)
        let standing = standing ?? self.rules.arrival(isRemembered: returns)
        self.makeRoom(for: size, victims: &victims)
        let node = Node(
            fingerprint: fingerprint, size: size, newer: -1, older: -1, standing: standing,
            isFree: false)
        let slot: Int32
        if self.firstFree >= 0 {
            slot = self.firstFree
            self.firstFree = self.nodes[Int(slot)].older
            self.nodes[Int(slot)] = node
        } else {
            slot = Int32(self.nodes.count)
            self.nodes.append(node)
        }
        self.link(slot)
        return Slot(number: slot)
    }

    /// An entry was used.
    @inline(__always)
    package mutating func hit(_ slot: Slot) {
        self.nodes[slot.index].standing.used()
    }

    /// Its owner has removed an entry: it is not remembered.
    package mutating func remove(_ slot: Slot) {
        precondition(!self.nodes[slot.index].isFree, "a slot is removed once")
        self.unlink(slot.number)
        self.release(slot.number)
    }

    /// An entry has become larger or smaller; it may be among the victims itself.
    package mutating func resize(_ slot: Slot, to size: UInt64, victims: inout [Slot]) {
        let old = self.nodes[slot.index].size
        let size = min(size, UInt64(Int64.max))
        self.nodes[slot.index].size = size
        self.withList(self.nodes[slot.index].standing.queue) {
            $0.bytes = $0.bytes - old + size
        }
        self.makeRoom(for: 0, victims: &victims)
    }

    /// Bounds the entries anew, and appends to `victims` those that must leave for it.
    ///
    /// What is remembered of evicted entries is forgotten: it was counted by the old bound.
    package mutating func resize(to capacity: ByteCount, victims: inout [Slot]) {
        self.rules = EvictionRules(capacity: capacity)
        self.ghosts = GhostTable(capacity: self.rules.capacity)
        self.makeRoom(for: 0, victims: &victims)
    }

    // MARK: State

    package func standing(of slot: Slot) -> Standing { self.nodes[slot.index].standing }

    package func size(of slot: Slot) -> UInt64 { self.nodes[slot.index].size }

    /// All entries, each queue from its oldest: inserted again in this order with their standings,
    /// they make the same state.
    package func forEachOldestFirst(_ body: (Slot) -> Void) {
        for list in [self.small, self.main] {
            var slot = list.oldest
            while slot >= 0 {
                body(Slot(number: slot))
                slot = self.nodes[Int(slot)].newer
            }
        }
    }

    // MARK: Eviction

    private mutating func makeRoom(for size: UInt64, victims: inout [Slot]) {
        // Not `bytes + size`: a size may be anything up to the capacity, which may be anything.
        while self.bytes > self.capacity.bytes - size,
            let queue = self.rules.next(small: self.small.totals, main: self.main.totals)
        {
            self.step(queue, &victims)
        }
    }

    /// Moves the oldest of a queue on, or out.
    private mutating func step(_ queue: Queue, _ victims: inout [Slot]) {
        let slot = queue == .small ? self.small.oldest : self.main.oldest
        let node = self.nodes[Int(slot)]
        let typical = self.bytes / UInt64(max(1, self.count))
        self.unlink(slot)
        switch self.rules.judge(node.standing, size: node.size, typical: typical) {
        case .keep(let standing):
            self.nodes[Int(slot)].standing = standing
            self.link(slot)
        case .evict(let isRemembered):
            if isRemembered { self.ghosts.insert(node.fingerprint, size: node.size) }
            self.release(slot)
            victims.append(Slot(number: slot))
        }
    }

    // MARK: Lists

    private mutating func withList(_ queue: Queue, _ body: (inout List) -> Void) {
        switch queue {
        case .small: body(&self.small)
        case .main: body(&self.main)
        }
    }

    /// Puts a node at the newest end of the queue that its standing names.
    private mutating func link(_ slot: Int32) {
        let node = self.nodes[Int(slot)]
        var before: Int32 = -1
        self.withList(node.standing.queue) {
            before = $0.newest
            $0.newest = slot
            if $0.oldest < 0 { $0.oldest = slot }
            $0.bytes += node.size
            $0.count += 1
        }
        self.nodes[Int(slot)].older = before
        self.nodes[Int(slot)].newer = -1
        if before >= 0 { self.nodes[Int(before)].newer = slot }
    }

    private mutating func unlink(_ slot: Int32) {
        let node = self.nodes[Int(slot)]
        if node.newer >= 0 { self.nodes[Int(node.newer)].older = node.older }
        if node.older >= 0 { self.nodes[Int(node.older)].newer = node.newer }
        self.withList(node.standing.queue) {
            if $0.newest == slot { $0.newest = node.older }
            if $0.oldest == slot { $0.oldest = node.newer }
            $0.bytes -= node.size
            $0.count -= 1
        }
    }

    private mutating func release(_ slot: Int32) {
        self.nodes[Int(slot)].isFree = true
        self.nodes[Int(slot)].older = self.firstFree
        self.firstFree = slot
    }
}
