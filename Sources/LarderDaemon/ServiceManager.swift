import Glibc

/// What the service manager is told of the life of the proxy (sd_notify(3)).
enum ServiceManager {
    /// Sends lines of `NAME=VALUE`; nothing happens where nobody has asked for it, or listens.
    ///
    /// - Parameter socket: a path, or `@` and a name of the abstract namespace (unix(7)).
    static func tell(_ lines: String, socket: String? = Self.socket) {
        guard let socket, socket.hasPrefix("/") || socket.hasPrefix("@") else { return }
        var name = Array(socket.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        var address = sockaddr_un()
        // A name that fills it has no zero at its end, and needs none.
        guard name.count <= MemoryLayout.size(ofValue: address.sun_path) else { return }
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        let file = Glibc.socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard file >= 0 else { return }
        defer { close(file) }
        let text = Array(lines.utf8)
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let length = socklen_t(offset + name.count)
        // It is not waited for: the manager may be the one who waits.
        let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
        _ = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe sendto(file, text, text.count, flags, $0, length)
            }
        }
    }

    /// What says that the configuration is being read anew, until `READY=1` comes: so "systemctl reload"
    /// returns when it has been (`Type=notify-reload`, systemd.service(5)).
    static func reloading() -> String {
        var now = timespec()
        guard unsafe clock_gettime(CLOCK_MONOTONIC, &now) == 0 else { return "RELOADING=1" }
        return "RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)"
    }

    private static var socket: String? {
        unsafe getenv("NOTIFY_SOCKET").map { unsafe String(cString: $0) }
    }
}
