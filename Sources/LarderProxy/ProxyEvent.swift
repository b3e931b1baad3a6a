/// What befalls the proxy that whoever runs it should know.
package enum ProxyEvent: Sendable, Equatable {
    /// No connection can be accepted for want of descriptors or memory; the first time, and then once
    /// an hour at most.
    ///
    /// - Parameter count: how often so far.
    case acceptingPaused(ListenAddress, cause: String, count: UInt64)
    /// All places of `limits.connections` are taken: idle connections close, and further ones wait; once
    /// until it is over, and once an hour at most.
    ///
    /// - Parameter waited: how many had to wait so far.
    case crowded(connections: Int, waited: UInt64)
    /// An eighth of the places is free again.
    case crowdOver(waited: UInt64)
    /// The error of accept(2) for which a listener will be closed.
    case acceptFailed(ListenAddress, cause: String)
    /// A client has as many connections as it may, and one more was closed; the first time, and then
    /// once an hour at most.
    ///
    /// - Parameters:
    ///   - client: one of those whose connections were closed.
    ///   - count: how many were closed so far, of all clients.
    case clientRefused(ListenAddress, client: String, count: UInt64)
    /// A listener was closed by an error; it will be opened again.
    case listenerLost(ListenAddress)
    /// A listener that was lost is back; a Unix socket has the mode that the umask left it.
    case listenerReopened(ListenAddress)
    /// A listener that was lost cannot be opened; said once, and tried again each second.
    case listenerNotReopened(ListenError)
}
