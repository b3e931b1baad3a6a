package import LarderHTTP
import LarderPolicy
import Synchronization

/// Removal by the time of storing.
extension MemoryStore {
    package func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void
    ) {
        var names: [StoredName] = []
        var place: ResidentPlace? = .start
        while let at = place {
            let page = self.residentObjects(from: at)
            for resident in page.objects where resident.object.head.storedTime >= time {
                names.append(
                    StoredName(
                        key: resident.object.key, id: resident.object.id,
                        lastUsed: resident.object.lastUsed,
                        bytes: MemoryCost.of(resident.object)))
            }
            place = page.next
        }
        completion(names)
    }
}

extension TieredStore {
    package func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void
    ) {
        self.memory.names(storedSince: time) { upper in
            guard let disk = self.disk else { return completion(upper) }
            // A response that lies in both is named twice, and removed by the first name.
            disk.names(storedSince: time) { lower in completion(upper + lower) }
        }
    }
}

extension ObjectStore {
    /// For a store that is never asked for it.
    package func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void
    ) {
        completion([])
    }

    /// Removes what was first stored at `time` or after; `completion` is called once no later lookup
    /// can find it.
    package func removeAll(
        storedSince time: Timestamp, _ completion: @escaping @Sendable () -> Void
    ) {
        self.names(storedSince: time) { self.remove($0, completion) }
    }

    /// Removes all of these; `completion` is called once no later lookup can find any of them.
    package func remove(
        _ names: [StoredName], _ completion: @escaping @Sendable () -> Void
    ) {
        NamedRemoval(names, from: self, completion).run()
    }
}

/// Removes responses by their names, a bounded part at a time: the next part is asked for when the one
/// before is gone, so that other work of the store's comes in between.
private final class NamedRemoval: Sendable {
    private static let stepSize = 512

    private let names: [StoredName]
    private let store: any ObjectStore
    private let completion: @Sendable () -> Void
    /// How many of them have been asked for.
    private let asked = Atomic(0)

    init(
        _ names: [StoredName], from store: any ObjectStore,
        _ completion: @escaping @Sendable () -> Void
    ) {
        self.names = names
        self.store = store
        self.completion = completion
    }

    /// Goes on until the store takes its time, or all is done.
    func run() {
        while true {
            let start = self.asked.load(ordering: .acquiring)
            if start == self.names.count { return self.completion() }
            let part = self.names[start..<min(start + Self.stepSize, self.names.count)]
            self.asked.store(part.endIndex, ordering: .releasing)
            // Of the end of the asking and that of the removal the later one goes on: a store that has
            // all in memory is done at once, and must not make this call itself for each part.
            let turn = Turn()
            let removal = PendingRemoval { _ in if turn.isSecond { self.run() } }
            for name in part {
                removal.expectOneMore()
                self.store.remove(name.key, ids: [name.id]) { removal.settle(adding: $0) }
            }
            removal.settle()
            if !turn.isSecond { return }
        }
    }
}

/// Tells the second of two that it is that.
private final class Turn: Sendable {
    private let isHalf = Atomic(false)

    /// To be asked once by each.
    var isSecond: Bool { self.isHalf.exchange(true, ordering: .acquiringAndReleasing) }
}
