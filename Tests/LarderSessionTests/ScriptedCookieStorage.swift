import LarderCookies
import Synchronization

/// A storage in memory that does what the test says: fails, or keeps a caller waiting.
final class ScriptedCookieStorage: CookieStorage {
    private struct State {
        var held: [Cookie.Identity: Cookie] = [:]
        var batches: [[CookieChange]] = []
        var failure: CookieStorageError?
        var nextFailure: CookieStorageError?
        var loadFailure: CookieStorageError?
        var isStopped = false
        var stopped: [CheckedContinuation<Void, Never>] = []
        var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var calls = 0
        var underWay = 0
        var mostUnderWay = 0
    }

    private let state = Mutex(State())

    init(_ cookies: [Cookie] = []) {
        self.state.withLock { state in
            for cookie in cookies { state.held[cookie.identity] = cookie }
        }
    }

    /// What a restarted process would find.
    var held: [Cookie] { self.state.withLock { Array($0.held.values) } }
    /// What was applied, in order.
    var batches: [[CookieChange]] { self.state.withLock { $0.batches } }
    var calls: Int { self.state.withLock { $0.calls } }
    /// Calls that overlapped, at most.
    var mostUnderWay: Int { self.state.withLock { $0.mostUnderWay } }

    func fail(_ failure: CookieStorageError?) { self.state.withLock { $0.failure = failure } }
    /// Has the call that ends next fail, and no other.
    func failOnce(_ failure: CookieStorageError) {
        self.state.withLock { $0.nextFailure = failure }
    }
    func failLoading(_ failure: CookieStorageError?) {
        self.state.withLock { $0.loadFailure = failure }
    }

    /// Keeps calls waiting until `go`.
    func stop() { self.state.withLock { $0.isStopped = true } }

    func go() {
        let stopped = self.state.withLock { state in
            state.isStopped = false
            defer { state.stopped = [] }
            return state.stopped
        }
        for continuation in stopped { continuation.resume() }
    }

    /// Returns when `apply` has been called so often.
    func called(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = self.state.withLock { state in
                if state.calls >= count { return true }
                state.watchers.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func load() async throws(CookieStorageError) -> [Cookie] {
        let (cookies, failure) = self.state.withLock { (Array($0.held.values), $0.loadFailure) }
        if let failure { throw failure }
        return cookies
    }

    func apply(_ changes: [CookieChange]) async throws(CookieStorageError) {
        await self.begin()
        let failure: CookieStorageError? = self.state.withLock { state in
            state.underWay -= 1
            if let failure = state.nextFailure.take() ?? state.failure { return failure }
            state.batches.append(changes)
            for change in changes {
                switch change {
                case .stored(let cookie): state.held[cookie.identity] = cookie
                case .removed(let identity): state.held[identity] = nil
                }
            }
            return nil
        }
        if let failure { throw failure }
    }

    private func begin() async {
        let watchers = self.state.withLock { state in
            state.calls += 1
            state.underWay += 1
            state.mostUnderWay = max(state.mostUnderWay, state.underWay)
            let calls = state.calls
            defer { state.watchers.removeAll { $0.count <= calls } }
            return state.watchers.filter { $0.count <= calls }
        }
        for watcher in watchers { watcher.continuation.resume() }
        await withCheckedContinuation { continuation in
            let waits = self.state.withLock { state in
                if state.isStopped { state.stopped.append(continuation) }
                return state.isStopped
            }
            if !waits { continuation.resume() }
        }
    }
}
