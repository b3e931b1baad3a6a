import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// What was acknowledged or given up while the disk refused to write, and is still in the file.
///
/// Its entries are hidden until it is paid. Bounded: entries by what is stored, keys by a limit.
struct RemovalDebts: Sendable {
    /// More keys are not remembered: the whole file is given up instead.
    static let keyLimit = 65_536
    /// So much of each goes into one transaction, which must not fail for its size.
    private static let partSize = 512
    private static let keysOfPart = 32

    var entries: Set<ObjectKey> = []
    /// Keys whose entries with ids below these are to go.
    var keys: [CacheKey: ObjectID] = [:]
    /// Bodies that came to nothing.
    var garbage: Set<ObjectID> = []
    /// Somebody was told that it is done.
    var isPromised = false
    /// It is not known any more what is owed: the file must not be opened again.
    var isTooMuch = false

    /// Whether the file holds nothing that it must not serve.
    var isPaid: Bool { self.entries.isEmpty && self.keys.isEmpty && !self.isTooMuch }
    var isNothing: Bool { self.isPaid && self.garbage.isEmpty && !self.isPromised }

    /// What one transaction pays.
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

// What a batch that failed leaves to be done.
extension DiskWriter {
    /// How often what a full file refuses is tried again while somebody waits for it.
    private static let untoldInterval = Duration.milliseconds(50)

    /// What a batch asked for cannot be done now.
    ///
    /// Sinks end. What was to be removed or marked as invalid must not be served any more, so it is
    /// hidden, and removed with the next batches that succeed.
    /// That it is owed is written down before anybody is told that it is done, so that it holds for the
    /// next process, too, at the price of the file. A file that is full is no reason for that yet: room
    /// comes back when a reader goes who stood still, so that nobody is told for a while.
    mutating func fail(_ batch: [WriteCommand], _ error: LMDBError) {
        self.defers = error.code == .mapFull && !self.debts.isPromised
        let reason: SinkAbandonment =
            error.lacksRoom ? .noSpace : .storeFailed
        for command in batch {
            switch command {
            case .segment(let sink, _), .commit(let sink, _):
                if sink.isWanted { self.debts.garbage.insert(sink.id) }
                sink.end(.abandoned(reason))
            case .abandon(let sink, let reason):
                self.debts.garbage.insert(sink.id)
                sink.end(.abandoned(reason))
            case .update(let key, let head, let written):
                self.owe([key])
                if head.isInvalidated { self.promise(written ?? {}) } else { written?() }
            case .remove(let key, let ids?, let completion):
                self.owe(ids.map { self.core.objectKey($0, of: key) })
                self.promise { completion?(ids.count) }
            case .remove(let key, nil, let completion):
                let count = self.core.find(key).objects.count
                self.owe(key)
                self.promise { completion?(count) }
            case .removeExactly(let keys, let isPromise, let completion):
                self.owe(keys)
                if isPromise {
                    self.promise { completion?(keys.count) }
                } else {
                    completion?(keys.count)
                }
            case .groups:
                // Still in the table: written with the next batch that succeeds.
                self.promise {}
            case .giveUp(let file, let completion): completion(self.giveUp(file))
            case .mend(_, let completion):
                completion([])
            case .barrier(let completion):
                if self.untold.isEmpty { completion() } else { self.untold.append(completion) }
            }
        }
    }

    private mutating func owe(_ keys: [ObjectKey]) {
        self.core.entries.withLock { entries in for key in keys { _ = entries.hide(key.id) } }
        self.debts.entries.formUnion(keys)
    }

    /// All of a key is to go: what that is, a disk that cannot be read would not tell.
    private mutating func owe(_ key: CacheKey) {
        let bound = ObjectID(rawValue: self.core.nextID)
        self.core.entries.withLock { $0.hide(key, below: bound) }
        self.debts.keys[key] = bound
        if self.debts.keys.count > RemovalDebts.keyLimit { self.giveUp() }
    }

    /// Gives up a file where that is still the one in use; false where it is not.
    mutating func giveUp(_ file: CacheFile) -> Bool {
        guard self.core.file === file else { return false }
        self.giveUp()
        return true
    }

    /// What is to go is not known entry by entry: the file makes room for a new one.
    mutating func giveUp() {
        self.debts.keys = [:]
        self.debts.isTooMuch = true
        let bound = ObjectID(rawValue: self.core.nextID)
        self.core.entries.withLock { $0.hideAll(below: bound) }
        self.promise()
        _ = self.core.file.note(.damaged(LMDBError(.corrupted, operation: "remove")))
    }

    /// Tells somebody that what is owed is done: once that is written down, or later where the file is
    /// only full.
    private mutating func promise(_ tell: @escaping @Sendable () -> Void) {
        guard self.defers else {
            self.promise()
            return tell()
        }
        if self.toldBy == nil {
            self.toldBy = .now + self.core.configuration.owingPatience
        }
        self.untold.append(tell)
    }

    /// Writes down, before anybody is told, that the file serves what it must not.
    private mutating func promise() {
        self.debts.isPromised = true
        self.core.writerLock.note(owes: true)
    }

    /// Promises what nobody was told yet, and tells it.
    mutating func promiseUntold() {
        guard !self.untold.isEmpty else { return }
        self.promise()
        self.tellUntold()
    }

    mutating func tellUntold() {
        let untold = self.untold
        self.untold = []
        self.toldBy = nil
        for tell in untold { tell() }
    }

    /// Whether somebody was told, or waits to be, that it is done.
    var isOwing: Bool { self.debts.isPromised || !self.untold.isEmpty }

    /// What was owed is done, as far as that.
    mutating func paid(_ part: RemovalDebts) {
        guard !self.debts.isNothing || self.isOwing else { return }
        self.debts.subtract(part)
        self.core.entries.withLock { $0.removed(part.keys.keys) }
        self.debtsDue = nil
        if self.debts.isPaid {
            self.debts.isPromised = false
            self.core.writerLock.note(owes: false)
            self.tellUntold()
        }
        self.setAlarm()
    }

    /// What is owed is tried again by itself: nothing else may be written for long.
    mutating func putOffDebts() {
        guard self.isOwing else { return }
        self.debtsDue =
            self.untold.isEmpty
            ? .now + max(.seconds(1), self.core.pauseLeft) : .now + Self.untoldInterval
        self.setAlarm()
    }
}
