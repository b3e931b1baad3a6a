import Glibc
import Synchronization

/// Makes connections for tunnels and upgrades where a parent proxy leads to their destination.
///
/// Any thread may use it.
package protocol TunnelDialer: Sendable {
    /// Begins to connect and returns at once; nil where the destination is to be reached directly,
    /// by the caller, who then hears nothing.
    ///
    /// - Parameters:
    ///   - host: lower case, IPv6 in brackets, as in `TargetURI`. The parent resolves it.
    ///   - via: the lines of `Via` that the parent is shown (RFC 9110 §7.6.3), ours among them, so
    ///     that proxies which lead to each other find out.
    ///   - completion: called once, on a thread of the dialer's, possibly before this returns, and
    ///     not at all where the dial was cancelled first; must not block.
    func dial(
        host: String, port: UInt16, via: Fields,
        completion: @escaping @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void
    ) -> (any TunnelDial)?
}

/// A connection being made; may be cancelled from any thread, at any time, also after its end.
package protocol TunnelDial: AnyObject, Sendable {
    func cancel()
}

/// A connected, non-blocking socket whose bytes are the tunnel's from the first on.
///
/// Closed with this object unless somebody took it.
package final class DialledSocket: Sendable {
    private let descriptor: Mutex<Int32?>

    /// Takes possession of a descriptor.
    package init(_ descriptor: Int32) {
        self.descriptor = Mutex(descriptor)
    }

    deinit {
        if let descriptor = self.take() { _ = close(descriptor) }
    }

    /// Hands the descriptor over, once: whoever gets it closes it.
    package func take() -> Int32? {
        self.descriptor.withLock { $0.take() }
    }
}
