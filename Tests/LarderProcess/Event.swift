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
        let promise: EventLoopPromise<Void>
    }

    private struct State: Sendable {
        var value: Value
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>

    init(_ value: Value) {
        self.state = Mutex(State(value: value))
    }

    var value: Value { self.state.withLock { $0.value } }

    /// Changes the value; those wake whose state it has now.
    @discardableResult
    func change<Result: Sendable>(_ change: (inout Value) -> sending Result) -> Result {
        var met: [Waiter] = []
        let result = self.state.withLock { state in
            let result = change(&state.value)
            if !state.waiters.isEmpty {
                let value = state.value
                met = state.waiters.filter { $0.isMet(value) }
                state.waiters.removeAll { $0.isMet(value) }
            }
            return result
        }
        for waiter in met { waiter.promise.succeed() }
        return result
    }

    /// Waits until the value is as asked.
    ///
    /// - Throws: `TimedOut`, naming what was waited for, when it was not in ten minutes: a guard against
    ///   hanging, which measures nothing.
    func wait(
        for what: @autoclosure @escaping @Sendable () -> String,
        until isMet: @escaping @Sendable (Value) -> Bool
    ) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let promise = loop.makePromise(of: Void.self)
        let isNow = self.state.withLock { state in
            if isMet(state.value) { return true }
            state.waiters.append(Waiter(isMet: isMet, promise: promise))
            return false
        }
        if isNow { promise.succeed() }
        let limit = loop.scheduleTask(in: .minutes(10)) {
            promise.fail(TimedOut(description: "waited for \(what())"))
        }
        defer { limit.cancel() }
        try await promise.futureResult.get()
    }
}

/// Lets so many through at a time; the others wait in the order in which they came.
actor Turnstile {
    /// Whole proxies at work at a time: more would only wait for each other's processor.
    static let proxies = Turnstile(places: 4)

    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(places: Int) {
        self.places = places
    }

    func enter() async {
        guard self.places == 0 else {
            self.places -= 1
            return
        }
        await withCheckedContinuation { self.waiting.append($0) }
    }

    func leave() {
        guard self.waiting.isEmpty else {
            self.waiting.removeFirst().resume()
            return
        }
        self.places += 1
    }
}
