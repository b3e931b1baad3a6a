import Foundation
import Glibc
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

/// A clock that stands still until it is moved on.
private enum StandingClock {
    private static let seconds = Atomic<Int64>(1_700_000_000)

    static func now() -> Timestamp { Timestamp(seconds: self.seconds.load(ordering: .relaxed)) }
    static func moveOn(by seconds: Int64) { self.seconds.add(seconds, ordering: .relaxed) }
}

private func opened(
    _ path: String, retryInterval: Duration = .seconds(10)
) throws(StoreError) -> DiskStore {
    try DiskStore.open(
        DiskConfiguration(
            directory: path, capacity: .mebibytes(64), retryInterval: retryInterval),
        clock: { StandingClock.now() }, report: { _ in })
}

/// Waits until that is so; false where it takes too long.
private func becomes(_ isSo: () throws -> Bool) async rethrows -> Bool {
    let limit = ContinuousClock.now + .seconds(30)
    while try !isSo() {
        if ContinuousClock.now > limit { return false }
        await Task.yield()
    }
    return true
}

/// Stores a response, and a part of another one, and is killed.
private func leaveUnfinished(_ path: String) async throws {
    let store = try opened(path)
    await store.put(cacheKey("a"), pattern(10_000))
    let observer = Observer()
    let sink = store.store(
        storedHead(), for: cacheKey("torn"), length: nil, replacing: [], observer: observer)
    sink?.write(ByteBuffer(bytes: pattern(1_000_000)))
    await observer.wrote(900_000)
    kill(getpid(), SIGKILL)
}

@Suite("A disk that refuses to write", .timeLimit(.minutes(10)))
struct RefusingDiskTests {
    private let directory: TemporaryDirectory

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test("is asked once, and left alone until the pause is over")
    func once() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            var store = try opened(path)
            await store.put(cacheKey("a"), pattern(10_000))
            await store.closed()
            disk(isFull: true)
            store = try opened(path)
            let core = store.core
            guard await becomes({ core.mailbox.isWriterWaiting }) else { exit(1) }
            guard store.statistics().storeFailures == 1 else { exit(2) }
            // Nor does what was asked for in vain have it tried again and again.
            _ = await store.removed(cacheKey("a"))
            guard await becomes({ core.mailbox.isWriterWaiting }) else { exit(3) }
            // Room was looked for in a few rounds.
            exit(store.statistics().storeFailures < 20 ? 7 : 4)
        }
    }

    @Test("is tried again by itself: what a killed process left unfinished goes then")
    func again() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            try await leaveUnfinished(path)
        }
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            disk(isFull: true)
            let store = try opened(path, retryInterval: .milliseconds(20))
            let failures = { store.statistics().storeFailures }
            guard await becomes({ failures() > 2 }) else { exit(1) }
            disk(isFull: false)
            let inspector = try DiskInspector(directory: path)
            let isClean = try await becomes {
                let left = try inspector.statistics()
                return left.pending == 0 && left.garbage == 0
            }
            guard isClean, await store.find(cacheKey("a")).count == 1 else { exit(2) }
            exit(7)
        }
    }

    @Test("has what a killed process left unfinished taken away once something is stored again")
    func recovery() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            try await leaveUnfinished(path)
        }
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            disk(isFull: true)
            let store = try opened(path)
            guard await becomes({ store.core.mailbox.isWriterWaiting }) else { exit(1) }
            disk(isFull: false)
            StandingClock.moveOn(by: 11)
            // What is on its way by then is not taken for left behind.
            let observer = Observer()
            let sink = store.store(
                storedHead(), for: cacheKey("slow"), length: nil, replacing: [],
                observer: observer)
            sink?.write(ByteBuffer(bytes: pattern(300_000)))
            await observer.wrote(260_000)
            let inspector = try DiskInspector(directory: path)
            let isClean = try await becomes {
                let left = try inspector.statistics()
                return left.pending == 1 && left.garbage == 0
            }
            guard isClean else { exit(2) }
            sink?.commit(trailers: Fields())
            guard case .visible = await observer.end() else { exit(3) }
            guard let slow = await store.find(cacheKey("slow")).first else { exit(4) }
            exit(await store.body(slow).bytes == pattern(300_000) ? 7 : 5)
        }
    }
}
