import Dispatch
import Synchronization

/// Something that happens once: a test awaits it, an origin's thread blocks for it.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let semaphore = DispatchSemaphore(value: 0)

    func open() {
        let waiters = self.state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
        self.semaphore.signal()
    }

    /// Until it is open, or the test's time limit has cancelled it.
    func passed() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = self.state.withLock { state in
                    if !state.isOpen { state.waiters.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        } onCancel: {
            self.open()
        }
    }

    /// Blocks a thread of an origin; false when nothing came within two minutes: a guard
    /// against hanging, which measures nothing.
    func block() -> Bool {
        guard self.semaphore.wait(timeout: .now() + 120) == .success else { return false }
        self.semaphore.signal()
        return true
    }
}
