import LarderCookies
import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import Synchronization
import Testing

@testable import LarderEngine

@Suite("The principals of a session in memory")
struct PrincipalTableTests {
    @Test("one of whom an exchange is under way keeps its place, though nobody else holds it")
    func busy() {
        let upstream = SilentUpstream()
        let table = Self.table(upstream)
        guard let first = table.session(of: "user:a")?.session else {
            Issue.record("no session")
            return
        }
        // The exchange holds the session inside, as does one that goes on without its client.
        let client = SilentClient()
        let exchange = first.perform(
            Request(uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/")),
            body: nil, options: ExchangeOptions(), client: client)
        Self.crowd(table)
        #expect(table.session(of: "user:a")?.session === first)

        exchange.cancel()
        upstream.fail()
        withExtendedLifetime(exchange) {}
    }

    @Test("one that is idle goes when others need the room, and another takes its place later")
    func idle() {
        let table = Self.table(SilentUpstream())
        weak let first = table.session(of: "user:a")
        #expect(first != nil)
        Self.crowd(table)
        #expect(first == nil)
        #expect(table.session(of: "user:a") != nil)
        #expect(table.all.count == 2)
    }

    @Test("what is being read has come before a part ends, and its storage closes")
    func reading() async {
        let storage = SlowCookieStorage()
        let table = Self.table(SilentUpstream(), storage: storage)
        let part = table.session(of: "user:a")
        let (order, log) = AsyncStream.makeStream(of: String.self)
        let closing = Task {
            await table.close()
            log.yield("closed")
        }
        await storage.asked()
        // Time enough for an end that waits for nothing.
        for _ in 0..<1000 { await Task.yield() }
        log.yield("read")
        storage.go()
        await closing.value
        log.finish()
        var seen: [String] = []
        for await event in order { seen.append(event) }
        #expect(seen == ["read", "closed"])
        #expect(part?.cookies?.counters().storageFailures == 0)
        #expect(table.session(of: "user:a") == nil)
    }

    @Test("a credential that could not be removed from the storage is when the session ends")
    func lastSaving() async {
        let storage = FailingCredentialStorage()
        let table = Self.table(SilentUpstream(), credentials: storage)
        let credentials = table.session(of: "user:a")?.credentials
        let named = NamedCredential(
            name: "ci", kind: .bearer(Secret("t")), persistence: .permanent)
        _ = await credentials?.update { $0.set(named) }
        await table.close()
        #expect(storage.calls == [1, 1])
    }

    // MARK: Parts

    private static func crowd(_ table: PrincipalTable) {
        for index in 0..<4 { _ = table.session(of: "user:other-\(index)") }
    }

    private static func table(
        _ upstream: SilentUpstream, storage: SlowCookieStorage? = nil,
        credentials kept: FailingCredentialStorage? = nil
    ) -> PrincipalTable {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        return PrincipalTable(limit: 2) { principal in
            let cookies = SessionCookies(
                CookieHandling(), storage: storage, suffixes: PublicSuffixList.system)
            let credentials = SessionCredentials(
                CredentialStore(keepsPermanent: kept != nil), storage: kept,
                hasher: CryptoHasher())
            let session = Session(
                configuration: SessionConfiguration(), store: store, upstream: upstream,
                clock: SystemClock(), timers: NoTimers(), partition: principal, cookies: cookies,
                credentials: credentials)
            return PrincipalSession(
                principal: principal, session: session, cookies: cookies,
                credentials: credentials)
        } open: { made in
            guard storage != nil else { return made.begin() }
            Task { await made.open(at: SystemClock().now()) }
        }
    }
}

/// An origin that says nothing until it fails.
private final class SilentUpstream: Upstream {
    private final class Fetch: UpstreamFetch {
        func resume() {}
        func cancel() {}
    }

    private let receivers = Mutex<[any UpstreamReceiver]>([])

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        self.receivers.withLock { $0.append(receiver) }
        return Fetch()
    }

    func fail() {
        let receivers = self.receivers.withLock { all in
            defer { all = [] }
            return all
        }
        for receiver in receivers {
            receiver.upstream(failed: UpstreamFailure(.connectionTerminated, detail: "scripted"))
        }
    }
}

private final class SilentClient: ExchangeClient {
    func exchange(informational head: ResponseHead) {}
    func exchange(answered answer: Answer) {}
    func exchange(failed failure: ExchangeFailure) {}
}

/// Timers that never fire.
private struct NoTimers: Timers {
    private struct Token: TimerToken {
        func cancel() {}
    }

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken { Token() }
}

/// A storage that is read when the test says so.
private final class SlowCookieStorage: CookieStorage {
    private let asking = AsyncStream.makeStream(of: Void.self)
    private let going = AsyncStream.makeStream(of: Void.self)

    func load() async throws(CookieStorageError) -> [Cookie] {
        self.asking.continuation.finish()
        for await _ in self.going.stream {}
        return []
    }

    func apply(_ changes: [CookieChange]) async throws(CookieStorageError) {}

    /// Returns when somebody has begun to read.
    func asked() async { for await _ in self.asking.stream {} }
    func go() { self.going.continuation.finish() }
}

/// A storage that takes nothing, and counts the changes of each call.
private final class FailingCredentialStorage: CredentialStorage {
    private let counts = Mutex<[Int]>([])

    var calls: [Int] { self.counts.withLock { $0 } }

    func load() async throws(CredentialStorageError) -> [CredentialChange] { [] }

    func apply(_ changes: [CredentialChange]) async throws(CredentialStorageError) {
        self.counts.withLock { $0.append(changes.count) }
        throw CredentialStorageError(.full, "scripted")
    }
}
