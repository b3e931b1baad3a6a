import Foundation
import LarderHTTP
import LarderSession
import Synchronization

/// Waiting for a way into the network (`waitsForConnectivity`).
extension HTTPLoad {
    /// How often one load goes on waiting where the network was said to be back and was not: an
    /// address that no route leads to would else be tried for ever.
    private static let mostWaits = 64

    /// Whether an attempt failed because there is no network at all.
    func lacksRoute(_ failure: ExchangeFailure) -> Bool {
        failure.upstream.map { self.engine.connectivity.lacksRoute(for: $0) } ?? false
    }

    /// Waits until something about the machine's routes has changed, and attempts again.
    func awaitRoute(or error: URLError) {
        let waits = self.state.withLock { state in
            state.waits += 1
            return state.waits
        }
        guard waits <= Self.mostWaits else { return self.refuse(error) }
        if waits == 1 { self.observer.loadWaitsForConnectivity() }
        let connectivity = self.engine.connectivity
        guard let watch = connectivity.whenChanged({ [weak self] in self?.routesChanged() }) else {
            return self.refuse(error)
        }
        let isUnwanted = self.state.withLock { state in
            guard state.machine.isWaiting else { return true }
            state.watch = watch
            return false
        }
        if isUnwanted { return watch.cancel() }
        // It may have come between the failure and the watch.
        self.routesChanged()
    }

    func suspensionChanged() {
        let (changed, awaitsRoute) = self.state.withLock {
            ($0.suspensionChanged, $0.watch != nil)
        }
        changed?()
        if awaitsRoute { self.routesChanged() }
    }

    private func routesChanged() {
        // One that stands still looks again when it goes on.
        guard !self.isSuspended, self.engine.connectivity.hasRoute else { return }
        let (watch, goesOn) = self.state.withLock { state in
            (state.watch.take(), state.machine.isWaiting)
        }
        // Of two calls at a time one has the watch.
        guard let watch else { return }
        watch.cancel()
        if goesOn { self.attempt() }
    }
}
