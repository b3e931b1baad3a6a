import CCurl
import Glibc

/// Where a connection begins on this machine, which no other to the same peer does at the time.
///
/// It tells the socket of a transfer, which libcurl does not while that is under way.
struct LocalEnd: Equatable {
    /// As inet_ntop(3) writes it.
    let address: String
    let port: UInt16

    /// Of the connection that a transfer goes over; nil where libcurl does not know.
    init?(of easy: EasyHandle) {
        guard let port = easy.number(CURLINFO_LOCAL_PORT).flatMap(UInt16.init(exactly:)),
            let address = easy.text(CURLINFO_LOCAL_IP)
        else { return nil }
        self.address = address
        self.port = port
    }

    /// Of a socket (getsockname(2)); nil where it is none of IP.
    init?(of socket: Int32) {
        var name = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var (host, service) = (Self.room, Self.room)
        let isKnown = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                unsafe getsockname(socket, name, &size) == 0
                    && getnameinfo(
                        name, size, &host, socklen_t(host.count), &service,
                        socklen_t(service.count), NI_NUMERICHOST | NI_NUMERICSERV) == 0
            }
        }
        guard isKnown, let port = UInt16(Self.text(service)) else { return nil }
        // An IPv6 address may name its interface behind a per cent sign, which libcurl leaves out.
        self.address = String(Self.text(host).prefix { $0 != "%" })
        self.port = port
    }

    private static let room = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 32)

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
