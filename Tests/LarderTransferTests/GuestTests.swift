import Foundation
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderTransfer

/// Fetches that begin on the threads of those who want them.
@Suite("Guests of a sleeping loop", .timeLimit(.minutes(10)))
struct GuestTests {
    @Test("send what finds a connection at once, and leave the rest to the thread")
    func begun() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let upstream = try CurlUpstream.sharing()
        #expect(await upstream.answer(to: origin.request(.get, "/first")).text == "0 /first")
        #expect(upstream.statistics().begunByGuests == 0)
        // The thread may be on its way to sleep still, or be kept awake by other tests' floods: then
        // all go by way of the mailbox, and are answered just so.
        var count = 0
        while upstream.statistics().begunByGuests < 20, count < 1_000 {
            count += 1
            let answer = await upstream.answer(to: origin.request(.get, "/\(count)"))
            #expect(answer.text.hasSuffix(" /\(count)"))
        }
        // Where other tests' upstreams have many, one that is idle may have to go.
        #expect(origin.connectionCount < 20)
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
