package import LarderHTTP

/// What an access policy judges: who wants to do what, and where.
package struct AccessQuery: Sendable {
    package var client: ClientAddress
    /// The name under which the client has authenticated itself to the proxy; nil where it has not.
    package var user: String?
    package var method: Method
    /// Lower case, IPv6 in brackets, as in `TargetURI`.
    package var host: String
    package var port: UInt16
    /// What the host led to, where that is known.
    ///
    /// Each address is judged before anything is sent there, and that of a tunnel's origin once more
    /// when it has been reached; nil before a name has led to any.
    package var address: IPAddress?

    package init(
        client: ClientAddress, user: String? = nil, method: Method, host: String, port: UInt16,
        address: IPAddress? = nil
    ) {
        self.client = client
        self.user = user
        self.method = method
        self.host = host
        self.port = port
        self.address = address
    }

    /// The user of this machine whose process asks; nil where that is not known.
    package var uid: UInt32? { self.client.uid }
}

/// Whether a client may do what it asks for.
package enum AccessVerdict: Hashable, Sendable {
    case allowed
    /// - Parameter rule: which rule said so; the client is not told, but for ``connectPorts``.
    case denied(rule: String)

    /// The rule on the ports of tunnels, which clients may know: it is the same for all of them.
    package static let connectPorts = "connect-ports"

    /// The rule is one that lets the client go everywhere but to addresses of the proxy's own machine,
    /// which clients may know: so it is for all whom no rule says more of.
    package static let ownAddresses = "own addresses"
}

/// Judges requests before anything is done for them.
///
/// Called on event loops, for many connections at once; must not block.
package protocol AccessPolicy: AnyObject, Sendable {
    /// Changes whenever a verdict may no longer hold; nil: each has to be asked for.
    ///
    /// A verdict is about what is in the query, but for the client's port and process.
    var generation: UInt64? { get }

    /// Whether the address that a host leads to makes a difference.
    var judgesAddresses: Bool { get }

    func judge(_ query: AccessQuery) -> AccessVerdict
}

extension AccessPolicy {
    package var generation: UInt64? { nil }
    package var judgesAddresses: Bool { false }
}

/// Lets clients on this machine go anywhere, and others nowhere.
///
/// What listens beyond loopback needs a policy that says for whom.
package final class LocalClients: AccessPolicy {
    package init() {}

    package var generation: UInt64? { 0 }

    package func judge(_ query: AccessQuery) -> AccessVerdict {
        switch query.client {
        case .unix: .allowed
        case .ip(let address, _, _):
            address.isLoopback ? .allowed : .denied(rule: "clients of this machine only")
        }
    }
}
