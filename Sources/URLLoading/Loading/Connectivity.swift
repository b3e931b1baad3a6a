import CLinux
import Dispatch
import Glibc
import LarderHTTP
import Synchronization

/// Knows whether the machine is connected to a network beyond itself.
protocol Connectivity: Sendable {
    /// Whether any route leads out.
    var hasRoute: Bool { get }
    /// Whether any route leads to another machine, though none may lead out.
    ///
    /// True where nobody can say so.
    var hasNeighbours: Bool { get }
    /// Calls `body` each time something about addresses or routes has changed, on any thread.
    ///
    /// - Returns: nil where nobody can say so.
    func whenChanged(_ body: @escaping @Sendable () -> Void) -> (any ConnectivityWatch)?
}

extension Connectivity {
    /// Whether something failed because there is no network at all.
    func lacksRoute(for failure: UpstreamFailure) -> Bool {
        switch failure.kind {
        case .destinationIPUnroutable, .dnsTimeout: !self.hasRoute
        // In a network without a way out there may be who knows all names of it, and has said no.
        case .dnsError: !self.hasRoute && !self.hasNeighbours
        default: false
        }
    }
}

/// One who watches; until cancelled.
protocol ConnectivityWatch: Sendable {
    func cancel()
}

/// The machine's own routes, as the kernel tells of them (rtnetlink(7)).
///
/// There is one socket for all that watch, and none where nobody does.
final class RouteMonitor: Connectivity {
    static let shared = RouteMonitor()

    private struct State {
        var watchers: [UInt64: @Sendable () -> Void] = [:]
        var next: UInt64 = 1
        var source: Listening?
    }

    private let state = Mutex(State())

    var hasRoute: Bool { larder_has_route() != 0 }
    var hasNeighbours: Bool { larder_has_neighbours() != 0 }

    func whenChanged(_ body: @escaping @Sendable () -> Void) -> (any ConnectivityWatch)? {
        let (id, isListening) = self.state.withLock { state in
            let id = state.next
            state.next += 1
            state.watchers[id] = body
            return (id, state.source != nil)
        }
        if !isListening, !self.listen() {
            self.leave(id)
            return nil
        }
        return Watch(monitor: self, id: id)
    }

    private func listen() -> Bool {
        let descriptor = larder_open_route_socket()
        guard descriptor >= 0 else { return false }
        let listening = Listening(descriptor) { [weak self] in self?.changed() }
        let unneeded = self.state.withLock { state -> Listening? in
            guard state.source == nil, !state.watchers.isEmpty else { return listening }
            state.source = listening
            return nil
        }
        unneeded?.cancel()
        return true
    }

    private func changed() {
        let watchers = self.state.withLock { Array($0.watchers.values) }
        for watcher in watchers { watcher() }
    }

    private func leave(_ id: UInt64) {
        let source = self.state.withLock { state -> Listening? in
            state.watchers[id] = nil
            return state.watchers.isEmpty ? state.source.take() : nil
        }
        source?.cancel()
    }

    private struct Watch: ConnectivityWatch {
        let monitor: RouteMonitor
        let id: UInt64

        func cancel() { self.monitor.leave(self.id) }
    }

    /// The socket, read by Dispatch.
    ///
    /// Unchecked: a source is documented to be safe to cancel from any thread, but is not marked so.
    private struct Listening: @unchecked Sendable {
        private let source: any DispatchSourceRead

        init(_ descriptor: Int32, _ changed: @escaping @Sendable () -> Void) {
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
            source.setEventHandler {
                // What the messages say does not matter, nor that some were lost (ENOBUFS).
                larder_drain(descriptor)
                changed()
            }
            source.setCancelHandler { _ = close(descriptor) }
            source.resume()
            self.source = source
        }

        func cancel() { self.source.cancel() }
    }
}
