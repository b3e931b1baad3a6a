import Foundation
import LarderHTTP
import LarderSession
import LarderStore
import LarderTransfer
import Synchronization

/// What loads http, https and ftp for one `URLSession`.
///
/// ```
/// made ─▶ (first load) running ─▶ reset | flush ─▶ (next load) running anew ─▶ invalidated
/// ```
///
/// It costs nothing until the first load. Connections, and what was said about servers, are its own;
/// cache, cookies and credentials are those of the configuration. Any thread may use it; nothing here
/// blocks.
final class SessionEngine: Loader {
    private struct State {
        var running: LoadingEngine?
        var isInvalidated = false
    }

    /// What a test puts in the place of the network.
    struct Surroundings: Sendable {
        var upstream: @Sendable (TransferConfiguration) throws(TransferError) -> any Upstream = {
            (configuration) throws(TransferError) in try CurlUpstream(configuration)
        }
        var connectivity: any Connectivity = RouteMonitor.shared
        var clock: any WallClock = LoadingEngine.clock
    }

    private let settings: URLSessionConfiguration
    private let surroundings: Surroundings
    private let state = Mutex(State())

    /// - Parameter settings: a copy that nobody changes any more.
    init(_ settings: URLSessionConfiguration, surroundings: Surroundings = Surroundings()) {
        self.settings = settings
        self.surroundings = surroundings
    }

    /// Whether it knows a scheme, which is in lower case.
    static func knows(_ scheme: String) -> Bool {
        scheme == "http" || scheme == "https" || scheme == "ftp"
    }

    func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load {
        do throws(URLError) {
            let load = HTTPLoad(try self.running(), order, observer)
            load.begin()
            return load
        } catch {
            order.body?.source.cancel()
            return FailedLoad(error.completed(for: order.request.url), observer)
        }
    }

    /// Connects to a server; see `SessionLoaders`.
    func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, URLError>) -> Void
    ) -> (any TunnelDial)? {
        do throws(URLError) {
            let engine = try self.running()
            guard let dialer = engine.dialer else { throw URLError(.unsupportedURL) }
            return dialer.connect(host: host, port: port, for: scheme) { result in
                // The engine, and with it the loop that dials, lives until then.
                withExtendedLifetime(engine) {}
                completion(
                    result.mapError {
                        URLError(
                            $0, shown: LoadTrust(),
                            lacksRoute: engine.connectivity.lacksRoute(for: $0))
                    })
            }
        } catch {
            completion(.failure(error))
            return nil
        }
    }

    /// What is running, made where nothing is.
    private func running() throws(URLError) -> LoadingEngine {
        let (running, isInvalidated) = self.state.withLock { ($0.running, $0.isInvalidated) }
        if isInvalidated { throw URLError(.cancelled) }
        if let running { return running }
        // Not under the lock: it may start a thread.
        let made: LoadingEngine
        do throws(TransferError) {
            made = try LoadingEngine(self.settings, self.surroundings)
        } catch {
            throw URLError(.unknown, userInfo: [NSUnderlyingErrorKey: error])
        }
        return self.state.withLock { state in
            if let other = state.running { return other }
            if !state.isInvalidated { state.running = made }
            return made
        }
    }

    /// Lets go of everything; loads that are under way go on.
    func invalidate() {
        let running = self.state.withLock { state in
            state.isInvalidated = true
            return state.running.take()
        }
        // Its last reference, perhaps, and not under the lock.
        withExtendedLifetime(running) {}
    }

    /// Has later loads use new connections, and forgets what was said about servers: for `reset` and
    /// `flush`.
    func renewConnections() {
        let running = self.state.withLock { $0.running.take() }
        withExtendedLifetime(running) {}
    }
}

/// A load that could not even begin.
private final class FailedLoad: Load {
    init(_ error: URLError, _ observer: any LoadObserver) {
        observer.load(failed: error)
        observer.load(measured: TransactionMeasurement())
    }

    func cancel() {}
}
