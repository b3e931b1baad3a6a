import LarderLMDB

/// Uses: which responses were asked for, written now and then for eviction to know.
extension DiskWriter {
    /// Uses that one transaction writes: a few milliseconds' worth.
    private static let flushSize = 512
    /// Each record lies in a leaf of its own, more or less, and often below a branch page of its own.
    private static let pagesPerUse = 2
    /// The time between two flushes, in times of the first: uses are not worth more than a quarter
    /// of the writer.
    private static let pausePerFlush = 3

    /// Writes a step's worth of uses, and sees to it that the rest is not forgotten.
    mutating func flushSomeUses() {
        // Before: whoever notes one from now on says so.
        self.core.mailbox.usesTaken()
        let started = ContinuousClock.now
        if started >= self.useRoundEnd {
            self.core.uses.beginRound()
            self.useRoundEnd = started + Self.useRound
        }
        if self.core.uses.hasDue { _ = self.flushUses() }
        if self.core.uses.hasDue {
            let ended = ContinuousClock.now
            self.core.mailbox.usesAreDue(at: ended + (ended - started) * Self.pausePerFlush)
        } else if !self.core.uses.isEmpty {
            self.core.mailbox.usesAreDue(at: self.useRoundEnd)
        }
    }

    /// Writes a part of the noted uses; false when that failed, and they are forgotten.
    mutating func flushUses() -> Bool {
        // Each may copy a page of its own: fewer where little is free.
        let room = self.roomPages
        let free = room - min(self.pages, room)
        let uses = self.core.uses.take(min(Self.flushSize, max(2, Int(clamping: free / 8))))
        do throws(LMDBError) {
            let (attempt, _) = try self.attempt { (attempt, transaction) throws(LMDBError) in
                for use in uses {
                    try self.apply(use, &attempt, transaction)
                    self.core.residency.touched(values: Self.pagesPerUse, bytes: 0)
                }
            }
            self.takeOver(attempt)
            self.noteSteady(hasCommitted: true)
            return true
        } catch {
            self.writingFailed(error)
            return false
        }
    }
}
