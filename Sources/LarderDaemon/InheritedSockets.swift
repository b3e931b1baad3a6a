import Glibc
import LarderProxy
import Logging
import NIOCore
import Synchronization

/// The listening sockets that a service manager opened for the proxy and keeps open between two of its
/// processes: while one of them ends and the next begins, clients wait in place of being refused.
///
/// It follows sd_listen_fds(3): `LISTEN_PID` names the process they are for, `LISTEN_FDS` tells how many
/// descriptors from 3 on they are. A listener takes the one that is bound to its own address. The
/// descriptors stay open for as long as the process lives; listeners get duplicates.
struct InheritedSockets: Sendable {
    /// A descriptor that was handed over, as the kernel describes it.
    struct Inherited: Sendable {
        let descriptor: CInt
        /// Where it listens; nil: it is none that listens for streams of bytes.
        let address: SocketAddress?

        /// Its address as the settings of listeners have it; nil where none can have it.
        var listenAddress: ListenAddress? {
            switch self.address {
            case .v4, .v6:
                guard let host = self.address?.ipAddress, let port = self.address?.port else {
                    return nil
                }
                return .tcp(host: host, port: UInt16(clamping: port))
            case .unixDomainSocket:
                guard let path = self.address?.pathname, path.hasPrefix("/") else { return nil }
                return .unix(path: path)
            case nil: return nil
            }
        }

        /// Its address, for people.
        var told: String {
            guard let address = self.address else { return "none: it does not listen" }
            return self.listenAddress?.description ?? "\(address)"
        }

        /// What to do where nobody serves it.
        var remedy: String {
            let other = "take it out of the socket unit"
            guard let address = self.listenAddress else { return other }
            return "write listeners: [{ address: \"\(address)\" }], or \(other)"
        }
    }

    private let sockets: [Inherited]

    static let none = InheritedSockets([])

    init(_ sockets: [Inherited]) {
        self.sockets = sockets
    }

    // sd_listen_fds(3): "SD_LISTEN_FDS_START … is always 3".
    private static let first: CInt = 3

    /// Those that this process was given; programs that it starts will not have them.
    static func taken() -> InheritedSockets {
        let descriptors = Self.descriptors(
            pid: Self.variable("LISTEN_PID"), count: Self.variable("LISTEN_FDS"), own: getpid())
        return InheritedSockets(
            descriptors.map { descriptor in
                // One that is not open stays without an address, and is told as such.
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                return Inherited(descriptor: descriptor, address: Self.listening(descriptor))
            })
    }

    /// - Parameters:
    ///   - pid: the value of `LISTEN_PID`.
    ///   - count: the value of `LISTEN_FDS`.
    static func descriptors(pid: String?, count: String?, own: pid_t) -> Range<CInt> {
        let none = Self.first..<Self.first
        guard let pid, pid_t(pid) == own, let count = count.flatMap({ CInt($0) }), count > 0,
            count <= CInt.max - Self.first
        else { return none }
        // None above the limit is open (getrlimit(2)).
        guard let limit = DescriptorLimit.current else { return none }
        let end = min(Int(Self.first + count), limit)
        return Self.first..<max(Self.first, CInt(clamping: end))
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// The address of a socket that listens for streams; nil for anything else.
    private static func listening(_ descriptor: CInt) -> SocketAddress? {
        guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1,
            Self.option(SO_TYPE, of: descriptor) == CInt(SOCK_STREAM.rawValue)
        else { return nil }
        var storage = sockaddr_storage()
        let capacity = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var size = capacity
        let status = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &size)
            }
        }
        guard status == 0, size <= capacity else { return nil }
        let family = CInt(storage.ss_family)
        return unsafe withUnsafeBytes(of: &storage) { bytes in
            switch family {
            case AF_INET: SocketAddress(unsafe bytes.loadUnaligned(as: sockaddr_in.self))
            case AF_INET6: SocketAddress(unsafe bytes.loadUnaligned(as: sockaddr_in6.self))
            case AF_UNIX: SocketAddress(unsafe bytes.loadUnaligned(as: sockaddr_un.self))
            default: nil
            }
        }
    }

    private static func option(_ name: CInt, of descriptor: CInt) -> CInt? {
        var value: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        let status = unsafe getsockopt(descriptor, SOL_SOCKET, name, &value, &size)
        return status == 0 ? value : nil
    }

    /// The socket that is bound where a listener is to be; nil: it has to be opened.
    func descriptor(for address: ListenAddress) -> CInt? {
        self.sockets.first { socket in
            socket.address.map { Self.isBound($0, to: address) } ?? false
        }?.descriptor
    }

    private static func isBound(_ bound: SocketAddress, to address: ListenAddress) -> Bool {
        switch address {
        case .tcp("localhost", let port):
            ["127.0.0.1", "::1"].contains {
                Self.isBound(bound, to: .tcp(host: $0, port: port))
            }
        case .tcp(let host, let port):
            bound == (try? SocketAddress(ipAddress: host, port: Int(port)))
        case .unix(let path): bound.pathname == path
        }
    }

    /// Says which of them no listener wants: whoever connects there would wait for ever.
    func warn(unlessAmong addresses: [ListenAddress], to log: Logger) {
        let wanted = Set(addresses.compactMap { self.descriptor(for: $0) })
        for socket in self.sockets where !wanted.contains(socket.descriptor) {
            log.warning(
                "nobody serves a socket of the service manager's",
                metadata: [
                    "address": "\(socket.told)",
                    "remedy": "\(socket.remedy)",
                ])
        }
    }
}
