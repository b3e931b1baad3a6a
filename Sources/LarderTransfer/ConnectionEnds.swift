import CCurl
import Glibc

/// Where a connection begins and where it leads, which tells it from all others of its kind.
///
/// It tells the socket of a transfer, which libcurl does not while that is under way.
struct ConnectionEnds: Equatable {
    private struct Place: Equatable {
        /// As inet_ntop(3) writes it.
        let address: String
        let port: UInt16
    }

    /// Alone it is not enough: connections to different peers may begin at the same place.
    private let local: Place
    private let remote: Place

    /// Of the connection that a transfer goes over; nil where libcurl does not know.
    init?(of easy: EasyHandle) {
        guard let local = Self.place(easy, CURLINFO_LOCAL_IP, CURLINFO_LOCAL_PORT),
            let remote = Self.place(easy, CURLINFO_PRIMARY_IP, CURLINFO_PRIMARY_PORT)
        else { return nil }
        self.local = local
        self.remote = remote
    }

    /// Of a socket (getsockname(2), getpeername(2)); nil where it is none of IP, or not connected.
    init?(of socket: Int32) {
        guard let local = unsafe Self.place({ unsafe getsockname(socket, $0, $1) }),
            let remote = unsafe Self.place({ unsafe getpeername(socket, $0, $1) })
        else { return nil }
        self.local = local
        self.remote = remote
    }

    private static func place(
        _ easy: EasyHandle, _ address: CURLINFO, _ port: CURLINFO
    ) -> Place? {
        guard let port = easy.number(port).flatMap(UInt16.init(exactly:)),
            let address = easy.text(address)
        else { return nil }
        return Place(address: address, port: port)
    }

    private static func place(
        _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Place? {
        var name = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var (host, service) = (Self.room, Self.room)
        let isKnown = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                unsafe ask(name, &size) == 0
                    && getnameinfo(
                        name, size, &host, socklen_t(host.count), &service,
                        socklen_t(service.count), NI_NUMERICHOST | NI_NUMERICSERV) == 0
            }
        }
        guard isKnown, let port = UInt16(Self.text(service)) else { return nil }
        // An IPv6 address may name its interface behind a per cent sign, which libcurl leaves out.
        return Place(address: String(Self.text(host).prefix { $0 != "%" }), port: port)
    }

    private static let room = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 32)

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
