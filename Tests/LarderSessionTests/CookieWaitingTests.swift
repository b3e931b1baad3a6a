import LarderCookies
import LarderHTTP
import Synchronization
import Testing

@testable import LarderSession

@Suite("Who waits for cookies to be kept", .timeLimit(.minutes(1)))
struct CookieWaitingTests {
    @Test("goes on where what was to be written has come to nothing before the writing began")
    func comeToNothing() async {
        let now = Timestamp(seconds: 1_700_000_000)
        let cookie = Cookie(
            name: Array("n".utf8), value: [], domain: "a.test", isHostOnly: true, creation: now,
            expiry: now + .seconds(99))
        let cookies = SessionCookies(
            CookieHandling(accept: .always), storage: ScriptedCookieStorage(),
            suffixes: TopLevelSuffixes())
        let starts = cookies.state.withLock { state in
            defer { _ = cookies.note([.removed(cookie.identity)], in: &state) }
            return cookies.note([.stored(cookie)], in: &state)
        }
        #expect(starts)
        let result = await withCheckedContinuation { continuation in
            cookies.state.withLock { state in
                let waiter = SessionCookies.Waiter(
                    turn: state.backlog.last, continuation: continuation)
                state.waiters.append(waiter)
            }
            cookies.startWriting()
        }
        #expect(throws: Never.self) { try result.get() }
        #expect(cookies.state.withLock { !$0.isWriting })
    }

    @Test("a flush ends where what had failed is not wanted any more")
    func flushOfNothing() async throws {
        let now = Timestamp(seconds: 1_700_000_000)
        let cookie = Cookie(
            name: [0x61], value: [], domain: "a.test", isHostOnly: true, creation: now,
            expiry: now + .seconds(99))
        let storage = ScriptedCookieStorage()
        let cookies = SessionCookies(
            CookieHandling(accept: .always), storage: storage, suffixes: TopLevelSuffixes())
        storage.stop()
        storage.failOnce(CookieStorageError(.full, "no space left"))
        _ = cookies.state.withLock { cookies.note([.stored(cookie)], in: &$0) }
        cookies.startWriting()
        await storage.called(1)
        let flushed = Task.immediate { try await cookies.flush() }
        _ = cookies.state.withLock { cookies.note([.removed(cookie.identity)], in: &$0) }
        storage.go()
        try await flushed.value
        #expect(storage.calls == 1 && storage.held.isEmpty && cookies.counters().unkept == 0)
    }
}
