import Dispatch
import Glibc
import Synchronization

/// Passes signals on to a child process from the moment it exists to the moment it has ended.
///
/// ```
/// init ──▶ start (signals are kept) ──▶ began(child) (kept ones and new ones go to it) ──▶ ended
/// ```
final class SignalRelay: Sendable {
    private enum State {
        case waiting(kept: [Int32])
        case passing(pid_t)
        case ended
    }

    private let state = Mutex(State.waiting(kept: []))
    private let queue = DispatchQueue(label: "larder.signals")

    /// Listens to these signals, which the caller has set to be ignored.
    ///
    /// - Returns: once none can be missed. The sources listen until they are cancelled.
    func start(_ signals: [Int32]) async -> [any DispatchSourceSignal] {
        var sources: [any DispatchSourceSignal] = []
        for signal in signals {
            let source = DispatchSource.makeSignalSource(signal: signal, queue: self.queue)
            source.setEventHandler { self.receive(signal) }
            await withCheckedContinuation { registered in
                source.setRegistrationHandler { registered.resume() }
                source.resume()
            }
            sources.append(source)
        }
        return sources
    }

    func began(_ child: pid_t) {
        let kept = self.state.withLock { state -> [Int32] in
            guard case .waiting(let kept) = state else { return [] }
            state = .passing(child)
            return kept
        }
        for signal in kept { kill(child, signal) }
    }

    /// To be called before the child is reaped: after that its number may be another's.
    func ended() { self.state.withLock { $0 = .ended } }

    /// The terminal sends its own signals (^C, ^\) to all of the foreground, to the child as well as
    /// to us: passing them on would make two of one.
    private func receive(_ signal: Int32) {
        let isOfTerminal = signal == SIGINT || signal == SIGQUIT
        if isOfTerminal, tcgetpgrp(STDERR_FILENO) == getpgrp() { return }
        // Under the lock, so that the child cannot be reaped in between; kill(2) does not wait.
        self.state.withLock { state in
            switch state {
            case .waiting(let kept): state = .waiting(kept: kept + [signal])
            case .passing(let child): kill(child, signal)
            case .ended: break
            }
        }
    }
}
