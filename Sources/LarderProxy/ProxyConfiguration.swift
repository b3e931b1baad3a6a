package import LarderHTTP

/// What the door to HTTP clients may be told.
///
/// Durations bound how long a client may keep the proxy waiting; byte counts bound what one
/// connection may hold in memory. Nothing here concerns origins reached through a session.
package struct ProxyConfiguration: Sendable {
    /// The proxy's name in `Cache-Status` and `Proxy-Status`: a token.
    package var name = "larder"
    /// Its name in `Via`: a token by which it recognises its own requests coming back.
    ///
    /// Drawn anew for each process, so that two proxies in a chain are not taken for a loop.
    package var pseudonym = Self.drawnPseudonym(for: "larder")
    /// Further host names by which clients may call the proxy itself, in lower case.
    package var hostNames: [String] = []
    package var headLimits = HeadLimits()
    package var chunkLimits = ChunkLimits()
    /// From the first byte of a request head to its last; then 408.
    package var headTimeout: Duration = .seconds(30)
    /// For so long a head is waited for at least, also while others find no place.
    package var headGrace: Duration = .seconds(5)
    /// How long a connection may stay open without a request.
    package var idleTimeout: Duration = .seconds(75)
    /// How long a request's content may stall; then 408.
    package var requestBodyTimeout: Duration = .seconds(60)
    /// How long a client may take none of what it is sent; then it is cut off.
    package var sendTimeout: Duration = .seconds(60)
    /// How long a closing connection still takes input, so that a reset does not destroy the
    /// answer on its way (RFC 9112 §9.6).
    package var lingerTimeout: Duration = .seconds(5)
    /// The same for a proxy that is shutting down, which has nothing else to do.
    ///
    /// Not to close at once: what such a client has sent ahead, or sends now, would be answered with
    /// a reset, at which it loses what it has not read yet. A second is many round trips.
    package var lastLingerTimeout: Duration = .seconds(1)
    /// To resolve the name of a tunnel's origin; then 504.
    package var resolveTimeout: Duration = .seconds(10)
    /// To reach and connect to it, whatever addresses it has; then 504.
    package var connectTimeout: Duration = .seconds(30)
    /// How long the origin of an upgrade may take to answer; then 504.
    package var upgradeTimeout: Duration = .seconds(60)
    /// How long a tunnel may carry nothing either way.
    package var tunnelIdleTimeout: Duration = .seconds(600)
    /// Pipes for tunnels that carry much, of all event loops; beyond them, bytes are copied.
    ///
    /// Each may hold 1 MiB, and the kernel lets one user have 64 (pipe(7)): some are left for
    /// bodies, and for other programs of that user.
    package var tunnelPipes = 48
    /// Connections with clients at one time; further ones wait in the kernel's queue.
    package var maximumConnections = 10_000
    /// Of these, those of one IPv4 address or one /64 of IPv6; nil for no bound.
    ///
    /// Further ones are closed.
    package var maximumConnectionsPerClient: Int?
    /// The largest request content taken, else 413; nil for no bound.
    package var maximumRequestBody: ByteCount?
    /// Request content held for a session that does not take it; then reading stops.
    package var requestBuffer: ByteCount = .kibibytes(128)
    /// Bytes taken in advance behind a request that is still being answered.
    package var pipelineBuffer: ByteCount = .kibibytes(16)
    /// Request content worth throwing away to keep the connection, after an early answer.
    package var discardLimit: ByteCount = .kibibytes(64)
    /// Bytes handed to a socket but not sent: above the second, no more is produced until fewer
    /// than the first are left.
    package var sendBufferLow: ByteCount = .kibibytes(64)
    package var sendBufferHigh: ByteCount = .kibibytes(256)
    /// The ports to which `CONNECT` may go (RFC 9110 §9.3.6: restrict them to known ones).
    ///
    /// nil: the access policy alone decides, so that they can change while connections are open.
    package var connectPorts: Set<UInt16>? = [443]
    /// Whether requests get a `Forwarded` field (RFC 7239), which tells origins who asked.
    package var addsForwarded = false

    package init() {}

    /// A name with a random number behind it.
    package static func drawnPseudonym(for name: String) -> String {
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        return name + "-" + String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}
