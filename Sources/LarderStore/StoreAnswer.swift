package import LarderPolicy

/// What a store has found of a key, and whether it would have found all.
package struct StoreAnswer: Sendable {
    package var objects: [StoredObject]
    /// False where something could not be read just now: for this request that is a miss, and it says
    /// nothing about the next.
    package var isCertain: Bool

    package init(_ objects: [StoredObject], isCertain: Bool = true) {
        self.objects = objects
        self.isCertain = isCertain
    }

    /// It could not be looked.
    package static let unknown = StoreAnswer([], isCertain: false)
}

extension ObjectStore {
    /// For stores that always know.
    package func ask(
        for key: CacheKey, _ completion: @escaping @Sendable (StoreAnswer) -> Void
    ) {
        self.lookup(key) { completion(StoreAnswer($0)) }
    }
}
