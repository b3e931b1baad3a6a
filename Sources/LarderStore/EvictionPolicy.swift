package import LarderHTTP

/// Decides which entries of a tier leave when room is needed: S3-FIFO, counted in bytes.
///
/// ```
///                  ┌── seen in ghosts ───────────────▶ main ──(used since?)──▶ again
/// insert(size) ────┤                                    ▲ │
///                  └─▶ small ──(used?)── yes ───────────┘ └── no ──▶ out
///                        └── no ──▶ out, remembered in ghosts
/// ```
///
/// New entries pass through a small queue (a tenth of the bytes). Those used there move to the main
/// queue, the others leave: a scan runs through the small queue and never touches the main one. One
/// that comes back while it is still remembered enters the main queue at once.
///
/// Why this and not its peers: LRU loses the working set to one scan and moves an entry at each
/// hit; SIEVE is simpler, but a scan longer than the cache sweeps it too; ARC and TinyLFU adapt
/// better on some traces, at the cost of list moves or a sketch on every hit. Here a hit adds one
/// to a small number. Sizes count twice: room is made in bytes, and an object larger than the
/// small queue is the first to leave unless it is used soon.
///
/// A value: entries are slots, small numbers that the owner may index its own arrays with. Not a
/// byte is allocated for a hit or, once the arrays have grown, for an insertion.
/// After Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023.
package struct EvictionPolicy: Sendable {
    /// Names an entry from its insertion until it is removed or evicted; then used again.
    package struct Slot: Hashable, Sendable {
        let number: Int32

        /// From 0, dense: at most one above the largest number of entries there ever were.
        package var index: Int { Int(self.number) }
    }

    package enum Queue: UInt8, Sendable, Codable { case small, main }

    /// What the policy knows of an entry beyond its size: to be kept where a tier outlives the
    /// process, and handed back at the insertion.
    package struct Standing: Hashable, Sendable, Codable {
        package var queue: Queue
        /// Uses that still count, 0 to 3.
        package var uses: UInt8

        package init(queue: Queue, uses: UInt8) {
            self.queue = queue
            self.uses = min(uses, EvictionPolicy.mostUses)
        }
    }

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
    }

    private static let mostUses: UInt8 = 3
    /// Uses in the small queue that earn a place in the main one.
    ///
    /// The paper has two. On the traces of the tests one hits more often where the working set
    /// shifts (56.7 % against 55.9 %) or is mixed with one-hit wonders (46.9 against 46.4), and as
    /// often across scans.
    private static let usesForMain: UInt8 = 1

    package let capacity: ByteCount
    private let smallBudget: UInt64
    private var nodes: [Node] = []
    private var firstFree: Int32 = -1
    private var small = List()
    private var main = List()
    private var ghosts: GhostQueue

    /// - Parameter ghostLimit: how many evicted entries are remembered at most, about a hundred
    ///   bytes each.
    package init(capacity: ByteCount, ghostLimit: Int = 65_536) {
        // Half of what 64 bits hold, so that no sum of a full queue and one size overflows.
        let capacity = ByteCount(min(capacity.bytes, UInt64(Int64.max)))
        self.capacity = capacity
        self.smallBudget = capacity.bytes / 10
        self.ghosts = GhostQueue(
            byteLimit: capacity.bytes - capacity.bytes / 10, countLimit: ghostLimit)
    }

    /// The bytes of all entries; never above the capacity.
    package var bytes: UInt64 { self.small.bytes + self.main.bytes }
    package var count: Int { self.small.count + self.main.count }
    /// How many evicted entries are remembered.
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
        let standing = standing ?? Standing(queue: returns ? .main : .small, uses: 0)
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
        let uses = self.nodes[slot.index].standing.uses
        if uses < Self.mostUses { self.nodes[slot.index].standing.uses = uses + 1 }
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
        while self.count > 0, self.bytes > self.capacity.bytes - size {
            if self.small.count > 0, self.small.bytes > self.smallBudget || self.main.count == 0 {
                self.stepSmall(&victims)
            } else {
                self.stepMain(&victims)
            }
        }
    }

    /// Moves the oldest of the small queue to the main one, or out.
    private mutating func stepSmall(_ victims: inout [Slot]) {
        let slot = self.small.oldest
        let node = self.nodes[Int(slot)]
        self.unlink(slot)
        if node.standing.uses >= Self.usesForMain {
            self.nodes[Int(slot)].standing = Standing(queue: .main, uses: 0)
            self.link(slot)
        } else {
            self.ghosts.insert(node.fingerprint, size: node.size)
            self.release(slot)
            victims.append(Slot(number: slot))
        }
    }

    /// Gives the oldest of the main queue another round for a use, or moves it out.
    private mutating func stepMain(_ victims: inout [Slot]) {
        let slot = self.main.oldest
        self.unlink(slot)
        if self.nodes[Int(slot)].standing.uses > 0 {
            self.nodes[Int(slot)].standing.uses -= 1
            self.link(slot)
        } else {
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
