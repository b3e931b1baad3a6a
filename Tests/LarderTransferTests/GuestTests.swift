import Foundation
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderTransfer

/// Fetches that begin on the threads of those who want them.
@Suite("Guests of a sleeping loop", .timeLimit(.minutes(10)))
struct GuestTests {
    /// An upstream on a thread that nobody else keeps awake.
    private func upstream(
        _ change: (inout TransferConfiguration) -> Void = { _ in }
    ) throws -> CurlUpstream {
        let runner = try TransferRunner(endsWithLoop: true)
        let entrance = GuestEntrance(runner)
        try TransferThread.start(runner, name: "larder-guests")
        var configuration = TransferConfiguration()
        configuration.sharesThreads = true
        change(&configuration)
        return try CurlUpstream(configuration, at: entrance)
    }

    @Test("send what finds a connection at once, and leave the rest to the thread")
    func begun() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let upstream = try self.upstream()
        #expect(await upstream.answer(to: origin.request(.get, "/first")).text == "0 /first")
        #expect(upstream.statistics().begunByGuests == 0)
        // Where the thread is on its way to sleep still, it goes by way of the mailbox, and is answered
        // just so.
        var count = 0
        while upstream.statistics().begunByGuests < 20, count < 1_000 {
            count += 1
            let answer = await upstream.answer(to: origin.request(.get, "/\(count)"))
            #expect(answer.text.hasSuffix(" /\(count)"))
        }
        #expect(upstream.statistics().begunByGuests == 20)
        // Where other tests' upstreams have many, one that is idle may have to go.
        #expect(origin.connectionCount < 20)
    }

    @Test("do not come where another transfer is under way, whose timers would run with them")
    func others() async throws {
        let stalled = Gate()
        let both = DispatchGroup()
        for _ in 0..<2 { both.enter() }
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                if head.contains("/stalls") {
                    stalled.open()
                    continue
                }
                if head.contains("/both") {
                    both.leave()
                    both.wait()
                }
                connection.respond("200 OK")
            }
        }
        let upstream = try self.upstream { $0.idleConnectionLifetime = .seconds(1000) }
        async let one = upstream.answer(to: origin.request(.get, "/both"))
        async let other = upstream.answer(to: origin.request(.get, "/both"))
        #expect(await [one.failure, other.failure] == [nil, nil])
        var request = origin.request(.get, "/stalls")
        request.transfer.idleTimeout = .seconds(1000)
        let stalling = upstream.fetch(request, body: nil, receiver: Recorder())
        await stalled.passed()
        let before = upstream.statistics().begunByGuests
        for _ in 0..<100 {
            #expect(await upstream.answer(to: origin.request()).failure == nil)
        }
        #expect(upstream.statistics().begunByGuests == before)
        #expect(origin.connectionCount == 2)
        stalling.cancel()
    }

    @Test(
        "do not come where the way has TLS or a login in it",
        arguments: [
            Parent(kind: .https, host: "127.0.0.1", port: 1),
            Parent(kind: .socks5, host: "127.0.0.1", port: 1),
            Parent(kind: .http, host: "127.0.0.1", port: 1, authentication: .basic),
        ])
    func ways(_ parent: Parent) throws {
        var configuration = TransferConfiguration()
        configuration.parents = ParentRules([
            ParentRules.Rule(via: .parent(parent)) { host, _ in host == "far" }
        ])
        let runner = try TransferRunner(endsWithLoop: true)
        let port = LoopPort(configuration, mailbox: runner.mailbox)
        let loop = try runner.open(port)
        for (host, isPlain) in [("far", false), ("near", true)] {
            let order = FetchOrder(
                fetch: CurlFetch(id: 1, port: port),
                request: Request(
                    method: .get, uri: TargetURI(scheme: .http, host: host, pathAndQuery: "/")),
                content: nil, receiver: Recorder(), dial: nil)
            #expect(loop.isPlainWay(of: order) == isPlain)
        }
    }

    @Test("hear nothing before their own call has returned")
    func quiet() async throws {
        // Whatever it is that fails at once, the loop's thread tells it.
        let origin = try ScriptedOrigin.echoingTargets()
        let upstream = try CurlUpstream.sharing()
        for _ in 0..<500 {
            #expect(await upstream.answer(to: origin.request()).failure == nil)
            let own = ThreadName()
            var bad = origin.request(.get, "/")
            bad.fields.append("A b", "c")
            let fetch = upstream.fetch(bad, body: nil, receiver: own)
            await own.passed()
            #expect(own.name.withLock { $0 }.hasPrefix("larder-loads-"))
            fetch.cancel()
        }
    }

    @Test("are not kept waiting by a sleeping thread: their time is up when it is")
    func deadlines() async throws {
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                if !head.contains("/stalls") { connection.respond("200 OK") }
            }
        }
        let upstream = try CurlUpstream.sharing { $0.idleConnectionLifetime = .seconds(1000) }
        for _ in 0..<20 {
            #expect(await upstream.answer(to: origin.request()).failure == nil)
            var stalling = origin.request(.get, "/stalls")
            stalling.transfer.idleTimeout = .milliseconds(20)
            let end = await upstream.answer(to: stalling)
            #expect(end.failure?.kind == .httpResponseTimeout)
        }
    }

    @Test("come by thousands from many threads, leave early, and harm nobody")
    func races() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let upstreams = try (0..<4).map { _ in try CurlUpstream.sharing() }
        let answered = await withTaskGroup(of: Int.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var answered = 0
                    for turn in 0..<500 {
                        let upstream = upstreams[(worker + turn / 100) % upstreams.count]
                        let target = "/\(worker)/\(turn)"
                        let recorder = Recorder()
                        let fetch = upstream.fetch(
                            origin.request(.get, target), body: nil, receiver: recorder)
                        if turn % 7 == 3 {
                            fetch.cancel()
                            fetch.resume()
                            continue
                        }
                        let record = await recorder.end()
                        #expect(record.text.hasSuffix(" \(target)") && record.violations == [])
                        answered += 1
                    }
                    return answered
                }
            }
            return await group.reduce(0, +)
        }
        #expect(answered == 8 * (500 - 71))
        for upstream in upstreams {
            await withCheckedContinuation { done in upstream.shutdown { done.resume() } }
            #expect(upstream.statistics().openTransfers == 0)
        }
    }

    @Test("meet the end of their upstream at any moment, and are told")
    func shutdowns() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        for _ in 0..<200 {
            let upstream = try CurlUpstream.sharing()
            _ = await upstream.answer(to: origin.request())
            async let ended: Void = withCheckedContinuation { done in
                upstream.shutdown { done.resume() }
            }
            let recorders = (0..<4).map { _ in Recorder() }
            let fetches = recorders.map {
                upstream.fetch(origin.request(), body: nil, receiver: $0)
            }
            for recorder in recorders {
                let record = await recorder.end()
                #expect(record.violations == [])
            }
            await ended
            withExtendedLifetime(fetches) {}
            #expect(upstream.statistics().openTransfers == 0)
        }
    }

    /// Notes which thread it is told on.
    private final class ThreadName: UpstreamReceiver {
        let name = Mutex("")
        private let gate = Gate()

        func passed() async { await self.gate.passed() }

        private func note() {
            let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
            self.name.withLock { $0 = name ?? "" }
            self.gate.open()
        }

        func upstream(informational head: ResponseHead) {}

        func upstream(
            head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
        ) -> UpstreamDemand { .more }

        func upstream(piece: ByteBuffer) -> UpstreamDemand { .more }
        func upstream(finished trailers: Fields) { self.note() }
        func upstream(failed failure: UpstreamFailure) { self.note() }
    }
}
