import NIOCore
import NIOPosix
import Synchronization

/// What a wait was for did not happen in time.
struct TimedOut: Error, CustomStringConvertible {
    let description: String
}

/// A value that tests wait for: it changes, and whoever waits for a state of it wakes.
final class Event<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let isMet: @Sendable (Value) -> Bool
        let promise: EventLoopPromise<Value>
    }

    private struct State: Sendable {
        var value: Value
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>
    private let loop: any EventLoop

    init(_ value: Value, loop: any EventLoop = MultiThreadedEventLoopGroup.singleton.any()) {
        self.state = Mutex(State(value: value))
        self.loop = loop
    }

    var value: Value { self.state.withLock { $0.value } }

    func change(_ change: (inout Value) -> Void) {
        let (value, met) = self.state.withLock { state -> (Value, [Waiter]) in
            change(&state.value)
            let value = state.value
            let met = state.waiters.filter { $0.isMet(value) }
            state.waiters.removeAll { $0.isMet(value) }
            return (value, met)
        }
        for waiter in met { waiter.promise.succeed(value) }
    }

    /// Waits until the value is as asked; fails after a minute, naming what was waited for.
    @discardableResult
    func wait(
        for what: String, until isMet: @escaping @Sendable (Value) -> Bool
    ) async throws -> Value {
        let promise = self.loop.makePromise(of: Value.self)
        let now = self.state.withLock { state -> Value? in
            if isMet(state.value) { return state.value }
            state.waiters.append(Waiter(isMet: isMet, promise: promise))
            return nil
        }
        if let now { promise.succeed(now) }
        let limit = self.loop.scheduleTask(in: .seconds(60)) {
            promise.fail(TimedOut(description: "\(what); it is now: \(self.value)"))
        }
        defer { limit.cancel() }
        return try await promise.futureResult.get()
    }
}
