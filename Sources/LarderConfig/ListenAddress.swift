/// Where a listener waits for clients: `127.0.0.1:3128`, `[::1]:3128`, `*:3128`, `unix:/run/x.sock`.
package enum ListenAddress: SettingText, Hashable {
    /// One address and port; port 0 takes a free one.
    case ip(IPAddress, port: UInt16)
    /// All addresses of this machine.
    case everywhere(port: UInt16)
    /// The address that `localhost` has.
    case localhost(port: UInt16)
    case unix(path: String)

    package static var kind: String { "address" }
    package static var expectation: String {
        "an address such as 127.0.0.1:3128, [::1]:3128, *:3128 or unix:/run/larder/proxy.sock"
    }

    /// The longest path that fits a Unix socket's address, its final zero left out (unix(7)).
    package static let longestSocketPath = 107

    package init(settingText text: String) throws(SettingTextProblem) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/") else { throw SettingTextProblem("has a relative path") }
            guard path.utf8.count <= Self.longestSocketPath else {
                throw SettingTextProblem(
                    "has a path of more than \(Self.longestSocketPath) bytes")
            }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":") else {
            if PortRange.port(text[...], least: 0) != nil {
                throw SettingTextProblem(
                    "has no address: write \"127.0.0.1:\(text)\", or \"*:\(text)\" for other "
                        + "machines")
            }
            throw SettingTextProblem("has no port: write \"\(text):3128\", for example")
        }
        guard let port = PortRange.port(text[text.index(after: colon)...], least: 0) else {
            throw SettingTextProblem("has no port from 0 to 65535")
        }
        let host = text[..<colon]
        if host == "*" {
            self = .everywhere(port: port)
        } else if host == "localhost" {
            self = .localhost(port: port)
        } else if host.hasPrefix("["), host.hasSuffix("]"),
            let address = IPAddress(host.dropFirst().dropLast()), host.contains(":")
        {
            self = .ip(address, port: port)
        } else if let address = IPAddress(host), !host.contains(":") {
            self = .ip(address, port: port)
        } else {
            throw SettingTextProblem()
        }
    }

    package var settingText: String {
        switch self {
        case .ip(let address, let port):
            address.family == .v6 ? "[\(address)]:\(port)" : "\(address):\(port)"
        case .everywhere(let port): "*:\(port)"
        case .localhost(let port): "localhost:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// One port, or all from one to another: `443`, `8000-8999`.
package struct PortRange: SettingText, Hashable {
    package let ports: ClosedRange<UInt16>

    package init(_ ports: ClosedRange<UInt16>) {
        self.ports = ports
    }

    package static var kind: String { "ports" }
    package static var expectation: String { "a port such as 443 or a range such as 8000-8999" }

    package init(settingText text: String) throws(SettingTextProblem) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count <= 2, let low = Self.port(ends[0]),
            let high = ends.count == 2 ? Self.port(ends[1]) : low
        else { throw SettingTextProblem() }
        guard low <= high else { throw SettingTextProblem("ends before it begins") }
        self.ports = low...high
    }

    package var settingText: String {
        self.ports.count == 1
            ? "\(self.ports.lowerBound)" : "\(self.ports.lowerBound)-\(self.ports.upperBound)"
    }

    static func port(_ text: Substring, least: UInt16 = 1) -> UInt16? {
        guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let port = UInt16(text),
            port >= least
        else { return nil }
        return port
    }
}
