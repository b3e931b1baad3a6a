import Synchronization

/// A removal that ends when all that it waits for has ended.
///
/// Atomic, so that parts of the store may count in it while they are locked.
final class PendingRemoval: Sendable {
    private let waiting = Atomic<Int>(1)
    private let count = Atomic<Int>(0)
    private let completion: @Sendable (Int) -> Void

    /// Waits for one `settle`, and for one more at each `expectOneMore`.
    init(_ completion: @escaping @Sendable (Int) -> Void) {
        self.completion = completion
    }

    func expectOneMore() {
        self.waiting.add(1, ordering: .acquiringAndReleasing)
    }

    /// Counts responses that are gone, without ending a wait.
    func add(_ removed: Int) {
        self.count.add(removed, ordering: .acquiringAndReleasing)
    }

    /// One of those it waits for has ended.
    ///
    /// Must not be called with a lock held: it may complete.
    func settle(adding removed: Int = 0) {
        self.add(removed)
        let left = self.waiting.subtract(1, ordering: .acquiringAndReleasing).newValue
        if left == 0 { self.completion(self.count.load(ordering: .acquiring)) }
    }
}
