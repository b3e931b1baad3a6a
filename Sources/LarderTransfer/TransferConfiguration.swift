package import LarderHTTP

/// How an upstream on libcurl behaves.
///
/// Every value has a default with which it works.
package struct TransferConfiguration: Sendable {
    /// Loops, each a thread with its own connections.
    ///
    /// An origin always belongs to one of them.
    package var threads = 1

    // MARK: Connections

    /// Connections to one origin at a time; further fetches wait for one.
    ///
    /// 0 means no bound.
    package var connectionsPerHost = 64
    /// Connections in all, divided among the loops.
    ///
    /// 0 means no bound.
    package var maximumConnections = 2048
    /// Idle connections kept for reuse, divided among the loops.
    package var idleConnections = 512
    /// How long an idle connection may have been idle and still be reused.
    package var idleConnectionLifetime: Duration = .seconds(55)
    /// Whether https origins are offered HTTP/2 (ALPN).
    package var http2 = true
    /// Whether a fetch waits for a connection being made, to share it, if that may become HTTP/2.
    ///
    /// Saves handshakes; costs the first few fetches a wait where it turns out not to be.
    package var waitsToMultiplex = true

    // MARK: Time

    /// How long a fetch waits for a connection when as many as allowed are in use.
    package var queueTimeout: Duration = .seconds(60)
    package var resolveTimeout: Duration = .seconds(10)
    /// For the connection to stand: TCP and, for https, TLS.
    package var connectTimeout: Duration = .seconds(10)
    /// From the end of the request to the end of the response's head; each 1xx begins it anew.
    package var responseTimeout: Duration = .seconds(120)
    /// How long an origin may leave us waiting in the middle of a message.
    ///
    /// It neither takes bytes of the request's content nor gives bytes of the response's. Time
    /// spent waiting for a client does not count.
    package var stallTimeout: Duration = .seconds(60)
    /// How long `Expect: 100-continue` waits before the content is sent anyway
    /// (RFC 9110 §10.1.1 wants no indefinite wait).
    package var continueTimeout: Duration = .seconds(1)
    package var nameLifetime: Duration = .seconds(60)

    // MARK: Bounds

    /// The largest response head, status line and field lines together; the same for trailers.
    package var maximumHead: ByteCount = .kibibytes(64)
    package var maximumFieldCount = 256

    // MARK: TLS

    /// Whether certificates and host names of origins are verified.
    package var verifiesCertificates = true
    /// A file of trusted certificates (PEM) in place of the system's.
    package var certificateFile: String?
    /// A directory of trusted certificates, hashed as OpenSSL wants them.
    package var certificateDirectory: String?

    package init() {}
}
