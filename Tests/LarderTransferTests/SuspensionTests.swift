import LarderHTTP
import NIOCore
import Testing

@testable import LarderTransfer

@Suite("The time of a request that is suspended", .timeLimit(.minutes(10)))
struct SuspensionTests {
    /// An origin that stops before its response's head or in the midst of its body, and goes on when it
    /// is told to.
    private static func origin(
        headFirst: Bool, _ goOn: Gate, _ written: Gate
    ) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            _ = connection.readHead()
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"
            if headFirst { connection.write(head) }
            guard goOn.block() else { return }
            if !headFirst { connection.write(head) }
            connection.write("b")
            written.open()
            _ = connection.waitForEnd()
        }
    }

    private static func limits(_ configuration: inout TransferConfiguration) {
        configuration.stallTimeout = .milliseconds(200)
        configuration.responseTimeout = .milliseconds(200)
    }

    @Test(
        "stands still, and begins anew when that goes on",
        arguments: [true, false], [true, false])
    func standsStill(headFirst: Bool, isAnswered: Bool) async throws {
        let (goOn, written) = (Gate(), Gate())
        let origin = try Self.origin(headFirst: headFirst, goOn, written)
        let observer = RecordingObserver()
        try await withUpstream(Self.limits) { upstream in
            let recorder = Recorder()
            observer.suspend(true)
            let fetch = upstream.fetch(
                origin.request().observed(by: observer), body: nil, receiver: recorder)
            if headFirst { await recorder.wait { $0.body.readableBytes == 1 } }
            try await upstream.letTimesPass()
            #expect(recorder.record.failure == nil)
            #expect(observer.isFollowed)
            if isAnswered {
                goOn.open()
                await written.passed()
            }
            observer.suspend(false)
            let record = await recorder.end()
            if isAnswered {
                #expect(record.text == "ab" && record.failure == nil)
            } else {
                #expect(
                    record.failure?.kind
                        == (headFirst ? .connectionReadTimeout : .httpResponseTimeout))
                goOn.open()
            }
            _ = fetch
        }
    }

    @Test("that was suspended meanwhile, unnoticed, runs from when that went on")
    func resumedBefore() async throws {
        let (goOn, written) = (Gate(), Gate())
        let origin = try Self.origin(headFirst: true, goOn, written)
        let observer = RecordingObserver()
        try await withUpstream(Self.limits) { upstream in
            let recorder = Recorder()
            observer.resumedAgo = .zero
            let fetch = upstream.fetch(
                origin.request().observed(by: observer), body: nil, receiver: recorder)
            await recorder.wait { $0.body.readableBytes == 1 }
            try await upstream.letTimesPass()
            #expect(recorder.record.failure == nil && !observer.isFollowed)
            observer.resumedAgo = .seconds(1)
            let record = await recorder.end()
            #expect(record.failure?.kind == .connectionReadTimeout)
            goOn.open()
            _ = fetch
        }
    }

    @Test("stands still in a handshake, too, of which libcurl has a time of its own")
    func handshake() async throws {
        let silent = try ScriptedOrigin { _ = $0.waitForEnd() }
        var request = silent.request()
        request.uri = TargetURI(
            scheme: .https, host: "127.0.0.1", port: silent.port, pathAndQuery: "/")
        request.transfer.idleTimeout = .milliseconds(50)
        let observer = RecordingObserver()
        // libcurl's is twice the request's and a second.
        try await withUpstream({ $0.responseTimeout = .milliseconds(700) }) {
            [request = request.observed(by: observer)] upstream in
            let recorder = Recorder()
            observer.suspend(true)
            let fetch = upstream.fetch(request, body: nil, receiver: recorder)
            // What waits to learn from it whether they share a connection is not held up for ever.
            var other = request
            other.observer = nil
            let next = await upstream.answer(to: other)
            #expect(next.failure == Wait.handshake.failure(TransferConfiguration()))
            try await upstream.letTimesPass()
            #expect(!recorder.record.isOver)
            observer.suspend(false)
            let record = await recorder.end()
            #expect(record.failure == Wait.handshake.failure(TransferConfiguration()))
            _ = fetch
        }
    }

    @Test("goes on for the whole of the resource")
    func resource() async throws {
        let origin = try ScriptedOrigin { _ = $0.waitForEnd() }
        let observer = RecordingObserver()
        observer.suspend(true)
        let record = try await withUpstream({ $0.resourceTimeout = .milliseconds(200) }) {
            await $0.answer(to: origin.request().observed(by: observer))
        }
        #expect(record.failure == Wait.resource.failure(TransferConfiguration()))
    }

    @Test("is nobody's where it is cancelled")
    func cancelled() async throws {
        let origin = try ScriptedOrigin { _ = $0.waitForEnd() }
        let observer = RecordingObserver()
        try await withUpstream(Self.limits) { upstream in
            let recorder = Recorder()
            observer.suspend(true)
            let fetch = upstream.fetch(
                origin.request().observed(by: observer), body: nil, receiver: recorder)
            try await upstream.letTimesPass()
            fetch.cancel()
            await observer.isMeasured.passed()
            observer.suspend(false)
            #expect(!recorder.record.isOver)
        }
    }
}
