import LarderHTTP
import NIOCore
import Synchronization

@testable import LarderProcess
@testable import URLLoading

/// A way to origins that does as a test says, at once.
final class ScriptedUpstream: Upstream {
    typealias Script = @Sendable (Request, any UpstreamReceiver, (any BodySource)?) -> Void

    let requests = Event<[Request]>([])
    private let script: Script

    init(_ script: @escaping Script) {
        self.script = script
    }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        self.requests.change { $0.append(request) }
        self.script(request, receiver, body)
        request.observer?.transfer(
            measured: TransferMeasurement(begun: Timestamp(seconds: 1_000)))
        return Fetch()
    }

    private final class Fetch: UpstreamFetch {
        func resume() {}
        func cancel() {}
    }

    /// A session's engine over this, and over a network that may not be there.
    func engine(
        _ change: (URLSessionConfiguration) -> Void = { _ in },
        connectivity: any Connectivity = ScriptedConnectivity(hasRoute: true)
    ) -> SessionEngine {
        let settings = URLSessionConfiguration.ephemeral
        settings.urlCache = nil
        change(settings)
        return SessionEngine(
            settings,
            surroundings: SessionEngine.Surroundings(
                upstream: { _ in self }, connectivity: connectivity))
    }
}

extension UpstreamReceiver {
    /// Answers with a status and a small body.
    func answer(_ status: UInt16 = 200, _ body: String = "") {
        let bytes = UInt64(body.utf8.count)
        _ = self.upstream(
            head: ResponseHead(status: StatusCode(status)), bodyLength: .known(bytes),
            connection: UpstreamConnectionFacts())
        if bytes > 0 { _ = self.upstream(piece: ByteBuffer(string: body)) }
        self.upstream(finished: Fields())
    }

    func fail(_ kind: UpstreamFailure.Kind) {
        self.upstream(failed: UpstreamFailure(kind, detail: "by the script"))
    }
}

/// A network that comes and goes as a test says.
final class ScriptedConnectivity: Connectivity {
    private struct State {
        var hasRoute: Bool
        let isInNetwork: Bool
        var watchers: [Int: @Sendable () -> Void] = [:]
        var next = 0
    }

    private let state: Mutex<State>
    let watching = Event(0)

    /// - Parameter isInNetwork: in one of other machines, though it may not lead out.
    init(hasRoute: Bool, isInNetwork: Bool = false) {
        self.state = Mutex(State(hasRoute: hasRoute, isInNetwork: isInNetwork))
    }

    var hasRoute: Bool { self.state.withLock { $0.hasRoute } }
    var hasNeighbours: Bool { self.state.withLock { $0.hasRoute || $0.isInNetwork } }

    func whenChanged(_ body: @escaping @Sendable () -> Void) -> (any ConnectivityWatch)? {
        let id = self.state.withLock { state in
            state.next += 1
            state.watchers[state.next] = body
            return state.next
        }
        self.watching.change { $0 += 1 }
        return Watch(connectivity: self, id: id)
    }

    func change(hasRoute: Bool) {
        let watchers = self.state.withLock { state in
            state.hasRoute = hasRoute
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher() }
    }

    private struct Watch: ConnectivityWatch {
        let connectivity: ScriptedConnectivity
        let id: Int

        func cancel() {
            let wasThere = self.connectivity.state.withLock { state in
                state.watchers.removeValue(forKey: self.id) != nil
            }
            if wasThere { self.connectivity.watching.change { $0 -= 1 } }
        }
    }
}
