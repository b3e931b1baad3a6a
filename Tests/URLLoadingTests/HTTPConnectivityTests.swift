import Foundation
import LarderHTTP
import LarderTransfer
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Waiting for connectivity (§2)")
struct HTTPConnectivityTests {
    /// Unroutable until the network is there.
    private func upstream(_ connectivity: ScriptedConnectivity) -> ScriptedUpstream {
        ScriptedUpstream { _, receiver, body in
            guard connectivity.hasRoute else { return receiver.fail(.destinationIPUnroutable) }
            guard let body else { return receiver.answer(200, "there") }
            body.attach {}
            while case .piece = body.next() {}
            receiver.answer(200, "taken")
        }
    }

    @Test(
        "a load without it fails at once: there is no network (-1009), unless its time was up",
        arguments: [
            (.destinationIPUnroutable, .notConnectedToInternet),
            (.dnsError, .notConnectedToInternet), (.dnsTimeout, .timedOut),
            (.connectionRefused, .cannotConnectToHost),
        ] as [(UpstreamFailure.Kind, URLError.Code)])
    func failing(kind: UpstreamFailure.Kind, code: URLError.Code) async throws {
        let upstream = ScriptedUpstream { _, receiver, _ in receiver.fail(kind) }
        let engine = upstream.engine(connectivity: ScriptedConnectivity(hasRoute: false))
        let heard = try await engine.heard("http://origin.test/")
        #expect(heard.calls == ["failed", "measured"])
        #expect(heard.error?.code == code)
    }

    @Test(
        "a name that is not found, on a machine with routes, is just that (-1003)",
        arguments: [true, false], [true, false])
    func nameNotFound(hasRoute: Bool, waits: Bool) async throws {
        let upstream = ScriptedUpstream { _, receiver, _ in receiver.fail(.dnsError) }
        let engine = upstream.engine(
            { $0.waitsForConnectivity = waits },
            connectivity: ScriptedConnectivity(hasRoute: hasRoute, isInNetwork: true))
        let heard = try await engine.heard("http://origin.test/")
        #expect(heard.calls == ["failed", "measured"])
        #expect(heard.error?.code == .cannotFindHost)
    }

    @Test("an address beyond a network that does not lead out has no way there (-1009)")
    func beyond() async throws {
        let upstream = ScriptedUpstream { _, receiver, _ in
            receiver.fail(.destinationIPUnroutable)
        }
        let engine = upstream.engine(
            connectivity: ScriptedConnectivity(hasRoute: false, isInNetwork: true))
        let heard = try await engine.heard("http://192.0.2.1/")
        #expect(heard.error?.code == .notConnectedToInternet)
    }

    @Test("a load waits, says so once, and goes on when there is a route, with its content")
    func waiting() async throws {
        let connectivity = ScriptedConnectivity(hasRoute: false)
        let upstream = self.upstream(connectivity)
        let engine = upstream.engine({ $0.waitsForConnectivity = true }, connectivity: connectivity)
        let probe = LoadProbe()
        var asked = request("http://192.0.2.1/")
        asked.httpMethod = "PUT"
        var order = LoadOrder(request: asked, task: URLSessionTask())
        let body = PiecesSource("a", "b")
        order.body = UploadSource(source: body, length: 2)
        let load = engine.load(order, observer: probe)
        #expect(probe.heard.value.calls == ["waits"])
        #expect(!body.isCancelled.value)
        // Something changes, and still nothing leads out.
        connectivity.change(hasRoute: false)
        #expect(upstream.requests.value.count == 1)
        connectivity.change(hasRoute: true)
        let heard = try await probe.ended()
        #expect(heard.calls == ["waits", "answered", "measured"])
        #expect(heard.text == "taken")
        #expect(upstream.requests.value.count == 2)
        #expect(connectivity.watching.value == 0)
        load.cancel()
        #expect(probe.heard.value.calls.count == 3)
    }

    @Test("a load that is cancelled while it waits watches no more")
    func cancelled() async throws {
        let connectivity = ScriptedConnectivity(hasRoute: false)
        let upstream = self.upstream(connectivity)
        let engine = upstream.engine({ $0.waitsForConnectivity = true }, connectivity: connectivity)
        let probe = LoadProbe()
        let load = engine.load(
            LoadOrder(request: request("http://192.0.2.1/"), task: URLSessionTask()),
            observer: probe)
        #expect(connectivity.watching.value == 1)
        load.cancel()
        #expect(connectivity.watching.value == 0)
        connectivity.change(hasRoute: true)
        #expect(probe.heard.value.calls == ["waits", "measured"])
        #expect(upstream.requests.value.count == 1)
    }

