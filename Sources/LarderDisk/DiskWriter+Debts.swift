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
    /// What a batch asked for cannot be done now.
    ///
    /// Sinks end. What was to be removed or marked as invalid must not be served any more, so it is
    /// hidden, and removed with the next batches that succeed.
    /// That it is owed is written down, so that it holds for the next process, too.
    mutating func fail(_ batch: [WriteCommand], _ error: LMDBError) {
        let reason: SinkAbandonment =
            error.code == .mapFull || error.code == .noSpace ? .noSpace : .storeFailed
        for command in batch {
            switch command {
            case .segment(let sink, _), .commit(let sink, _):
                if sink.isWanted { self.debts.garbage.insert(sink.id) }
                sink.end(.abandoned(reason))
            case .abandon(let sink, let reason):
                self.debts.garbage.insert(sink.id)
                sink.end(.abandoned(reason))
            case .update(let key, let head, let written):
                self.owe([key], isPromise: head.isInvalidated)
                written?()
            case .remove(let key, let ids?, let completion):
                self.owe(ids.map { self.core.objectKey($0, of: key) }, isPromise: true)
                completion?(ids.count)
            case .remove(let key, nil, let completion):
                let count = self.core.find(key).count
                self.owe(key)
                completion?(count)
            case .removeExactly(let keys, let isPromise, let completion):
                self.owe(keys, isPromise: isPromise)
                completion?(keys.count)
            case .groups:
                // Still in the table: written with the next batch that succeeds.
                self.debts.isPromised = true
                self.core.writerLock.note(owes: true)
            case .giveUp(let completion):
                self.giveUp()
                completion()
            case .mend(_, let completion):
                completion([])
            case .barrier(let completion):
                completion()
            }
        }
    }

    private mutating func owe(_ keys: [ObjectKey], isPromise: Bool) {
        self.core.entries.withLock { entries in for key in keys { _ = entries.hide(key.id) } }
        self.debts.entries.formUnion(keys)
        if isPromise { self.promise() }
    }

    /// All of a key is to go: what that is, a disk that cannot be read would not tell.
    private mutating func owe(_ key: CacheKey) {
        let bound = ObjectID(rawValue: self.core.nextID)
        self.core.entries.withLock { $0.hide(key, below: bound) }
        self.debts.keys[key] = bound
        self.promise()
        if self.debts.keys.count > RemovalDebts.keyLimit { self.giveUp() }
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

    /// Writes down, before anybody is told, that the file serves what it must not.
    private mutating func promise() {
        self.debts.isPromised = true
        self.core.writerLock.note(owes: true)
    }

    /// What was owed is done, as far as that.
    mutating func paid(_ part: RemovalDebts) {
        guard !self.debts.isNothing else { return }
        self.debts.subtract(part)
        self.core.entries.withLock { $0.removed(part.keys.keys) }
        self.debtsDue = nil
        if self.debts.isPaid {
            self.debts.isPromised = false
            self.core.writerLock.note(owes: false)
        }
        self.setAlarm()
    }

    /// What is owed is tried again by itself: nothing else may be written for long.
    mutating func putOffDebts() {
        guard self.debts.isPromised else { return }
        self.debtsDue = .now + max(.seconds(1), self.core.pauseLeft)
        self.setAlarm()
    }
}
