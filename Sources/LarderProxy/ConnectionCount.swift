import NIOCore
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
        /// Places that idle connections were asked for, and have not given yet.
        var asked = 0
        /// Whoever waits for the last connection to close.
        var waiters: [UInt64: @Sendable () -> Void] = [:]
        var nextWaiter: UInt64 = 0
        var makeRoom: (@Sendable (Int) -> Void)?
        var crowding = Crowding()
        var tell: (@Sendable (Crowding.News) -> Void)?
    }

    private let state = Mutex(State())
    private let crowded = Atomic(false)
    private let maximum: Int

    init(maximum: Int) {
        self.maximum = max(1, maximum)
    }

    /// Names what is called when connections find no place, to make room by closing what is idle.
    ///
    /// It is told how many places are missing, and says by `foundNoRoom` how many it cannot give.
    func whenFull(_ makeRoom: @escaping @Sendable (Int) -> Void) {
        self.state.withLock { $0.makeRoom = makeRoom }
    }

    /// Names who is told that all places are taken, and that it is over.
    func whenCrowded(_ tell: @escaping @Sendable (Crowding.News) -> Void) {
        self.state.withLock { $0.tell = tell }
    }

    /// Counts a connection that has to wait for its place.
    func noteWaiting() {
        let now = NIODeadline.now()
        let (news, tell) = self.state.withLock { ($0.crowding.waited(at: now), $0.tell) }
        if let news { tell?(news) }
    }

    /// How many connections had to wait for a place so far.
    var waited: UInt64 { self.state.withLock { $0.crowding.count } }

    /// Places that were asked for and not given yet.
    var asked: Int { self.state.withLock { $0.asked } }

    func foundNoRoom(for places: Int) {
        self.state.withLock { $0.asked = max(0, $0.asked - places) }
    }

    var open: Int { self.state.withLock { $0.open } }

    /// Whether connections wait for a place: then those that have one end with their answer.
    var isCrowded: Bool { self.crowded.load(ordering: .relaxed) }

    /// Takes a place.
    ///
    /// - Parameters:
    ///   - waiting: how many want one, this one included.
    ///   - reopen: called once, as soon as a place may be free again, when none was; nil where the
    ///     last one is still to be called.
    /// - Returns: whether there was one.
    func enter(of waiting: Int, orElse reopen: (@Sendable () -> Void)?) -> Bool {
        let (entered, missing, makeRoom) = self.state.withLock { state in
            guard state.open < self.maximum else {
                let missing = self.wait(for: waiting, &state, reopen)
                return (false, missing, state.makeRoom)
            }
            state.open += 1
            return (true, 0, nil)
        }
        if missing > 0 { makeRoom?(missing) }
        return entered
    }

    /// Has `call` called once, when the next connection closes, and idle ones closed.
    ///
    /// - Parameter places: how many are wanted.
    func whenOneLeaves(wanting places: Int, _ call: @escaping @Sendable () -> Void) {
        let (missing, makeRoom) = self.state.withLock { state in
            (self.wait(for: places, &state, call), state.makeRoom)
        }
        if missing > 0 { makeRoom?(missing) }
    }

    /// - Returns: how many more places idle connections have to give.
    private func wait(
        for places: Int, _ state: inout State, _ call: (@Sendable () -> Void)?
    ) -> Int {
        if let call { state.shut.append(call) }
        self.crowded.store(true, ordering: .relaxed)
        let missing = max(0, places - state.asked)
        state.asked += missing
        return missing
    }

    func leave() {
        let (wake, news, tell) = self.state.withLock { state in
            state.open -= 1
            state.asked = max(0, state.asked - 1)
            var wake = state.shut
            // Who waits takes the place before it counts as free.
            let news = wake.isEmpty ? state.crowding.left(state.open, of: self.maximum) : nil
            state.shut = []
            self.crowded.store(false, ordering: .relaxed)
            if state.open == 0 {
                wake += state.waiters.values
                state.waiters = [:]
            }
            return (wake, news, news == nil ? nil : state.tell)
        }
        for call in wake { call() }
        if let news { tell?(news) }
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
