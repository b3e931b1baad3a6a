import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What a disk tier is asked for as a store.
extension DiskTier {
    func lookupResident(_ key: CacheKey) -> [StoredObject]? { nil }

    var mayHoldWithoutSearch: Bool {
        self.state.withLock { state in
            switch state.phase {
            case .none, .vacant, .closed: false
            case .open(let disk): disk.mayHoldWithoutSearch
            case .unopened, .changing, .failed, .crowded: true
            }
        }
    }

    func lookup(
        _ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void
    ) {
        self.ask(for: key) { completion($0.objects) }
    }

    func ask(
        for key: CacheKey, _ completion: @escaping @Sendable (StoreAnswer) -> Void
    ) {
        self.withDisk { disk in
            guard let disk else {
                return completion(self.isKnownEmpty ? StoreAnswer([]) : .unknown)
            }
            // What was removed with its directory is not to be served from a file without a name. The
            // answer waits until there is a new one: made later, it might come into a directory that
            // the program has made for another cache by then.
            guard disk.isInPlace else { return disk.flush { completion(.unknown) } }
            let generation = self.generation
            disk.ask(for: key) { answer in
                var answer = answer
                for index in answer.objects.indices {
                    answer.objects[index].id = Self.outer(answer.objects[index].id, generation)
                }
                completion(answer)
            }
        }
    }

    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        guard !head.staysInMemory else { return nil }
        let begin = { @Sendable (disk: DiskStore, observer: any ObjectSinkObserver) in
            let generation = self.generation
            return disk.store(
                head, for: key, length: length,
                replacing: replacing.compactMap { Self.inner($0, generation) },
                observer: NamingObserver(observer, generation: generation))
        }
        if let disk = self.disk { return begin(disk, observer) }
        guard self.mayOpen, self.waitingBytes.hasRoom else { return nil }
        let late = LateSink(observer, among: self.waitingBytes)
        self.withDisk(creating: true) { disk in
            late.opened(disk.flatMap { begin($0, late) })
        }
        return late
    }

    /// Whether there is certainly nothing, and not only no file that could be opened.
    private var isKnownEmpty: Bool {
        self.state.withLock { state in
            switch state.phase {
            case .none, .vacant, .closed: true
            case .unopened, .changing, .open, .failed, .crowded: false
            }
        }
    }

    private var mayOpen: Bool {
        self.state.withLock { state in
            switch state.phase {
            case .none, .closed: false
            case .failed(let until), .crowded(let until): ContinuousClock.now >= until
            case .vacant, .unopened, .changing, .open: true
            }
        }
    }

    func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        let generation = self.generation
        guard let disk = self.disk, let inner = Self.inner(id, generation) else { return nil }
        return disk.extend(
            inner, of: key, at: offset, length: length, completeLength: completeLength,
            begun: begun, observer: NamingObserver(observer, generation: generation))
    }

    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        self.withDisk(removing: head.isInvalidated) { disk in
            guard let disk else {
                guard head.isInvalidated else { written?(); return }
                return self.answerRemoval { written?() }
            }
            guard let inner = Self.inner(id, self.generation) else { written?(); return }
            disk.update(inner, of: key, head: head, written: written)
        }
    }

    func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?
    ) {
        self.withDisk(removing: true) { disk in
            guard let disk else { return self.answerRemoval { completion?(0) } }
            let generation = self.generation
            let inner = ids.map { $0.compactMap { Self.inner($0, generation) } }
            disk.remove(key, ids: inner, completion)
        }
    }

    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        self.withDisk(removing: true) { disk in
            guard let disk else { return self.answerRemoval { completion(0) } }
            // What was told to be stored is among it.
            disk.flush { disk.removeAll(in: selection, completion) }
        }
    }

    func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void
    ) {
        // Who asks wants them removed.
        self.withDisk(removing: true) { disk in
            guard let disk else { return self.answerRemoval { completion([]) } }
            let generation = self.generation
            disk.names(storedSince: time) { names in
                completion(
                    names.map { name in
                        var name = name
                        name.id = Self.outer(name.id, generation)
                        return name
                    })
            }
        }
    }

    func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp) {
        self.withDisk(removing: true) { disk in
            guard let disk else { return self.answerRemoval {} }
            disk.noteInvalidation(ofGroup: name, at: time)
        }
    }

    func groupInvalidation(of name: [UInt8]) -> Timestamp? {
        self.disk?.groupInvalidation(of: name)
    }

    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        guard let disk = self.disk, let inner = Self.inner(id, self.generation) else { return }
        disk.noteUse(inner, of: key, at: time)
    }

    func statistics() -> StoreStatistics {
        guard let disk = self.disk else { return StoreStatistics() }
        return disk.statistics()
    }
}

/// Passes on what a sink says, with the ids that the tier shows.
private final class NamingObserver: ObjectSinkObserver {
    private let observer: any ObjectSinkObserver
    private let generation: UInt64

    init(_ observer: any ObjectSinkObserver, generation: UInt64) {
        self.observer = observer
        self.generation = generation
    }

    func sink(written offset: UInt64) {
        self.observer.sink(written: offset)
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        guard case .visible(let id) = outcome else { return self.observer.sinkEnded(outcome) }
        self.observer.sinkEnded(.visible(DiskTier.outer(id, self.generation)))
    }
}