    @Test("a task that is suspended while it waits sends nothing before it goes on (§3.1)")
    func suspended() async throws {
        let connectivity = ScriptedConnectivity(hasRoute: false)
        let upstream = self.upstream(connectivity)
        let engine = upstream.engine({ $0.waitsForConnectivity = true }, connectivity: connectivity)
        let delegate = RecordingDelegate()
        let session = URLSession(
            .ephemeral, delegate: delegate, queue: nil, loaders: EngineLoaders(engine: engine))
        let task = session.dataTask(with: request("http://192.0.2.1/"))
        task.resume()
        #expect(connectivity.watching.value == 1)
        task.suspend()
        connectivity.change(hasRoute: true)
        #expect(upstream.requests.value.count == 1)
        task.resume()
        try await delegate.completion()
        #expect(task.error == nil && upstream.requests.value.count == 2)
        #expect(connectivity.watching.value == 0)
        session.invalidateAndCancel()
    }

    @Test("a host that no route leads to, on a machine with routes, is no reason to wait (-1004)")
    func otherReason() async throws {
        let upstream = ScriptedUpstream { _, receiver, _ in
            receiver.fail(.destinationIPUnroutable)
        }
        let engine = upstream.engine({ $0.waitsForConnectivity = true })
        let heard = try await engine.heard("http://192.0.2.1/")
        #expect(heard.calls == ["failed", "measured"])
        #expect(heard.error?.code == .cannotConnectToHost)
    }

    @Test(
        "a load that would wait where nobody tells of routes fails as one that does not wait",
        arguments: [
            (.destinationIPUnroutable, .notConnectedToInternet),
            (.dnsError, .notConnectedToInternet), (.dnsTimeout, .timedOut),
        ] as [(UpstreamFailure.Kind, URLError.Code)])
    func waitingInVain(kind: UpstreamFailure.Kind, code: URLError.Code) async throws {
        let upstream = ScriptedUpstream { _, receiver, _ in receiver.fail(kind) }
        let engine = upstream.engine(
            { $0.waitsForConnectivity = true }, connectivity: SilentConnectivity())
        let heard = try await engine.heard("http://origin.test/")
        #expect(heard.calls == ["waits", "failed", "measured"])
        #expect(heard.error?.code == code)
    }

    @Test(
        "a connection of a WebSocket's or a stream's fails as a load does without a network",
        arguments: [
            (.destinationIPUnroutable, false, .notConnectedToInternet),
            (.dnsError, false, .notConnectedToInternet), (.dnsError, true, .cannotFindHost),
            (.dnsTimeout, false, .timedOut), (.connectionRefused, false, .cannotConnectToHost),
        ] as [(UpstreamFailure.Kind, Bool, URLError.Code)])
    func connecting(kind: UpstreamFailure.Kind, isInNetwork: Bool, code: URLError.Code) {
        let engine = SessionEngine(
            .ephemeral,
            surroundings: SessionEngine.Surroundings(
                upstream: { _ in RefusingDialer(kind: kind) },
                connectivity: ScriptedConnectivity(hasRoute: false, isInNetwork: isInNetwork)))
        let codes = Event<[URLError.Code?]>([])
        _ = engine.connect(host: "origin.test", port: 80, for: nil) { result in
            switch result {
            case .success: codes.change { $0.append(nil) }
            case .failure(let error): codes.change { $0.append(error.code) }
            }
        }
        #expect(codes.value == [code])
    }

    @Test("who has a way out has neighbours, as the kernel tells")
    func neighbours() {
        let monitor = RouteMonitor()
        #expect(!monitor.hasRoute || monitor.hasNeighbours)
    }

    @Test("the kernel is watched while somebody waits, and can be left at any time")
    func kernel() {
        let monitor = RouteMonitor()
        let first = monitor.whenChanged {}
        let second = monitor.whenChanged {}
        #expect(first != nil && second != nil)
        first?.cancel()
        first?.cancel()
        second?.cancel()
        #expect(monitor.whenChanged {} != nil)
    }
}

/// No network, and nobody who would say that there is one again.
private struct SilentConnectivity: Connectivity {
    var hasRoute: Bool { false }
    var hasNeighbours: Bool { false }

    func whenChanged(_ body: @escaping @Sendable () -> Void) -> (any ConnectivityWatch)? { nil }
}

/// A way to origins on which no connection comes about.
private struct RefusingDialer: Upstream, SocketDialer {
    let kind: UpstreamFailure.Kind

    private final class Refused: UpstreamFetch, TunnelDial {
        func resume() {}
        func cancel() {}
    }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        receiver.fail(self.kind)
        return Refused()
    }

    func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void
    ) -> any TunnelDial {
        completion(.failure(UpstreamFailure(self.kind, detail: "by the script")))
        return Refused()
    }
}

/// A session's loads over an engine of a test's.
private struct EngineLoaders: SessionLoaders {
    let engine: SessionEngine

    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)? { self.engine }
    func invalidate() {}
    func reset(done: @escaping @Sendable () -> Void) { done() }
    func flush(done: @escaping @Sendable () -> Void) { done() }
}
