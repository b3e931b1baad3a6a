import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

/// What comes together while the loop's thread is busy is seen in the order that does no harm.
@Suite("A loop that was held up", .timeLimit(.minutes(10)))
struct HeldLoopTests {
    @Test("does not ask libcurl to go on with what that has finished")
    func content() async throws {
        let holder = HoldingReceiver()
        let written = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            _ = connection.read(3)
            connection.write("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\n")
            guard holder.isHeld.block() else { return }
            connection.write("long")
            written.open()
            _ = connection.waitForEnd()
        }
        let content = ScriptedContent([.piece(ByteBuffer(string: "abc"))])
        try await withUpstream { upstream in
            let fetch = upstream.fetch(
                origin.request(.post, length: .known(1 << 40)), body: content, receiver: holder)
            await written.passed()
            content.push(.piece(ByteBuffer(string: "def")))
            holder.goesOn.open()
            let record = await holder.recorder.end()
            #expect(record.text == "long")
            #expect(record.failure == nil)
            _ = fetch
        }
    }

    @Test("takes what has come meanwhile before it says that it came too late")
    func deadline() async throws {
        let holder = HoldingReceiver()
        let mayWrite = Gate()
        let written = Gate()
        let origin = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
            guard mayWrite.block() else { return }
            connection.write("long")
            written.open()
            guard holder.hasMoved.block() else { return }
            connection.write("long")
            _ = connection.waitForEnd()
        }
        var limits = TransferConfiguration()
        limits.responseTimeout = .milliseconds(300)
        let clock = try CurlUpstream(limits)
        try await withUpstream({ $0.stallTimeout = .milliseconds(300) }) { upstream in
            let fetch = upstream.fetch(origin.request(), body: nil, receiver: holder)
            await holder.isHeld.passed()
            try await clock.letTimesPass()
            mayWrite.open()
            await written.passed()
            holder.goesOn.open()
            let record = await holder.recorder.end()
            #expect(record.text == "longlong")
            #expect(record.failure == nil)
            _ = fetch
        }
        let ended = Gate()
        clock.shutdown { ended.open() }
        await ended.passed()
    }

    @Test("has a name wait for its turn to be looked up, and an address not")
    func names() async throws {
        let holder = HoldingReceiver()
        let origin = try ScriptedOrigin.echoingTargets()
        // libcurl knows the address of the first: 127.1 is the same to it.
        let other = try ScriptedOrigin.echoingTargets()
        // A place is free again when a look-up must be over; these wait for longer.
        try await withUpstream({
            $0.nameLookups = 1
            $0.resolveTimeout = .milliseconds(50)
        }) { upstream in
            var fetches = [upstream.fetch(origin.request(), body: nil, receiver: holder)]
            await holder.isHeld.passed()
            let (named, plain) = (Recorder(), Recorder())
            // Whether that is answered soon, late or never: libcurl asks for both in one turn.
            for (host, recorder) in [("larder.invalid", Recorder()), ("127.1", named)] {
                var request = other.request(.get, "/named")
                request.uri.host = host
                request.transfer.idleTimeout = .seconds(60)
                fetches.append(upstream.fetch(request, body: nil, receiver: recorder))
            }
            fetches.append(
                upstream.fetch(origin.request(.get, "/plain"), body: nil, receiver: plain))
            holder.goesOn.open()
            #expect(await plain.end().text.hasSuffix(" /plain"))
            let record = await named.end()
            #expect(record.text.hasSuffix(" /named"))
            #expect(record.violations.isEmpty)
            #expect(upstream.statistics().lookupsDelayed == 1)
            _ = fetches
        }
    }
}

/// Holds the loop's thread at the head until the test lets it go on.
private final class HoldingReceiver: UpstreamReceiver {
    let recorder = Recorder()
    let isHeld = Gate()
    let goesOn = Gate()
    /// Opened by the first piece.
    let hasMoved = Gate()

    func upstream(informational head: ResponseHead) {
        self.recorder.upstream(informational: head)
    }

    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand {
        self.isHeld.open()
        _ = self.goesOn.block()
        return self.recorder.upstream(head: head, bodyLength: bodyLength, connection: connection)
    }

    func upstream(piece: ByteBuffer) -> UpstreamDemand {
        defer { self.hasMoved.open() }
        return self.recorder.upstream(piece: piece)
    }

    func upstream(finished trailers: Fields) { self.recorder.upstream(finished: trailers) }

    func upstream(failed failure: UpstreamFailure) { self.recorder.upstream(failed: failure) }
}
