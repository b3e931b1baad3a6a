import LarderPolicy
import LarderStore
import Synchronization

/// A response, or a part of one, on its way into the store: from the moment when its storing begins to
/// that in which the store has said what became of it.
///
/// Any thread; nothing foreign is called while the lock is held.
final class Storing: Sendable {
    private struct State {
        /// All of it has been handed to the store.
        var isHandedOver: Bool
        /// Whoever waited has waited long enough.
        var isOverdue = false
        var isOver = false
        var waiters: [@Sendable () -> Void] = []
        var patience: (any TimerToken)?
    }

    /// Under which it will be found.
    let key: CacheKey
    /// As lookups will show it, but for the extent.
    let head: StoredHead
    /// It is added to what is stored already.
    let isAddition: Bool
    /// The bytes that it brings; nil: the whole.
    private let range: Range<UInt64>?
    /// How many bytes will come, where that is known.
    private let length: UInt64?
    /// Where they come in.
    private let filling: Filling?
    private let state: Mutex<State>

    init(
        _ head: StoredHead, for key: CacheKey, range: Range<UInt64>?, length: UInt64?,
        from filling: Filling, isAddition: Bool = false
    ) {
        self.isAddition = isAddition
        self.key = key
        self.head = head
        self.range = range
        self.length = length
        self.filling = filling
        self.state = Mutex(State(isHandedOver: false))
    }

    /// One whose bytes are all there, and which ends as soon as the store has put them in order.
    init(rearranging head: StoredHead, of key: CacheKey) {
        self.key = key
        self.head = head
        self.isAddition = true
        self.range = nil
        self.length = nil
        self.filling = nil
        self.state = Mutex(State(isHandedOver: true))
    }

    /// Notes that all of it is handed to the store, or will be before a client hears of the end.
    func handedOver() {
        self.state.withLock { $0.isHandedOver = true }
    }

    /// Whether clients have all its bytes, so that nothing but the store is still to be waited for.
    var isAlmostOver: Bool {
        let (isHandedOver, isOverdue) = self.state.withLock { ($0.isHandedOver, $0.isOverdue) }
        if isOverdue || isHandedOver { return !isOverdue }
        // The end of a body whose length is known comes behind its last byte. Not where a slow
        // reader keeps the origin waiting: nobody else need wait for that one.
        guard let length = self.length, let filling = self.filling else { return false }
        return filling.bytesReceived >= length && !filling.isPaused
    }

    /// Whether what a lookup has found has it already.
    func isShown(among objects: [StoredObject]) -> Bool {
        objects.contains { object in
            let head = object.head
            guard head.requestTime == self.head.requestTime,
                head.responseTime == self.head.responseTime, head.fields == self.head.fields
            else { return false }
            guard let extent = head.extent else { return true }
            return self.range.map { extent.contains($0) } ?? false
        }
    }

    /// What came of an attempt to wait.
    enum Joined {
        case waiting(isFirst: Bool)
        /// It has ended meanwhile.
        case over
        /// There is no waiting for it any more.
        case overdue
    }

    func wait(_ resume: @escaping @Sendable () -> Void) -> Joined {
        self.state.withLock { state in
            if state.isOver { return .over }
            if state.isOverdue { return .overdue }
            state.waiters.append(resume)
            return .waiting(isFirst: state.waiters.count == 1)
        }
    }

    /// Holds the timer that bounds the waiting, as long as there is something to wait for.
    func limit(by patience: any TimerToken) {
        let unused = self.state.withLock { state -> (any TimerToken)? in
            guard !state.isOver, !state.isOverdue else { return patience }
            defer { state.patience = patience }
            return state.patience
        }
        unused?.cancel()
    }

    /// The store takes too long: those who wait go on without it, and nobody waits for it again.
    func patienceOver() {
        let waiters = self.state.withLock { state in
            state.isOverdue = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for resume in waiters { resume() }
    }

    /// It has ended, and the table knows: those who wait may look.
    func release() {
        let (waiters, patience) = self.state.withLock { state in
            state.isOver = true
            defer { state.waiters = [] }
            return (state.waiters, state.patience.take())
        }
        patience?.cancel()
        for resume in waiters { resume() }
    }
}
