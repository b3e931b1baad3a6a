/// Where clients connect to.
package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// An IP address or a name, without brackets. Port 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    case unix(path: String)

    /// `127.0.0.1:3128`, `[::1]:3128`, `localhost:3128`, `:3128` (loopback), `unix:/path`.
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/") else { return nil }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":"),
            text[text.index(after: colon)...].utf8.allSatisfy({ $0 &- 0x30 < 10 }),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        self = .tcp(host: host.isEmpty ? "127.0.0.1" : host, port: port)
    }

    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
