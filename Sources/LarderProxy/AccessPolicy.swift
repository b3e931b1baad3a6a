package import LarderHTTP
import Synchronization

/// Who asks: the client's end of a connection.
package enum ClientAddress: Hashable, Sendable {
    case ip(IPAddress, text: String, port: UInt16)
    /// A process of this machine, over a Unix socket.
    case unix

    /// The address without the port, as the log writes it.
    package var text: String {
        switch self {
        case .ip(_, let text, _): text
        case .unix: "unix:"
        }
    }
}

/// What an access policy judges: who wants to do what, and where.
package struct AccessQuery: Sendable {
    package var client: ClientAddress
    package var method: Method
    /// Lower case, IPv6 in brackets, as in `TargetURI`.
    package var host: String
    package var port: UInt16

    package init(client: ClientAddress, method: Method, host: String, port: UInt16) {
        self.client = client
        self.method = method
        self.host = host
        self.port = port
    }
}

/// Whether a client may do what it asks for.
package enum AccessVerdict: Hashable, Sendable {
    case allowed
    /// - Parameter rule: which rule said so, for the log; it is not told to the client.
    case denied(rule: String)
}

/// Judges requests before anything is done for them.
///
/// Called on event loops, for many connections at once; must not block.
package protocol AccessPolicy: Sendable {
    func judge(_ query: AccessQuery) -> AccessVerdict
}

/// Access rules that can be replaced while connections are open.
///
/// A request is judged by the rules of its own moment; tunnels already open stay open.
package final class CurrentAccess: AccessPolicy {
    private let rules: Mutex<AccessRules>

    package init(_ rules: AccessRules = AccessRules()) {
        self.rules = Mutex(rules)
    }

    package func replace(by rules: AccessRules) {
        self.rules.withLock { $0 = rules }
    }

    package func judge(_ query: AccessQuery) -> AccessVerdict {
        self.rules.withLock { $0 }.judge(query)
    }
}
