import Dispatch
package import LarderDisk
package import LarderHTTP
package import LarderStore
import Synchronization

/// A cache of memory and disk whose bounds may change while it is in use.
///
/// Whoever holds it uses it; when nobody does any more, its file is closed behind everybody's back.
/// Where several hold one on the same directory they have the same, and the capacity that was set
/// last holds for all of them. One that had no capacity there when it was made, and gets some while
/// another is in use there, has a place of its own, as in another process.
package final class SharedStore: Sendable {
    /// Memory over disk; answers as if it were empty once this is released.
    package let store: TieredStore
    private let memory: MemoryStore
    private let tier: DiskTier
    private let capacities: Mutex<(memory: ByteCount, disk: ByteCount)>

    fileprivate init(memory: ByteCount, disk: ByteCount, tier: DiskTier) {
        // Cut into parts, a small cache would have no room for a large body in any of them.
        self.memory = MemoryStore(MemoryConfiguration(capacity: memory, maximumObject: memory))
        self.tier = tier
        self.store = TieredStore(memory: self.memory, disk: tier)
        self.capacities = Mutex((memory, tier.directory.isEmpty ? .zero : disk))
    }

    deinit {
        self.store.close {}
    }

    package var memoryCapacity: ByteCount { self.capacities.withLock { $0.memory } }
    package var diskCapacity: ByteCount { self.capacities.withLock { $0.disk } }

    /// What no longer fits is gone when this returns.
    package func resizeMemory(to capacity: ByteCount) {
        self.capacities.withLock { $0.memory = capacity }
        self.memory.resize(to: capacity, maximumObject: capacity)
    }

    /// What no longer fits is gone when `completion` is called; at 0 the file is, too.
    ///
    /// Changes nothing where there is no directory. Waits for the disk to look at that.
    package func resizeDisk(
        to capacity: ByteCount, _ completion: @escaping @Sendable () -> Void
    ) {
        guard !self.tier.directory.isEmpty else { return completion() }
        if capacity > .zero { OpenStores.settle(self) }
        self.capacities.withLock { $0.disk = capacity }
        self.tier.resize(to: capacity, completion)
    }

    /// Calls back once what was stored and removed before is on the disk, or has failed.
    package func flush(_ completion: @escaping @Sendable () -> Void) {
        self.tier.flush(completion)
    }

    fileprivate var diskTier: DiskTier { self.tier }
}

/// The caches of this process, by the directory that they lie in.
package enum OpenStores {
    private struct Entry {
        weak var store: SharedStore?
        /// The last to have the directory; closed, or about to be, where `store` is gone.
        let tier: DiskTier
    }

    private static let entries = Mutex([DirectoryHold.Identity: Entry]())
    /// Tiers in a directory that another one has.
    private static let guests = Mutex([DiskTier]())
    /// Has what was stored last committed when the process ends by exit(3); registered once, with the
    /// first directory.
    ///
    /// A small program ends right after its last task, before the disk has its answer.
    private static let flushesAtExit: Void = LastWork.begin { done in OpenStores.flushAll(done) }

    private static func flushAll(_ completion: @escaping @Sendable () -> Void) {
        let tiers =
            self.entries.withLock { entries in entries.values.map(\.tier) }
            + self.guests.withLock { $0 }
        let group = DispatchGroup()
        for tier in tiers {
            group.enter()
            tier.finish { group.leave() }
        }
        group.notify(queue: DispatchQueue(label: "larder.open-stores"), execute: completion)
    }

    /// A cache in memory, and in the directory where `disk` is not 0; that is made, with mode 0700, where
    /// it does not exist.
    ///
    /// Where one is in use on that directory it is this one, with the capacities named here. Does not
    /// wait for the disk but to look at the directory. Where that cannot be used, the cache is in memory
    /// alone until it can be.
    ///
    /// - Parameters:
    ///   - directory: nil: never on a disk, whatever the capacity.
    ///   - report: hears what befalls the file, any thread.
    package static func store(
        memory: ByteCount, disk: ByteCount, directory: String?,
        report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) -> SharedStore {
        let clock = SystemClock()
        let make = { (after: DiskTier?, hold: DirectoryHold?, mayHaveFile: Bool?) in
            let tier = DiskTier(
                directory: directory ?? "", capacity: directory == nil ? .zero : disk,
                hold: hold, after: after, mayHaveFile: mayHaveFile, clock: { clock.now() },
                report: report)
            return SharedStore(memory: memory, disk: disk, tier: tier)
        }
        guard let directory else { return make(nil, nil, false) }
        // Without a capacity nothing is to be made; it gets its place when it gets some.
        guard disk > .zero, let hold = self.hold(directory) else {
            let store = make(nil, nil, nil)
            store.diskTier.settlesBeforeOpening { [weak store] in
                if let store { self.settle(store) }
            }
            return store
        }
        let identity = hold.identity
        // Looked at before: a disk that takes its time holds nobody up.
        let hasFile = DiskPlaces(directory: directory).hasAny
        let (store, isNew) = self.entries.withLock { entries -> (SharedStore, Bool) in
            if let store = entries[identity]?.store { return (store, false) }
            // One that is over by now may have made a file since.
            let mayHaveFile = hasFile || entries[identity] != nil
            entries = entries.filter { !$0.value.tier.isSettled }
            let store = make(entries[identity]?.tier, hold, mayHaveFile)
            entries[identity] = Entry(store: store, tier: store.diskTier)
            return (store, true)
        }
        if !isNew {
            store.resizeMemory(to: memory)
            store.resizeDisk(to: disk) {}
        }
        return store
    }

    /// A directory that is made where it does not exist; nil where it cannot be used.
    private static func hold(_ directory: String) -> DirectoryHold? {
        DiskStore.makeDirectory(directory)
        self.flushesAtExit
        return DirectoryHold(directory)
    }

    /// Gives a cache that is about to get its first capacity on the disk, or whose directory can perhaps
    /// be used by now, its place among those in use.
    fileprivate static func settle(_ store: SharedStore) {
        let tier = store.diskTier
        guard !tier.isHeld else { return }
        guard let hold = self.hold(tier.directory) else { return }
        let (owner, before) = self.entries.withLock { entries -> (SharedStore, DiskTier?) in
            let entry = entries[hold.identity]
            if let other = entry?.store { return (other, nil) }
            entries = entries.filter { !$0.value.tier.isSettled }
            entries[hold.identity] = Entry(store: store, tier: tier)
            return (store, entry?.tier)
        }
        guard tier.take(hold, after: before), owner !== store else { return }
        self.guests.withLock { guests in
            guests.removeAll { $0.isOver }
            guests.append(tier)
        }
    }
}
