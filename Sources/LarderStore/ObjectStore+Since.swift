package import LarderHTTP
import LarderPolicy

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
    /// Removes what was first stored at `time` or after; `completion` is called once no later lookup
    /// can find it.
    package func removeAll(
        storedSince time: Timestamp, _ completion: @escaping @Sendable () -> Void
    ) {
        self.names(storedSince: time) { names in
            let removal = PendingRemoval { _ in completion() }
            for name in names {
                removal.expectOneMore()
                self.remove(name.key, ids: [name.id]) { removal.settle(adding: $0) }
            }
            removal.settle()
        }
    }
}
