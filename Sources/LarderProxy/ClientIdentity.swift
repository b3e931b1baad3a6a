import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The process at the other end of a Unix socket, as the kernel knows it.
///
/// As it was when it connected: what it gave up or became since does not show (unix(7)).
package struct PeerCredentials: Hashable, Sendable {
    package var uid: UInt32
    /// 0 where the process lies outside of our own process namespace.
    package var pid: Int32

    package init(uid: UInt32, pid: Int32) {
        self.uid = uid
        self.pid = pid
    }

    /// `struct ucred { pid_t pid; uid_t uid; gid_t gid; }` (unix(7)), which is declared for programs
    /// with GNU extensions only.
    private struct Kernel: Sendable {
        var pid: Int32 = 0
        var uid: UInt32 = 0
        var gid: UInt32 = 0
    }

    /// Asks for the peer of a channel's socket; nil where the kernel does not say.
    ///
    /// To be called on the channel's loop, for a Unix socket: for others the kernel answers, too,
    /// with what is nobody.
    init?(of channel: any Channel) {
        guard let options = channel as? any SocketOptionProvider else { return nil }
        let asked: EventLoopFuture<Kernel> = options.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET), name: SocketOptionName(SO_PEERCRED))
        var found: Kernel?
        // On its own loop the channel has answered before it returns.
        asked.assumeIsolated().whenSuccess { found = $0 }
        // All bits set are no user: "this uid_t has not been set" (chown(2)).
        guard let found, found.uid != .max else { return nil }
        self.init(uid: found.uid, pid: found.pid)
    }
}

/// The client's end of a connection.
package enum ClientAddress: Hashable, Sendable {
    /// - Parameter text: the address as people write it: `192.0.2.1`, also where an IPv4 client came
    ///   to a listener for IPv6.
    case ip(IPAddress, text: String, port: UInt16)
    /// A process of this machine, over a Unix socket; nil where the kernel did not say whose.
    case unix(PeerCredentials?)

    /// As the log writes it: an address without its port, `unix:1000` for the user with that number,
    /// `unix:` where that is not known.
    package var text: String {
        switch self {
        case .ip(_, let text, _): text
        case .unix(let peer?): "unix:\(peer.uid)"
        case .unix(nil): "unix:"
        }
    }

    package var isUnix: Bool {
        if case .unix = self { true } else { false }
    }

    /// The user of this machine whose process it is; nil where that is not known.
    package var uid: UInt32? {
        if case .unix(let peer) = self { peer?.uid } else { nil }
    }
}

/// Who asks: where from, and as whom.
package struct ClientIdentity: Hashable, Sendable {
    package var address: ClientAddress
    /// The name under which the client has authenticated itself to the proxy; nil where it has not.
    package var user: String?

    package init(address: ClientAddress, user: String? = nil) {
        self.address = address
        self.user = user
    }
}
