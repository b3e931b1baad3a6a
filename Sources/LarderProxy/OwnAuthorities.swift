package import NIOCore

/// The names and addresses by which the proxy itself is called, seen from one connection.
///
/// A request for one of them is for the proxy, not for an origin; forwarding it would be a loop.
package struct OwnAuthorities: Sendable {
    package struct Endpoint: Hashable, Sendable {
        package var address: IPAddress
        package var port: UInt16

        package init(address: IPAddress, port: UInt16) {
            self.address = address
            self.port = port
        }

        /// Nil for a Unix socket.
        package init?(_ address: SocketAddress?) {
            guard let address, let ip = IPAddress(address),
                let port = address.port.flatMap(UInt16.init(exactly:))
            else { return nil }
            self.init(address: ip, port: port)
        }
    }

    /// What the server listens on.
    package var listeners: [Endpoint]
    /// The near end of this connection.
    package var local: Endpoint?
    /// Further names, in lower case, on any listener's port.
    package var names: [String]

    package init(listeners: [Endpoint], local: Endpoint?, names: [String] = []) {
        self.listeners = listeners
        self.local = local
        self.names = names
    }

    /// Whether the proxy itself listens on this port, on whatever address.
    func hasPort(_ port: UInt16) -> Bool {
        if self.local?.port == port { return true }
        for listener in self.listeners where listener.port == port { return true }
        return false
    }

    /// Whether a client that says `host:port` means the proxy.
    package func contains(host: String, port: UInt16) -> Bool {
        guard self.hasPort(port) else { return false }
        let name = host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
        if name == "localhost" || self.names.contains(name) { return true }
        guard let address = IPAddress(host) else { return false }
        return self.contains(Endpoint(address: address, port: port))
    }

    /// Whether a connection to that address ends here.
    ///
    /// - Parameter from: the near address of a connection to it, where there is one: whoever
    ///   reaches an address from that same address has reached this machine.
    package func contains(_ endpoint: Endpoint, from near: IPAddress? = nil) -> Bool {
        if endpoint == self.local { return true }
        return self.listeners.contains { listener in
            guard listener.port == endpoint.port else { return false }
            guard listener.address.isUnspecified else {
                return listener.address == endpoint.address
            }
            return endpoint.address.isLoopback || endpoint.address.isUnspecified
                || endpoint.address == self.local?.address || endpoint.address == near
        }
    }
}
