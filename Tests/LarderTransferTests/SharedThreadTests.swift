import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

/// Upstreams that share their threads.
@Suite("Upstreams on shared threads", .timeLimit(.minutes(10)))
struct SharedThreadTests {
    /// The threads of this process that shared upstreams run on.
    private func threads() throws -> Int {
        let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
        return tasks.count { task in
            let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
            return name?.hasPrefix("larder-loads-") == true
        }
    }

    @Test("cost no thread, and no connection once they are many and idle")
    func many() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let idle = try (0..<1000).map { _ in try CurlUpstream.sharing() }
        let busy = try (0..<200).map { _ in try CurlUpstream.sharing() }
        for upstream in busy {
            #expect(await upstream.answer(to: origin.request(.get, "/x")).text.hasSuffix(" /x"))
        }
        #expect(try self.threads() <= 2)
        #expect(busy.reduce(0) { $0 + $1.statistics().openConnections } <= 100)
        // Those that were let go of come again.
        for upstream in busy.prefix(20) {
            #expect(await upstream.answer(to: origin.request(.get, "/y")).text.hasSuffix(" /y"))
        }
        #expect(idle.allSatisfy { $0.statistics() == TransferStatistics() })
    }

    @Test("keep connections of their own")
    func pools() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let (one, other) = (try CurlUpstream.sharing(), try CurlUpstream.sharing())
        for expected in ["0 /", "0 /"] {
            #expect(await one.answer(to: origin.request()).text == expected)
        }
        #expect(await other.answer(to: origin.request()).text == "1 /")
        #expect(await one.answer(to: origin.request()).text == "0 /")
    }

    @Test("close their connections when they are shut down or dropped, and fail what runs")
    func ends() async throws {
        let ended = [Gate(), Gate()]
        let origin = try ScriptedOrigin { connection in
            while let head = connection.readHead(), !head.contains("/stalls") {
                connection.respond("200 OK")
            }
            _ = connection.waitForEnd()
            if connection.index < 2 { ended[connection.index].open() }
        }
        let shut = try CurlUpstream.sharing()
        let recorder = Recorder()
        let fetch = shut.fetch(origin.request(.get, "/stalls"), body: nil, receiver: recorder)
        while origin.connectionCount == 0 { await Task.yield() }
        let gate = Gate()
        shut.shutdown { gate.open() }
        await gate.passed()
        await ended[0].passed()
        #expect(await recorder.end().failure == TransferLoop.shuttingDown)
        fetch.cancel()
        let late = await shut.answer(to: origin.request())
        #expect(late.failure?.kind == .proxyInternalError)
        let again = Gate()
        shut.shutdown { again.open() }
        await again.passed()

        var dropped: CurlUpstream? = try CurlUpstream.sharing()
        #expect(await dropped?.answer(to: origin.request()).head?.status == .ok)
        dropped = nil
        await ended[1].passed()
        #expect(recorder.record.violations == [])
    }

    @Test("that never fetched are shut down at once, and fetch no more")
    func unused() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let upstream = try CurlUpstream.sharing()
        let gate = Gate()
        upstream.shutdown { gate.open() }
        await gate.passed()
        #expect(await upstream.answer(to: origin.request()).failure != nil)
        #expect(origin.connectionCount == 0)
    }

    @Test("do not wait for one that has an endless body and a thousand fetches in hand")
    func fairness() async throws {
        let flood = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while connection.write([UInt8](repeating: 0x78, count: 65_536)) {}
        }
        let origin = try ScriptedOrigin.echoingTargets()
        // One on each thread.
        let busy = try (0..<2).map { _ in try CurlUpstream.sharing { $0.connectionsPerHost = 4 } }
        let calm = try (0..<2).map { _ in try CurlUpstream.sharing() }
        var fetches: [any UpstreamFetch] = []
        for upstream in busy {
            for _ in 0..<1000 {
                let sink = Sink()
                fetches.append(upstream.fetch(flood.request(), body: nil, receiver: sink))
            }
        }
        for upstream in calm {
            for _ in 0..<20 {
                #expect(await upstream.answer(to: origin.request()).head?.status == .ok)
            }
        }
        for fetch in fetches { fetch.cancel() }
        for upstream in busy {
            await withCheckedContinuation { done in upstream.shutdown { done.resume() } }
            #expect(upstream.statistics().openTransfers == 0)
        }
    }

    @Test("are dropped in the midst of fetches that connect, wait and receive, and harm nobody")
    func dropped() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        for _ in 0..<5 {
            let flood = try ScriptedOrigin { connection in
                _ = connection.readHead()
                connection.write("HTTP/1.1 200 OK\r\n\r\n")
                while connection.write([UInt8](repeating: 0x78, count: 65_536)) {}
            }
            let busy = try (0..<2).map { _ in try CurlUpstream.sharing() }
            for upstream in busy {
                for _ in 0..<200 {
                    let fetch = upstream.fetch(flood.request(), body: nil, receiver: Sink())
                    fetch.cancel()
                    _ = upstream.fetch(flood.request(), body: nil, receiver: Sink())
                }
            }
        }
        for _ in 0..<4 {
            let next = try CurlUpstream.sharing()
            #expect(await next.answer(to: origin.request()).text.hasSuffix(" /"))
        }
    }

    @Test("end their fetches exactly once under a race of shutdown, cancel and start")
    func races() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        for round in 0..<100 {
            let upstream = try CurlUpstream.sharing()
            let recorders = (0..<8).map { _ in Recorder() }
            await withTaskGroup(of: Void.self) { group in
                for (index, recorder) in recorders.enumerated() {
                    group.addTask {
                        let fetch = upstream.fetch(
                            origin.request(), body: nil, receiver: recorder)
                        if (index + round) % 3 == 0 { fetch.cancel() }
                    }
                }
                group.addTask {
                    await withCheckedContinuation { continuation in
                        upstream.shutdown { continuation.resume() }
                    }
                }
            }
            for (index, recorder) in recorders.enumerated() where (index + round) % 3 != 0 {
                #expect(await recorder.end().violations == [])
            }
        }
    }
}

/// Takes everything and keeps nothing.
private final class Sink: UpstreamReceiver {
    func upstream(informational head: ResponseHead) {}
    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand { .more }
    func upstream(piece: ByteBuffer) -> UpstreamDemand { .more }
    func upstream(finished trailers: Fields) {}
    func upstream(failed failure: UpstreamFailure) {}
}
