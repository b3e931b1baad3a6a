import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization

@testable import LarderProxy

/// A session with a memory store before an origin that gives each path its own body.
final class StoringSession: Upstream {
    private final class Fetched: UpstreamFetch {
        func resume() {}
        func cancel() {}
    }

    private struct NoTimers: Timers {
        private struct Token: TimerToken { func cancel() {} }
        func schedule(
            after delay: Duration, _ work: @escaping @Sendable () -> Void
        ) -> any TimerToken { Token() }
    }

    private final class Clock: WallClock {
        let time = Mutex(Fixture.now)
        func now() -> Timestamp { self.time.withLock { $0 } }
    }

    private let clock = Clock()
    /// Answers that were asked for and not given yet.
    private let held = Mutex<[@Sendable () -> Void]>([])
    private let holdings = Event(0)
    private let asked = Mutex<[String]>([])
    private let bodies: @Sendable (String) -> String
    private let vary: String?

    /// - Parameters:
    ///   - vary: what its responses vary by.
    ///   - bodies: what the origin has, by path.
    init(
        vary: String? = nil, _ bodies: @escaping @Sendable (String) -> String = { "<\($0)>" }
    ) {
        self.vary = vary
        self.bodies = bodies
    }

    /// The paths that the origin was asked for.
    var fetches: [String] { self.asked.withLock { $0 } }

    /// Waits until so many requests for paths that begin with `/held` have come.
    func holds(_ count: Int) async throws {
        try await self.holdings.wait(for: "request \(count) to be held") { $0 >= count }
    }

    /// Answers those that are held.
    func release() {
        let answers = self.held.withLock { held in
            defer { held = [] }
            return held
        }
        for answer in answers { answer() }
    }

    func advance(_ time: Duration) { self.clock.time.withLock { $0 = $0 + time } }

    func session() -> Session {
        Session(
            configuration: SessionConfiguration(),
            store: MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))), upstream: self,
            clock: self.clock, timers: NoTimers())
    }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        let path = request.uri.pathAndQuery
        self.asked.withLock { $0.append(path) }
        guard path.hasPrefix("/held") else {
            self.answer(path, receiver)
            return Fetched()
        }
        self.held.withLock { $0.append { self.answer(path, receiver) } }
        self.holdings.change { $0 += 1 }
        return Fetched()
    }

    private func answer(_ path: String, _ receiver: any UpstreamReceiver) {
        let content = ByteBuffer(string: self.bodies(path))
        var fields: Fields = [
            "Cache-Control": "max-age=30", "ETag": "\"t\"",
            "Date": HTTPDate.format(self.clock.now()),
        ]
        if let vary = self.vary { fields.append("Vary", vary) }
        _ = receiver.upstream(
            head: ResponseHead(status: .ok, fields: fields),
            bodyLength: .known(UInt64(content.readableBytes)),
            connection: UpstreamConnectionFacts(remoteAddress: "192.0.2.1:80"))
        _ = receiver.upstream(piece: content)
        receiver.upstream(finished: Fields())
    }
}

/// Access rules that a test replaces.
final class ReplaceableAccess: AccessPolicy {
    private let denied = Mutex(false)
    private let replaced = Atomic<UInt64>(0)
    let judged = Atomic<Int>(0)

    var generation: UInt64? { self.replaced.load(ordering: .acquiring) }

    func deny() {
        self.denied.withLock { $0 = true }
        self.replaced.add(1, ordering: .releasing)
    }

    func judge(_ query: AccessQuery) -> AccessVerdict {
        self.judged.add(1, ordering: .relaxed)
        return self.denied.withLock { $0 } ? .denied(rule: "replaced") : .allowed
    }
}
