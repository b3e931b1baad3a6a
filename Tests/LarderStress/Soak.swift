import Foundation
import Glibc
import LarderDisk
import LarderHTTP
import LarderPolicy
import Synchronization

/// A whole proxy under everything at once: clients, changes, purges, listings, restarts, kills and,
/// where asked for, a disk that fails.
final class Soak: Sendable {
    struct Options: Sendable {
        var larder: String
        var directory: String
        var seed: UInt64
        var length: Duration
        var clients = 8
        var keys = 400
        var capacity = ByteCount.mebibytes(24)
        var memory = ByteCount.mebibytes(4)
        var killEvery = Duration.seconds(3)
        /// The library of scripts/soak.d; nil where the disk does not fail.
        var library: String?
        var reportEvery = Duration.seconds(60)
    }

    /// The proxy between two of its starts.
    struct Life: Sendable {
        var number = 0
        var isServing = false
    }

    private struct State: Sendable {
        var life = Life()
        var isOver = false
        var floors: [UInt64]
    }

    let options: Options
    let origin: Origin
    let proxyPort: Int
    let tally = Mutex(Tally())
    private let state: Mutex<State>
    /// Guards waiting for the proxy: `state` says when.
    private let bell = Bell()

    init(_ options: Options) throws {
        self.options = options
        self.origin = try Origin(keys: options.keys, seed: options.seed)
        // A port that was free a moment ago: each start of the proxy takes the same.
        let (socket, port) = try Connection.listen()
        _ = close(socket)
        self.proxyPort = port
        self.state = Mutex(State(floors: Array(repeating: 0, count: options.keys)))
    }

    // MARK: What clients ask

    var isOver: Bool { self.state.withLock { $0.isOver } }

    func floor(of key: Int) -> UInt64 { self.state.withLock { $0.floors[key] } }

    func raiseFloor(of key: Int, to version: UInt64) {
        self.state.withLock { $0.floors[key] = max($0.floors[key], version) }
    }

    /// Waits until the proxy serves, or all is over.
    func waitUntilServing() -> Life {
        self.bell.wait(until: nil) {
            self.state.withLock { $0.life.isServing || $0.isOver }
        }
        return self.state.withLock { state in
            var life = state.life
            if state.isOver { life.isServing = false }
            return life
        }
    }

    func isStillServing(_ number: Int) -> Bool {
        self.state.withLock { $0.life.isServing && $0.life.number == number && !$0.isOver }
    }

    /// Ends it all; with a reason where something was wrong.
    func stop(_ wrong: String? = nil) {
        if let wrong { self.tally.withLock { $0.wrong = $0.wrong ?? wrong } }
        self.state.withLock { $0.isOver = true }
        self.bell.ring()
    }

    /// Waits for the end, at most until `limit`.
    func pause(until limit: ContinuousClock.Instant) {
        self.bell.wait(until: limit) { self.isOver }
    }

    func serves(_ isServing: Bool) {
        self.state.withLock { state in
            state.life.isServing = isServing
            if isServing { state.life.number += 1 }
        }
        self.bell.ring()
    }
}

/// A condition that threads wait for, with a limit (pthread_cond_timedwait(3)).
final class Bell: Sendable {
    private let condition = NSCondition()

    func ring() {
        self.condition.lock()
        self.condition.broadcast()
        self.condition.unlock()
    }

    func wait(until limit: ContinuousClock.Instant?, _ isMet: () -> Bool) {
        self.condition.lock()
        defer { self.condition.unlock() }
        while !isMet() {
            guard let limit else {
                self.condition.wait()
                continue
            }
            let left = (limit - .now) / .seconds(1)
            if left <= 0 { return }
            _ = self.condition.wait(until: Date(timeIntervalSinceNow: left))
        }
    }
}
