import Dispatch
import LarderDisk
import LarderHTTP
import LarderStore
import Synchronization

/// Opening and changing the file of a disk tier; all of it on its queue.
extension DiskTier {
    /// For how long a file that cannot be opened is left alone.
    private static let pause = Duration.seconds(30)

    func openPlace(creating: Bool) {
        let (capacity, place, owesRemoval) = self.state.withLock {
            state -> (ByteCount, String?, Bool) in
            state.hasNotedRemoval = false
            return (state.capacity, state.place, state.owesRemoval)
        }
        let places = DiskPlaces(directory: self.directory)
        do throws(StoreError) {
            let opened = try places.open(
                preferring: place, capacity: capacity, creating: creating, clearing: owesRemoval,
                clock: self.clock, report: self.report)
            if opened != nil || !creating { self.state.withLock { $0.owesRemoval = false } }
            guard let opened else {
                return self.settle(
                    creating ? .crowded(until: ContinuousClock.now + Self.pause) : .vacant)
            }
            self.state.withLock { state in
                // Also in the same place, where what lay there was taken away.
                if state.place != opened.place || state.lineage != opened.disk.lineage {
                    state.generation = (state.generation + 1) & 0x3FFF
                }
                state.place = opened.place
                state.lineage = opened.disk.lineage
            }
            self.settle(.open(opened.disk))
        } catch {
            self.report(.failed(error))
            self.settle(.failed(until: ContinuousClock.now + Self.pause))
        }
    }

    // MARK: Without a file

    /// Answers a removal that no file could be told of: once it is noted beside a file that could not be
    /// opened, so that no process serves what lies there.
    ///
    /// A disk that refuses even the note leaves it to the life of this process, and that is told.
    func answerRemoval(_ completion: @escaping @Sendable () -> Void) {
        guard self.state.withLock({ $0.owesRemoval && !$0.hasNotedRemoval }) else {
            return completion()
        }
        self.queue.async {
            self.noteRemoval()
            completion()
        }
    }

    private func noteRemoval() {
        // It may have been noted, or the file taken away, in the meantime.
        let (isDue, place) = self.state.withLock { state -> (Bool, String?) in
            (state.owesRemoval && !state.hasNotedRemoval, state.place)
        }
        guard isDue else { return }
        let note = DiskPlaces(directory: self.directory).noteRemoval(place)
        self.state.withLock { $0.hasNotedRemoval = note == .written }
        if case .failed(let error) = note { self.report(.removalNotKept(error)) }
    }

    // MARK: The capacity

    /// Lets the file become as large as `capacity`, from now on; 0 takes it away.
    ///
    /// What is more than that leaves, what was used last staying longest, and `completion` is called
    /// when it has left. What is being stored at that moment is not stored, and a body that is being
    /// read may break off.
    func resize(
        to capacity: ByteCount, _ completion: @escaping @Sendable () -> Void
    ) {
        // It would name the root of all places.
        guard !self.directory.isEmpty else { return completion() }
        enum Action {
            case nothing
            case wait
            case change(DiskStore?, from: ByteCount)
        }
        let action: Action = self.state.withLock { state in
            switch state.phase {
            case .closed: return .nothing
            case .changing:
                state.resizes.append { self.resize(to: capacity, completion) }
                return .wait
            case .open, .unopened, .vacant, .none, .failed, .crowded:
                let old = state.capacity
                state.capacity = capacity
                if old == capacity { return .nothing }
                var disk: DiskStore?
                if case .open(let opened) = state.phase { disk = opened }
                state.phase = .changing
                return .change(disk, from: old)
            }
        }
        switch action {
        case .nothing: completion()
        case .wait: break
        case .change(let disk, let old):
            self.queue.async { self.change(disk, from: old, to: capacity, completion) }
        }
    }

    private func change(
        _ disk: DiskStore?, from old: ByteCount, to new: ByteCount,
        _ completion: @escaping @Sendable () -> Void
    ) {
        guard let disk else {
            let places = DiskPlaces(directory: self.directory)
            if new == .zero, old > .zero { places.removeFree() }
            let hasAny = places.hasAny
            if !hasAny { self.state.withLock { $0.owesRemoval = false } }
            self.settle(new == .zero ? .none : hasAny ? .unopened : .vacant)
            return completion()
        }
        guard new > .zero else {
            return disk.close { self.queue.async { self.takeAway(completion) } }
        }
        let reopen = { @Sendable in
            disk.close {
                self.queue.async {
                    self.openPlace(creating: true)
                    completion()
                }
            }
        }
        guard new < old else { return reopen() }
        Self.shrink(disk, to: new) { disk.flush(reopen) }
    }

