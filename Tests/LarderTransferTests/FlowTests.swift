import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderTransfer

@Suite("The flow of a response", .timeLimit(.minutes(10)))
struct FlowTests {
    private static let length = 64 << 20

    @Test("stops when the receiver pauses, and goes on when it resumes")
    func backPressure() async throws {
        let taken = Mutex(0)
        let stuck = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(Self.length)\r\n\r\n")
            let piece = [UInt8](repeating: 0x62, count: 65_536)
            let first = connection.writeUntilStuck(piece, most: Self.length, milliseconds: 300)
            taken.withLock { $0 = first }
            stuck.open()
            _ = connection.write([UInt8](repeating: 0x62, count: Self.length - first))
            _ = connection.waitForEnd()
        }
        try await withUpstream { upstream in
            let recorder = Recorder(pausesAfter: 1)
            let fetch = upstream.fetch(origin.request(), body: nil, receiver: recorder)
            await stuck.passed()
            // What was taken lies in the kernel's buffers on both sides, but for our own bound.
            #expect(taken.withLock { $0 } < 16 << 20)
            #expect(recorder.record.body.readableBytes <= Outbox.pieceSize)
            #expect(recorder.record.failure == nil)
            recorder.wantAll()
            fetch.resume()
            let record = await recorder.end()
            #expect(record.body.readableBytes == Self.length)
            #expect(record.largestPiece <= Outbox.pieceSize)
            #expect(record.violations.isEmpty)
        }
    }

    @Test("is not timed out for its receiver's pause")
    func pauseIsNoStall() async throws {
        let length = 1 << 20  // More than is held for a receiver, less than the kernel's buffers.
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            connection.write([UInt8](repeating: 0x62, count: length))
            _ = connection.waitForEnd()
        }
        let silent = try ScriptedOrigin { _ = $0.waitForEnd() }
        try await withUpstream({
            $0.stallTimeout = .milliseconds(200)
            $0.responseTimeout = .milliseconds(200)
        }) { upstream in
            let recorder = Recorder(pausesAfter: 1)
            let fetch = upstream.fetch(origin.request(), body: nil, receiver: recorder)
            await recorder.wait { $0.body.readableBytes > 0 }
            // Exchanges that run into the same limit are the clock of this test.
            for _ in 0..<2 {
                #expect(await upstream.answer(to: silent.request()).failure != nil)
            }
            #expect(recorder.record.failure == nil)
            recorder.wantAll()
            fetch.resume()
            #expect(await recorder.end().body.readableBytes == length)
        }
    }

    @Test("can be paused at the head and after every piece, resumed before or after")
    func pauseEachPiece() async throws {
        let length = 3_000_000
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "2710\r\n" + String(repeating: "c", count: 10_000) + "\r\n"
            for _ in 0..<(length / 10_000) { connection.write(chunk) }
            connection.write("0\r\n\r\n")
            _ = connection.waitForEnd()
        }
        try await withUpstream { upstream in
            let recorder = Recorder(pausesAfter: 0)
            let fetch = upstream.fetch(origin.request(), body: nil, receiver: recorder)
            var record = await recorder.wait { $0.head != nil }
            while !record.isOver {
                let have = record.body.readableBytes
                fetch.resume()  // Perhaps before the pause that it is meant for has arrived.
                recorder.wantUntil(have + 1)
                fetch.resume()
                record = await recorder.wait { $0.isOver || $0.body.readableBytes > have }
            }
            #expect(record.body.readableBytes == length)
            #expect(record.failure == nil)
        }
    }

    @Test("of a short response is over for the connection while the receiver pauses")
    func shortResponseFreesItsConnection() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await withUpstream({
            $0.connectionsPerHost = 1
            $0.stallTimeout = .milliseconds(100)
        }) { upstream in
            let paused = Recorder(pausesAfter: 0)
            let fetch = upstream.fetch(origin.request(), body: nil, receiver: paused)
            await paused.wait { $0.head != nil }
            #expect(await upstream.answer(to: origin.request()).text == "ok")
            #expect(paused.record.body.readableBytes == 0)
            paused.wantAll()
            fetch.resume()
            #expect(await paused.end().text == "ok")
        }
    }

    @Test("that nobody waits for ends for another that needs its connection, whichever comes first")
    func endsForAnother() async throws {
        let silent = Gate()
        let origin = try ScriptedOrigin { connection in
            guard let head = connection.readHead() else { return }
            if head.hasPrefix("GET /silent") {
                silent.open()
                _ = connection.waitForEnd()
            } else {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        for offersFirst in [true, false] {
            try await withUpstream({ $0.connectionsPerHost = 1 }) { upstream in
                let held = Mutex<(any UpstreamFetch)?>(nil)
                let asked = Gate()
                let deserted = Recorder(ends: {
                    held.withLock { $0 }?.cancel()
                    asked.open()
                    return true
                })
                let fetch = upstream.fetch(
                    origin.request(.get, "/silent"), body: nil, receiver: deserted)
                held.withLock { $0 = fetch }
                await silent.passed()
                if offersFirst { fetch.mayEndForAnother() }
                let waiting = Recorder()
                _ = upstream.fetch(origin.request(), body: nil, receiver: waiting)
                if !offersFirst { fetch.mayEndForAnother() }
                #expect(await waiting.end().text == "ok")
                await asked.passed()
                #expect(!deserted.record.isOver)
            }
        }
    }

    enum Moment: CaseIterable, Sendable {
        case atOnce, queued, beforeHead, insideHead, atHead, insideBody, paused, uploading
    }

    @Test(
        "ends with cancel at any moment: nothing is heard, the connection closed",
        arguments: Moment.allCases)
    func cancel(_ moment: Moment) async throws {
        let reached = Gate()
        let closed = Gate()
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            switch moment {
            case .atOnce, .queued, .beforeHead, .uploading: break
            case .insideHead: connection.write("HTTP/1.1 200 OK\r\nX-A:")
            case .atHead: connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
            case .insideBody, .paused:
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            }
            reached.open()
            if connection.waitForEnd() { closed.open() }
        }
        try await withUpstream({ $0.connectionsPerHost = 1 }) { upstream in
            let recorder = Recorder(pausesAfter: moment == .paused ? 0 : nil)
            let content = moment == .uploading ? ScriptedContent() : nil
            let first =
                moment == .queued
                ? upstream.fetch(origin.request(), body: nil, receiver: Recorder()) : nil
            let fetch = upstream.fetch(
                origin.request(
                    moment == .uploading ? .post : .get,
                    length: moment == .uploading ? .known(5) : .none),
                body: content, receiver: recorder)
            if moment != .atOnce { await reached.passed() }
            switch moment {
            case .atOnce, .queued, .beforeHead, .insideHead: break
            case .uploading: await content?.wasAsked.passed()
            case .atHead, .paused: await recorder.wait { $0.head != nil }
            case .insideBody: await recorder.wait { $0.body.readableBytes == 5 }
            }
            fetch.cancel()
            fetch.cancel()
            fetch.resume()
            first?.cancel()
            if moment != .atOnce { await closed.passed() }
            await content?.wasCancelled.passed()
            #expect(!recorder.record.isOver)
            #expect(recorder.record.body.readableBytes <= 5)
        }
    }

    @Test("ends with shutdown: every fetch fails, later ones as well")
    func shutdown() async throws {
        let reached = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            reached.open()
            _ = connection.waitForEnd()
        }
        let upstream = try CurlUpstream(TransferConfiguration())
        let running = Recorder()
        let paused = Recorder(pausesAfter: 0)
        let fetches = [running, paused].map {
            upstream.fetch(origin.request(), body: nil, receiver: $0)
        }
        await running.wait { $0.body.readableBytes == 5 }
        await paused.wait { $0.head != nil }
        let ended = Gate()
        upstream.shutdown { ended.open() }
        await ended.passed()
        for recorder in [running, paused] {
            #expect(recorder.record.failure?.party == .larder)
            #expect(recorder.record.violations.filter { !$0.contains("pause") }.isEmpty)
        }
        #expect(await upstream.answer(to: origin.request()).failure?.party == .larder)
        #expect(upstream.statistics().openConnections == 0)
        #expect(upstream.statistics().openTransfers == 0)
        let again = Gate()
        upstream.shutdown { again.open() }
        await again.passed()
        _ = fetches
    }
}
