package import LarderHTTP
import NIOCore

/// Whoever waits for a bare connection: a receiver that hears of no response.
final class SocketDial: UpstreamReceiver {
    typealias Completion = @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void

    /// What will be spoken over it; nil: nobody knows.
    let scheme: Scheme?
    private let completion: Completion

    init(for scheme: Scheme? = nil, _ completion: @escaping Completion) {
        self.scheme = scheme
        self.completion = completion
    }

    func connected(_ socket: DialledSocket) {
        self.completion(.success(socket))
    }

    func upstream(failed failure: UpstreamFailure) {
        self.completion(.failure(failure))
    }

    // A connection that only stands has said nothing yet.

    func upstream(informational head: ResponseHead) {}

    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand { .more }

    func upstream(piece: ByteBuffer) -> UpstreamDemand { .more }

    func upstream(finished trailers: Fields) {}
}

extension CurlFetch: TunnelDial {}

extension CurlUpstream: TunnelDialer {
    package var dialer: (any TunnelDialer)? { self.hasParents ? self : nil }

    package func dial(
        host: String, port: UInt16, via: Fields,
        completion: @escaping @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void
    ) -> (any TunnelDial)? {
        guard self.parents.parent(host: host, port: port) != nil else { return nil }
        // What will be spoken through the tunnel is not known, nor asked.
        let uri = TargetURI(scheme: .http, host: host, port: port, pathAndQuery: "/")
        return self.begin(
            Request(method: .connect, uri: uri, fields: via), dial: SocketDial(completion))
    }
}

/// Connects to servers for whoever speaks with them himself.
package protocol SocketDialer: Sendable {
    /// Begins to connect, through the parent where there is one, and returns at once.
    ///
    /// - Parameters:
    ///   - host: lower case, IPv6 in brackets, as in `TargetURI`.
    ///   - scheme: of what will be spoken, whose parent it is; nil: any.
    ///   - completion: called once, on a thread of the dialer's, possibly before this returns, and
    ///     not at all where the dial was cancelled first; must not block.
    func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void
    ) -> any TunnelDial
}

extension CurlUpstream: SocketDialer {
    package func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void
    ) -> any TunnelDial {
        let uri = TargetURI(scheme: .http, host: host, port: port, pathAndQuery: "/")
        return self.begin(
            Request(method: .connect, uri: uri, fields: Fields()),
            dial: SocketDial(for: scheme, completion))
    }
}