    private func takeAway(_ completion: @Sendable () -> Void) {
        let place = self.state.withLock { $0.place.take() }
        if let place { DiskPlaces.remove(place) }
        self.settle(.none)
        completion()
    }

    /// Removes what was not used for longest until the rest fits, with nothing left for the rules of
    /// eviction to choose, which count uses: one that has just come would leave before one of long ago.
    private static func shrink(
        _ disk: DiskStore, to capacity: ByteCount, _ completion: @escaping @Sendable () -> Void
    ) {
        disk.allNames { names in
            // Eviction makes room by its own rules then.
            guard let names else { return completion() }
            let aim = disk.lastingRoom(at: capacity).bytes
            var bytes = names.reduce(UInt64(0)) { $0 &+ $1.bytes }
            let doomed = names.sorted { $0.lastUsed < $1.lastUsed }.prefix { name in
                guard bytes > aim else { return false }
                bytes -= min(bytes, name.bytes)
                return true
            }
            disk.remove(Array(doomed), completion)
        }
    }
}

/// The places in the directory of a cache, one for each process that uses it at a time.
struct DiskPlaces {
    static let limit = 16

    let directory: String

    private func place(_ number: Int) -> String {
        self.directory + (number == 1 ? "/responses" : "/responses-\(number)")
    }

    /// Whether there is a file in any of them; also where that cannot be told.
    var hasAny: Bool { (1...Self.limit).contains { DiskStore.isThere(self.place($0)) } }

    /// Opens the first that no other process has; nil where there is none.
    ///
    /// - Parameters:
    ///   - preferred: where what is to be found was stored; tried first.
    ///   - creating: make a file where none is free.
    ///   - clearing: nothing of what lies in a file is to be found any more.
    func open(
        preferring preferred: String?, capacity: ByteCount, creating: Bool, clearing: Bool = false,
        clock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (DiskEvent) -> Void
    ) throws(StoreError) -> (disk: DiskStore, place: String)? {
        let others = (1...Self.limit).map { self.place($0) }.filter { $0 != preferred }
        for place in (preferred.map { [$0] } ?? []) + others {
            let configuration = DiskConfiguration(
                directory: place, capacity: max(capacity, DiskConfiguration.minimumCapacity),
                readerThreads: 2)
            do throws(StoreError) {
                if clearing { try Self.clear(place) }
                if !creating, !DiskStore.isThere(place) { continue }
                let disk = try DiskStore.open(configuration, clock: clock, report: report)
                return (disk, place)
            } catch {
                guard case .inUse = error.code else { throw error }
            }
        }
        return nil
    }

    /// Takes a file away of which nothing may be found any more.
    ///
    /// Throws where it stays, `.inUse` where another process has it: it is that one's then.
    private static func clear(_ place: String) throws(StoreError) {
        guard DiskStore.isThere(place) else { return }
        try DiskStore.removeFiles(in: place)
        guard DiskStore.isThere(place) else { return }
        throw StoreError(
            .notWritable, path: place,
            cause: "responses were removed while it could not be opened, and are still in it",
            remedy: "remove it")
    }

    /// Notes beside a file that what lies in it is not to be found any more.
    ///
    /// What lies in one that another process has is that one's.
    ///
    /// - Parameter place: whose; nil: of the first that no process has.
    func noteRemoval(_ place: String?) -> RemovalNote {
        let places = place.map { [$0] } ?? (1...Self.limit).map { self.place($0) }
        for place in places {
            let note = RemovalNote.write(besideFileIn: place)
            if note == .written { return note }
            guard let failure = note.failure else { continue }
            if case .inUse = failure.code { continue }
            // The next process opens this one first.
            return note
        }
        return .notNeeded
    }

    /// Takes away the files that no process has.
    func removeFree() {
        for number in 1...Self.limit where DiskStore.isThere(self.place(number)) {
            Self.remove(self.place(number))
        }
    }

    /// Takes the file of a place away, unless another process has it.
    static func remove(_ place: String) {
        // Another process that has it keeps it: it is that one's.
        _ = try? DiskStore.removeFiles(in: place)
    }
}
