import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// What was acknowledged or given up while the disk refused to write, and is still in the file.
///
/// Its entries are hidden until then. Bounded: entries by what is stored, keys by a limit.
struct RemovalDebts: Sendable {
    /// More keys are not remembered: the whole file is given up instead.
    static let keyLimit = 65_536
    /// How much of each goes into one transaction, which must not fail for its size.
    private static let partSize = 512
    private static let keysOfPart = 32

    var entries: Set<ObjectKey> = []
    /// Keys whose entries with ids below these are to go.
    var keys: [CacheKey: ObjectID] = [:]
    /// Bodies that came to nothing.
    var garbage: Set<ObjectID> = []
    /// The lock file says so, if it can be written, and somebody was told that it is done.
    var isRecorded = false
    /// It is not known any more what is to go: the file must not be opened again.
    var isTooMuch = false

    /// Whether the file holds nothing that it must not serve.
    var isDone: Bool { self.entries.isEmpty && self.keys.isEmpty && !self.isTooMuch }
    var isNothing: Bool { self.isDone && self.garbage.isEmpty && !self.isRecorded }

    /// What one transaction removes.
    var part: RemovalDebts {
        RemovalDebts(
            entries: Set(self.entries.prefix(Self.partSize)),
            keys: Dictionary(
                self.keys.prefix(Self.keysOfPart).map { ($0.key, $0.value) },
                uniquingKeysWith: { old, _ in old }),
            garbage: Set(self.garbage.prefix(Self.partSize)))
    }

    mutating func subtract(_ part: RemovalDebts) {
        self.entries.subtract(part.entries)
        for key in part.keys.keys { self.keys.removeValue(forKey: key) }
        self.garbage.subtract(part.garbage)
    }
}

/// The removals that are still to be written, and who waits to hear of them.
struct PendingRemovals {
    /// What failed batches should have removed.
    var debts = RemovalDebts()
    /// Who waits to be told that it is done: the lock file does not say yet that it is not.
    var deferredAcknowledgements: [@Sendable () -> Void] = []
    /// Whether what fails now is acknowledged later: the file is only full.
    var defersAcknowledgements = false
    /// When they are told all the same.
    var acknowledgeBy: ContinuousClock.Instant?
    /// When it is tried again, if nothing is written before; nil: at once.
    var due: ContinuousClock.Instant?

    /// Whether somebody waits to be told.
    var hasDeferred: Bool { !self.deferredAcknowledgements.isEmpty }

    /// A transaction has removed a part of it; whether nothing is owed any more.
    ///
    /// - Parameter isCertain: whether what it did is known to be on the disk.
    mutating func committed(_ part: RemovalDebts, isCertain: Bool) -> Bool {
        self.debts.subtract(part)
        self.due = nil
        guard isCertain, self.debts.isDone else { return false }
        self.debts.isRecorded = false
        return true
    }

    mutating func takeDeferred() -> [@Sendable () -> Void] {
        self.acknowledgeBy = nil
        defer { self.deferredAcknowledgements = [] }
        return self.deferredAcknowledgements
    }
}

// What a batch that failed leaves to be done.
extension DiskWriter {
    /// How often what a full file refuses is tried again while somebody waits for it.
    private static let deferredInterval = Duration.milliseconds(50)

    /// What a batch asked for cannot be done now.
    ///
    /// Sinks end. What was to be removed or marked as invalid must not be served any more, so it is
    /// hidden, and removed with the next batches that succeed.
    /// That it is owed is written down before anybody is told that it is done, so that it holds for the
    /// next process, too, at the price of the file. A file that is full is no reason for that yet: room
    /// comes back when a reader goes who stood still, so that nobody is told for a while.
    mutating func fail(_ batch: [WriteCommand], _ error: LMDBError) {
        self.removals.defersAcknowledgements =
            error.code == .mapFull && !self.removals.debts.isRecorded
        let reason: SinkAbandonment =
            error.lacksRoom ? .noSpace : .storeFailed
        for command in batch {
            switch command {
            case .segment(let sink, _), .commit(let sink, _):
                if sink.isWanted { self.removals.debts.garbage.insert(sink.id) }
                sink.end(.abandoned(reason))
            case .abandon(let sink, let reason):
                self.removals.debts.garbage.insert(sink.id)
                sink.end(.abandoned(reason))
            case .update(let key, let head, let written):
                self.hideUntilRemoved([key])
                if head.isInvalidated { self.acknowledge(written ?? {}) } else { written?() }
            case .remove(let key, let ids?, let completion):
                self.hideUntilRemoved(ids.map { self.core.objectKey($0, of: key) })
                self.acknowledge { completion?(ids.count) }
            case .remove(let key, nil, let completion):
                let count = self.core.find(key).objects.count
                self.hideUntilRemoved(key)
                self.acknowledge { completion?(count) }
            case .removeExactly(let keys, let isPromise, let completion):
                self.hideUntilRemoved(keys)
                if isPromise {
                    self.acknowledge { completion?(keys.count) }
                } else {
                    completion?(keys.count)
                }
            case .removeAll(let walk): self.removeAll(walk)
            case .groups:
                // Still in the table: written with the next batch that succeeds.
                self.acknowledge {}
            case .giveUp(let file, let completion): completion(self.giveUp(file))
            case .mend(_, let completion):
                completion([])
            case .barrier(let completion):
                guard self.removals.hasDeferred else {
                    completion()
                    break
                }
                self.removals.deferredAcknowledgements.append(completion)
            }
        }
    }

