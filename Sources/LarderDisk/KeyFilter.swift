import Synchronization

/// Which keys may be stored, by their hashes, in two bytes each: what it does not hold is not stored.
///
/// A Bloom filter in blocks: a hash sets one bit in each of the eight words of one block, which is a line
/// of the processor's cache (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
/// 2007). With as many keys as it was made for, it takes about one in a thousand others for one of them;
/// with twice as many, one in thirty. Nothing is taken out of it.
///
/// May be asked and added to by any threads; what was added before a commit is found by whoever has
/// heard of the commit.
@safe final class KeyFilter: Sendable {
    private static let wordsPerBlock = 8
    /// Of 64 × 8 bits, sixteen for each.
    private static let keysPerBlock: UInt64 = 32

    // Invariant: `blocks` × `wordsPerBlock` initialized atomics, freed with this object.
    private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
    private let blocks: UInt64
    private let additions = Atomic<UInt64>(0)

    /// - Parameter keys: how many it is made for; at least a block full.
    init(keys: UInt64) {
        self.blocks = max(1, keys.dividedRoundingUp(by: Self.keysPerBlock))
        let count = Int(clamping: self.blocks) * Self.wordsPerBlock
        unsafe self.words = .allocate(capacity: count)
        for word in 0..<count { unsafe (self.words + word).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe self.words.deinitialize(count: Int(self.blocks) * Self.wordsPerBlock)
        unsafe self.words.deallocate()
    }

    /// How many keys it is made for.
    var keys: UInt64 { self.blocks * Self.keysPerBlock }

    /// How many keys were added, nearly: one that it took for another before does not count.
    var added: UInt64 { self.additions.load(ordering: .relaxed) }

    func add(_ hash: KeyHash) {
        // As it is where a response takes another's place: then others may keep the line.
        if self.mayHold(hash) { return }
        let block = self.block(of: hash)
        for word in 0..<Self.wordsPerBlock {
            unsafe self.words[block + word].bitwiseOr(
                Self.bit(of: hash, in: word), ordering: .relaxed)
        }
        self.additions.add(1, ordering: .relaxed)
    }

    /// Whether a key may have been added; false where it certainly was not.
    func mayHold(_ hash: KeyHash) -> Bool {
        let block = self.block(of: hash)
        for word in 0..<Self.wordsPerBlock {
            let bits = unsafe self.words[block + word].load(ordering: .relaxed)
            if bits & Self.bit(of: hash, in: word) == 0 { return false }
        }
        return true
    }

    private func block(of hash: KeyHash) -> Int {
        Int(hash.high.multipliedFullWidth(by: self.blocks).high) * Self.wordsPerBlock
    }

    private static func bit(of hash: KeyHash, in word: Int) -> UInt64 {
        1 << (hash.low >> UInt64(6 * word) & 63)
    }
}

extension UInt64 {
    fileprivate func dividedRoundingUp(by divisor: UInt64) -> UInt64 {
        let (quotient, rest) = self.quotientAndRemainder(dividingBy: divisor)
        return rest == 0 ? quotient : quotient + 1
    }
}
