import Synchronization

/// Counts connections, and holds the door at the most that are allowed.
///
/// As HAProxy and nginx do, further clients are left waiting in the kernel's queue: they are served
/// late, not refused.
final class ConnectionCount: Sendable {
    private struct State {
        var open = 0
        /// Doors that are shut until a connection closes.
        var shut: [@Sendable () -> Void] = []
        /// Whoever waits for the last connection to close.
        var waiters: [UInt64: @Sendable () -> Void] = [:]
        var nextWaiter: UInt64 = 0
        var makeRoom: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let crowded = Atomic(false)
    private let maximum: Int

    init(maximum: Int) {
        self.maximum = max(1, maximum)
    }

    /// Names what is called when a connection finds no place, to make room by closing what is idle.
    func whenFull(_ makeRoom: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.makeRoom = makeRoom }
    }

    var open: Int { self.state.withLock { $0.open } }

    /// Whether connections wait for a place: then those that have one end with their answer.
    var isCrowded: Bool { self.crowded.load(ordering: .relaxed) }

    /// Takes a place.
    ///
    /// - Parameter reopen: called once a place may be free again, when none was.
    /// - Returns: whether there was one.
    func enter(orElse reopen: @escaping @Sendable () -> Void) -> Bool {
        let (entered, makeRoom) = self.state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard state.open < self.maximum else {
                state.shut.append(reopen)
                self.crowded.store(true, ordering: .relaxed)
                return (false, state.makeRoom)
            }
            state.open += 1
            return (true, nil)
        }
        makeRoom?()
        return entered
    }

    func leave() {
        let wake = self.state.withLock { state -> [@Sendable () -> Void] in
            state.open -= 1
            var wake = state.shut
            state.shut = []
            self.crowded.store(false, ordering: .relaxed)
            if state.open == 0 {
                wake += state.waiters.values
                state.waiters = [:]
            }
            return wake
        }
        for call in wake { call() }
    }

    /// Calls `done` once, when no connection is open: now, or later.
    ///
    /// - Returns: a number to `forget` it by.
    func whenNone(_ done: @escaping @Sendable () -> Void) -> UInt64 {
        let number = self.state.withLock { state -> UInt64? in
            guard state.open > 0 else { return nil }
            state.nextWaiter += 1
            state.waiters[state.nextWaiter] = done
            return state.nextWaiter
        }
        if number == nil { done() }
        return number ?? 0
    }

    func forget(_ number: UInt64) {
        self.state.withLock { $0.waiters[number] = nil }
    }
}