    private mutating func hideUntilRemoved(_ keys: [ObjectKey]) {
        self.core.entries.withLock { entries in for key in keys { _ = entries.hide(key.id) } }
        self.removals.debts.entries.formUnion(keys)
    }

    /// All of a key is to go: what that is, a disk that cannot be read would not tell.
    private mutating func hideUntilRemoved(_ key: CacheKey) {
        let bound = ObjectID(rawValue: self.core.nextID)
        self.core.entries.withLock { $0.hide(key, below: bound) }
        self.removals.debts.keys[key] = bound
        if self.removals.debts.keys.count > RemovalDebts.keyLimit { self.giveUp() }
    }

    /// Gives up a file where that is still the one in use; false where it is not.
    mutating func giveUp(_ file: CacheFile) -> Bool {
        guard self.core.file === file else { return false }
        self.giveUp()
        return true
    }

    /// What is to go is not known entry by entry: the file makes room for a new one.
    mutating func giveUp() {
        self.removals.debts.keys = [:]
        self.removals.debts.isTooMuch = true
        let bound = ObjectID(rawValue: self.core.nextID)
        self.core.entries.withLock { $0.hideAll(below: bound) }
        self.recordInLockFile()
        _ = self.core.file.note(.damaged(LMDBError(.corrupted, operation: "remove")))
    }

    /// Tells somebody that a removal is done: once the lock file says that it is still to be
    /// written, or later where the file is only full.
    private mutating func acknowledge(_ tell: @escaping @Sendable () -> Void) {
        guard self.removals.defersAcknowledgements else {
            self.recordInLockFile()
            return tell()
        }
        if self.removals.acknowledgeBy == nil {
            self.removals.acknowledgeBy = .now + self.core.configuration.owingPatience
        }
        self.removals.deferredAcknowledgements.append(tell)
    }

    /// Writes down, before anybody is told, that the file holds what it must not serve.
    ///
    /// Where even that is refused, who must know asks for ``DiskCore/unkeptRemoval``.
    mutating func recordInLockFile() {
        self.removals.debts.isRecorded = true
        self.core.writerLock.note(owes: true)
        self.core.tellOfUnkeptRemoval()
    }

    /// Acknowledges what was put off, done or not.
    mutating func acknowledgeDeferred() {
        guard self.removals.hasDeferred else { return }
        self.recordInLockFile()
        self.runDeferred()
    }

    mutating func runDeferred() {
        for tell in self.removals.takeDeferred() { tell() }
    }

    /// Whether somebody was told, or waits to be, that it is done.
    var isOwing: Bool { self.removals.debts.isRecorded || self.removals.hasDeferred }

    /// A transaction has removed this.
    ///
    /// - Parameter isCertain: whether it is known to be on the disk. Else it stays owed: the next
    ///   transaction first makes sure of this one (`Environment.settle()`), whatever else it does.
    mutating func removalsCommitted(_ part: RemovalDebts, isCertain: Bool) {
        guard !self.removals.debts.isNothing || self.isOwing else { return }
        self.core.entries.withLock { $0.removed(part.keys.keys) }
        if self.removals.committed(part, isCertain: isCertain) {
            self.core.writerLock.note(owes: false)
            self.runDeferred()
        } else if !isCertain {
            return self.retryRemovals()
        }
        self.setAlarm()
    }

    /// Has what is left tried again by itself: nothing else may be written for long.
    mutating func retryRemovals() {
        guard self.isOwing else { return }
        // What could not be written down may be by now.
        if self.removals.debts.isRecorded { self.recordInLockFile() }
        self.removals.due =
            self.removals.hasDeferred
            ? .now + Self.deferredInterval : .now + max(.seconds(1), self.core.pauseLeft)
        self.setAlarm()
    }
}
