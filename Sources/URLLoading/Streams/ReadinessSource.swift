import Dispatch

/// Tells when a socket can be read, or written, while that is wanted.
///
/// Not `Sendable`: belongs to the queue on which it tells.
final class ReadinessSource {
    private let source: any DispatchSourceProtocol
    private var isRunning = false

    /// - Parameter closed: called once, when the kernel is no longer asked about the socket: not
    ///   before may it be closed.
    init(
        _ source: any DispatchSourceProtocol, ready: @escaping @Sendable () -> Void,
        closed: @escaping @Sendable () -> Void
    ) {
        self.source = source
        source.setEventHandler(handler: ready)
        source.setCancelHandler(handler: closed)
    }

    func want(_ isWanted: Bool) {
        guard isWanted != self.isRunning else { return }
        self.isRunning = isWanted
        if isWanted { self.source.resume() } else { self.source.suspend() }
    }

    /// For the last time.
    func cancel() {
        self.source.cancel()
        // What is suspended would never hear of it, and must not be released either.
        if !self.isRunning { self.source.resume() }
        self.isRunning = true
    }
}
