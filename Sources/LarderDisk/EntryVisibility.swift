import LarderPolicy
import LarderStore
import Synchronization

/// Which entries look-ups may find, and whose bodies are held: a value.
///
/// A look-up reads a snapshot of the file, and the file goes on meanwhile. So it notes ``removals``
/// before its snapshot, and afterwards, in one step, asks whether the count is the same, drops what
/// is not to be found, and holds the bodies that it promises to somebody. Then
///
/// - what was hidden is never found between the commit that removes it and the end of its being
///   hidden, though the snapshot may be older than that commit: the count has changed, and
/// - no body is deleted that a look-up has promised: the writer asks in one step, too, whether a
///   body is held, and names it as one that leaves.
struct EntryVisibility {
    /// How many hold each body: none of its segments is deleted before they have let go.
    private var holds: [ObjectID: Int] = [:]
    /// Held bodies of a file that an empty one took the place of: they are read there.
    private var former: [ObjectID: CacheFile] = [:]
    /// Held entries that the writer came upon when it wanted room.
    private var met: Set<ObjectID> = []
    /// Whose bodies the writer's transaction deletes, should it be committed.
    private var leaving: Set<ObjectID> = []
    /// Entries that are gone for lookups, though the disk could not be told yet.
    private var hidden: Set<ObjectID> = []
    /// Keys whose entries with ids below these are gone for lookups, too.
    private var hiddenKeys: [CacheKey: ObjectID] = [:]
    /// All entries with ids below it are gone for lookups, too.
    private var hiddenBelow: ObjectID?
    /// Counts the commits that removed entries, and the files that others took the place of.
    private(set) var removals: UInt64 = 0

    // MARK: Look-ups

    func admits(_ id: ObjectID, of key: CacheKey) -> Bool {
        !self.isHidden(id, of: key) && (self.leaving.isEmpty || !self.leaving.contains(id))
    }

    func admits(_ place: FoundPlace, of key: CacheKey) -> Bool {
        place.allSatisfy { id, _ in self.admits(id, of: key) }
    }

    func isHidden(_ id: ObjectID, of key: CacheKey) -> Bool {
        if let bound = self.hiddenBelow, id < bound { return true }
        if !self.hiddenKeys.isEmpty, let bound = self.hiddenKeys[key], id < bound { return true }
        return !self.hidden.isEmpty && self.hidden.contains(id)
    }

    // MARK: Holds

    mutating func hold(_ id: ObjectID) {
        self.holds[id, default: 0] += 1
    }

    /// - Returns: whether it was in the writer's way, and nobody holds it any more.
    mutating func release(_ id: ObjectID) -> Bool {
        let count = (self.holds[id] ?? 1) - 1
        self.holds[id] = count > 0 ? count : nil
        return count <= 0 && self.met.remove(id) != nil
    }

    /// The file that was kept for a body which nobody holds any more: it may be closed by being let go of.
    mutating func takeFormerFile(of id: ObjectID) -> CacheFile? {
        if self.former.isEmpty || self.isHeld(id) { return nil }
        return self.former.removeValue(forKey: id)
    }

    /// Whether anything of a file is still held that an empty one took the place of.
    var holdsFormerFile: Bool { !self.former.isEmpty }

    /// The file in which a held body lies, where that is not the one in use.
    func formerFile(of id: ObjectID) -> CacheFile? {
        self.former.isEmpty ? nil : self.former[id]
    }

    func isHeld(_ id: ObjectID) -> Bool { self.holds[id] != nil }

    // MARK: The writer

    /// Whether anything that is held was in the writer's way, and still is.
    var hasInTheWay: Bool { !self.met.isEmpty }

    /// Whether a body is held, and so in the writer's way: it is told then when that ends.
    mutating func isInTheWay(_ id: ObjectID) -> Bool {
        guard self.isHeld(id) else { return false }
        self.met.insert(id)
        return true
    }

    /// Whether the body may be deleted in the transaction under way; nobody gets it from now on then.
    mutating func leaves(_ id: ObjectID) -> Bool {
        if self.isInTheWay(id) { return false }
        self.leaving.insert(id)
        return true
    }

    /// The transaction has come to nothing: what was to leave stays.
    mutating func stays() {
        self.leaving = []
    }

    /// The transaction is committed, without these.
    mutating func removed(_ ids: [ObjectID]) {
        self.leaving = []
        guard !ids.isEmpty else { return }
        self.removals &+= 1
        if !self.hidden.isEmpty { self.hidden.subtract(ids) }
    }

    // MARK: What is hidden

    /// - Returns: whether it was not hidden by itself before.
    mutating func hide(_ id: ObjectID) -> Bool {
        self.hidden.insert(id).inserted
    }

    /// Hides all that is stored of a key, whatever that is.
    mutating func hide(_ key: CacheKey, below id: ObjectID) {
        self.hiddenKeys[key] = id
    }

    /// Hides all that is stored, until ``removedAll()`` or ``stays(_:)`` comes.
    mutating func hideAll(below id: ObjectID) {
        self.hiddenBelow = id
    }

    /// What is held.
    ///
    /// Once all is hidden, nothing is added to it but what has not been written.
    var held: [ObjectID] { Array(self.holds.keys) }

    /// These bodies are read in `file` for as long as they are held, though another one is in use.
    mutating func keep(_ file: CacheFile, for ids: [ObjectID]) {
        for id in ids where self.isHeld(id) && self.former[id] == nil { self.former[id] = file }
    }

    /// A file stays in use that was to be left: what was hidden for that is found again.
    mutating func stays(_ file: CacheFile) {
        self.hiddenBelow = nil
        self.former = self.former.filter { $0.value !== file }
    }

    /// All that was stored of these keys is removed.
    mutating func removed(_ keys: some Collection<CacheKey>) {
        guard !keys.isEmpty else { return }
        self.removals &+= 1
        for key in keys { self.hiddenKeys.removeValue(forKey: key) }
    }

    /// Nothing of what was stored is there any more: what was to be hidden is gone.
    mutating func removedAll() {
        self.removals &+= 1
        self.met = []
        self.hidden = []
        self.hiddenKeys = [:]
        self.hiddenBelow = nil
    }
}

/// Keeps the segments of one body from being deleted for as long as it lives, or until it lets go.
final class BodyHold: Sendable {
    private let core: DiskCore
    private let id: ObjectID
    private let isHeld = Atomic(true)

    init(core: DiskCore, id: ObjectID) {
        self.core = core
        self.id = id
        core.entries.withLock { $0.hold(id) }
    }

    /// - Parameter held: what a look-up holds already: this one lets it go.
    init(core: DiskCore, held id: ObjectID) {
        self.core = core
        self.id = id
    }

    deinit {
        self.letGo()
    }

    /// Harmless when repeated.
    func letGo() {
        guard self.isHeld.exchange(false, ordering: .relaxed) else { return }
        self.core.letGo(of: self.id)
    }
}
