import Foundation
import Glibc
import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

/// Upstreams that share their threads.
@Suite("Upstreams on shared threads", .timeLimit(.minutes(10)))
struct SharedThreadTests {
    /// What proc(5) says of the threads of this process whose names begin so.
    private func threads(_ prefix: String = "larder-loads-") throws -> [String] {
        let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
        return tasks.compactMap { task in
            let status = try? String(
                contentsOfFile: "/proc/self/task/\(task)/status", encoding: .utf8)
            return status.flatMap { $0.hasPrefix("Name:\t\(prefix)") ? $0 : nil }
        }
    }

    @Test(
        "run on threads with names, on which nobody's signals end",
        arguments: [("larder-loads-", true), ("larder-fetch-", false)])
    func signals(_ prefix: String, _ isShared: Bool) async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let upstream =
            isShared ? try CurlUpstream.sharing() : try CurlUpstream(TransferConfiguration())
        #expect(await upstream.answer(to: origin.request()).head?.status == .ok)
        var seen = 0
        for status in try self.threads(prefix) {
            let line = try #require(
                status.split(separator: "\n").first { $0.hasPrefix("SigBlk:\t") })
            let mask = try #require(UInt64(line.dropFirst(8), radix: 16))
            // One of another test that begins or ends: glibc blocks all then, its own signal, too.
            if mask & 1 << 31 != 0 { continue }
            seen += 1
            for signal in [SIGTERM, SIGHUP, SIGINT, SIGPIPE] {
                #expect(mask & 1 << UInt64(signal - 1) != 0, "\(signal) in \(line)")
            }
            for signal in [SIGSEGV, SIGBUS] {
                #expect(mask & 1 << UInt64(signal - 1) == 0, "\(signal) in \(line)")
            }
        }
        #expect(seen > 0)
    }

    @Test("are led to two threads, and one for FTP, however many ask for them at the same time")
    func race() async throws {
        for _ in 0..<20 {
            let threads = SharedTransferThreads(named: "racing")
            let found = try await withThrowingTaskGroup(
                of: (usual: TransferMailbox, ftp: TransferMailbox).self
            ) { group in
                for _ in 0..<8 {
                    group.addTask { (try threads.entrance().mailbox, try threads.ftpMailbox()) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(found.map { ObjectIdentifier($0.usual) }).count == 2)
            #expect(Set(found.map { ObjectIdentifier($0.ftp) }).count == 1)
            // They are not those of the process, which live as long as it does.
            for (usual, ftp) in found {
                usual.retire()
                ftp.retire()
            }
        }
    }

    @Test("end with their thread where that is not wanted, whatever it is doing")
    func retiring() async throws {
        for isAsleep in [false, true] {
            let runner = try TransferRunner(endsWithLoop: false)
            let mailbox = runner.mailbox
            let port = LoopPort(TransferConfiguration(), mailbox: mailbox)
            if isAsleep {
                // It has answered, and has nothing else to do.
                try TransferThread.start(runner, name: "larder-test")
                await withCheckedContinuation { done in
                    _ = LoopPort(TransferConfiguration(), mailbox: mailbox).shutDown {
                        done.resume()
                    }
                }
                mailbox.retire()
            } else {
                mailbox.retire()
                try TransferThread.start(runner, name: "larder-test")
            }
            // Answered as the last act of the thread, or refused as there is none.
            await withCheckedContinuation { done in
                if !port.shutDown({ done.resume() }) { done.resume() }
            }
            #expect(!mailbox.post(TransferMessage(port: port, command: .cancel(1))))
        }
    }

    @Test("cost no thread, however many they are")
    func many() async throws {
        let origin = try ScriptedOrigin.echoingTargets()
        let idle = try (0..<1000).map { _ in try CurlUpstream.sharing() }
        let busy = try (0..<200).map { _ in try CurlUpstream.sharing() }
        for upstream in busy {
            #expect(await upstream.answer(to: origin.request(.get, "/x")).text.hasSuffix(" /x"))
        }
        #expect(try self.threads().count <= 2)
        #expect(idle.allSatisfy { $0.statistics() == TransferStatistics() })
    }

    @Test(
        "keep no connection once they are many and idle, or have many", arguments: [(1, 8), (6, 3)])
    func crowded(_ origins: Int, _ loops: Int) async throws {
        let origins = try (0..<origins).map { _ in try ScriptedOrigin.echoingTargets() }
        let runner = try TransferRunner(endsWithLoop: false, loopLimit: 8)
        let entrance = GuestEntrance(runner)
        try TransferThread.start(runner, name: "larder-crowd")
        var configuration = TransferConfiguration()
        configuration.sharesThreads = true
        let upstreams = try (0..<20).map { _ in try CurlUpstream(configuration, at: entrance) }
        func ask(_ upstream: CurlUpstream) async {
            for origin in origins {
                let record = await upstream.answer(to: origin.request(.get, "/x"))
                #expect(record.text.hasSuffix(" /x"))
            }
        }
        for upstream in upstreams { await ask(upstream) }
        let kept = upstreams.map { $0.statistics().openConnections }
        // The last ones, whose loops are those that were used last.
        #expect(kept.dropLast(loops).allSatisfy { $0 == 0 })
        #expect(kept.suffix(loops).allSatisfy { $0 == origins.count })
        // Those that were let go of come again.
        await ask(upstreams[0])
        entrance.mailbox.retire()
    }

    @Test(
        "are kept with their connections by what the process may have of descriptors",
        arguments: [(0, 48), (256, 48), (1024, 51), (4096, 204), (20_000, 512), (UInt64.max, 512)])
    func limit(_ descriptors: UInt64, _ loops: Int) {
        #expect(TransferRunner.loopLimit(descriptors: descriptors) == loops)
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
        let begun = Gate()
        let origin = try ScriptedOrigin { connection in
            begun.open()
            while let head = connection.readHead(), !head.contains("/stalls") {
                connection.respond("200 OK")
            }
            _ = connection.waitForEnd()
            if connection.index < 2 { ended[connection.index].open() }
        }
        let shut = try CurlUpstream.sharing()
        let recorder = Recorder()
        let fetch = shut.fetch(origin.request(.get, "/stalls"), body: nil, receiver: recorder)
        await begun.passed()
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
