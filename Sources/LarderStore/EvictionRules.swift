package import LarderHTTP

/// What decides which entries of a tier leave when room is needed: S3-FIFO, counted in bytes, with a
/// main queue that knows sizes.
///
/// ```
///                  ┌── remembered ───────────────────▶ main ──(uses left)──▶ again
/// arrival ─────────┤                                    ▲ │
///                  └─▶ small ──(used?)── yes ───────────┘ └── none ──▶ out
///                        └── no ──▶ out, remembered
/// ```
///
/// New entries pass through a small queue, a tenth of the bytes. Those used there move to the main
/// queue, the others leave: a scan runs through the small queue and never touches the main one. One
/// that comes back while it is still remembered (``GhostTable``) enters the main queue at once. There
/// each round costs an entry one of its uses, or more where it is large.
///
/// The rules alone: who holds queues, in memory (``EvictionPolicy``) or in a file, asks them with
/// what it knows, and both keep the same things.
///
/// What was measured (the traces of `scripts/bench-eviction`, at a fifth of their length; object and
/// byte hit ratio in per cent):
///
/// | rule | lognormal sizes | zipf sizes | content delivery |
/// | --- | --- | --- | --- |
/// | LRU, to compare | 32.3 / 32.1 | 42.3 / 37.1 | 35.2 / 44.3 |
/// | sizes ignored | 42.0 / 42.6 | 49.7 / 41.5 | 37.8 / 43.8 |
/// | a round costs two uses above 4 × the mean, three above 16 × | 43.6 / 41.7 | 51.4 / 40.8 | 40.4 / 45.7 |
/// | the same from 2 × on | 44.1 / 41.4 | 51.5 / 40.5 | 40.5 / 45.5 |
/// | two uses for the main queue above 4 × the mean size | 46.4 / 39.7 | 56.6 / 39.9 | 42.2 / 31.9 |
/// | W-TinyLFU, size-aware | 49.6 / 37.5 | 60.9 / 41.7 | 42.8 / 20.7 |
///
/// The third is taken: more hits than with sizes ignored, and in no mix fewer bytes than LRU. What
/// turns large bodies away at the door hits more often still and pays with a third to a half of the
/// bytes: that is for an administrator to choose, as a rule of admission.
///
/// Measured and refused: remembering what leaves the main queue too (a loop over 1.1 capacities falls
/// from 73 % to 9 %); a ghost's entry contested by the age of the main queue's oldest, as LIRS has it
/// (the loop falls to 69 %, nothing gains a point); two uses for the main queue, as in the paper (57.4
/// instead of 58.2 where the working set shifts); a small queue of a twentieth (59.0 instead of 59.7
/// across scans) or a fifth (57.8 where it shifts); ghosts of two capacities (59.1 across scans).
///
/// Why this and not its peers: LRU loses the working set to one scan and moves an entry at each hit;
/// SIEVE is simpler, but a scan longer than the cache sweeps it too; ARC and W-TinyLFU need list moves
/// or a sketch on every hit, which a file would have to be told. Here a hit adds one to a number that
/// goes up to three.
/// After Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023.
package struct EvictionRules: Sendable, Equatable {
    package enum Queue: UInt8, Sendable, Codable, CaseIterable { case small, main }

    /// What is known of an entry beyond its size: to be kept where a tier outlives the process.
    package struct Standing: Hashable, Sendable, Codable {
        package var queue: Queue
        /// Uses that still count, 0 to 3.
        package var uses: UInt8

        package init(queue: Queue, uses: UInt8) {
            self.queue = queue
            self.uses = min(uses, EvictionRules.mostUses)
        }

        /// Notes further uses.
        @inline(__always)
        package mutating func used(_ times: UInt64 = 1) {
            let room = EvictionRules.mostUses - min(self.uses, EvictionRules.mostUses)
            self.uses += UInt8(min(times, UInt64(room)))
        }
    }

    /// What a queue holds.
    package struct Totals: Hashable, Sendable {
        package var bytes: UInt64
        package var count: UInt64

        package init(bytes: UInt64 = 0, count: UInt64 = 0) {
            self.bytes = bytes
            self.count = count
        }
    }

    package enum Verdict: Hashable, Sendable {
        case evict(isRemembered: Bool)
        /// To the newest end of the queue that the standing names.
        case keep(Standing)
    }

    package static let mostUses: UInt8 = 3

    package let capacity: ByteCount
    /// Bytes that the small queue may have while there is something in the main one.
    package let smallBudget: UInt64

    package init(capacity: ByteCount) {
        // Half of what 64 bits hold, so that no sum of a full queue and one size overflows.
        self.capacity = ByteCount(min(capacity.bytes, UInt64(Int64.max)))
        self.smallBudget = self.capacity.bytes / 10
    }

    /// Where an entry begins.
    ///
    /// - Parameter isRemembered: it left not long ago, and comes back.
    package func arrival(isRemembered: Bool) -> Standing {
        Standing(queue: isRemembered ? .main : .small, uses: 0)
    }

    /// Whose oldest entry is to be judged next; nil where both are empty.
    package func next(small: Totals, main: Totals) -> Queue? {
        if small.count > 0, small.bytes > self.smallBudget || main.count == 0 { return .small }
        return main.count > 0 ? .main : nil
    }

    /// What becomes of the oldest entry of its queue.
    ///
    /// - Parameters:
    ///   - typical: the mean size of all entries.
    package func judge(_ standing: Standing, size: UInt64, typical: UInt64) -> Verdict {
        switch standing.queue {
        case .small:
            return standing.uses > 0
                ? .keep(Standing(queue: .main, uses: 0)) : .evict(isRemembered: true)
        case .main:
            let cost = Self.cost(size, typical)
            return standing.uses >= cost
                ? .keep(Standing(queue: .main, uses: standing.uses - cost))
                : .evict(isRemembered: false)
        }
    }

    /// The uses that a round in the main queue costs.
    private static func cost(_ size: UInt64, _ typical: UInt64) -> UInt8 {
        let times = size / max(1, typical)
        return times < 4 ? 1 : times < 16 ? 2 : 3
    }
}
