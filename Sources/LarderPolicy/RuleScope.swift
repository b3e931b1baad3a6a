import LarderHTTP

/// Which hosts a cache rule is about.
package struct HostPattern: Sendable, Hashable {
    private enum Test: Hashable {
        case any
        /// The domain itself and everything below it.
        case domain([UInt8])
        case wildcard(Wildcard)
    }

    private let test: Test
    private let ports: ClosedRange<UInt16>?

    /// - Parameters:
    ///   - text: `example.com`, `*.example.com` or `*`; `.example.com` is that domain and all below
    ///     it. Case does not count; an IPv6 address stands in brackets.
    ///   - ports: nil for every port.
    package init(_ text: String, ports: ClosedRange<UInt16>? = nil) {
        let name = text.lowercased()
        self.ports = ports
        if name == "*" || name.isEmpty {
            self.test = .any
        } else if name.hasPrefix(".") {
            self.test = .domain(Array(name.utf8.dropFirst()))
        } else {
            self.test = .wildcard(Wildcard(name))
        }
    }

    func matches(_ subject: RuleSubject) -> Bool {
        if let ports = self.ports, !ports.contains(subject.port) { return false }
        switch self.test {
        case .any: return true
        case .domain(let domain):
            guard subject.host.count >= domain.count,
                subject.host.suffix(domain.count).elementsEqual(domain)
            else { return false }
            let rest = subject.host.count - domain.count
            return rest == 0 || subject.host[rest - 1] == UInt8(ascii: ".")
        case .wildcard(let wildcard): return wildcard.matches(subject.host)
        }
    }
}

/// What of a URI the patterns of cache rules are held against.
struct RuleSubject {
    /// In lower case, without a final dot, which names the same host.
    let host: [UInt8]
    let port: UInt16
    /// Without the query; unreserved characters stand for themselves (RFC 3986 §6.2.2.2), so that
    /// `%7E` and `~` fit the same patterns.
    let path: [UInt8]

    init(_ uri: TargetURI) {
        var host = Array(uri.host.utf8)
        if host.last == UInt8(ascii: ".") { host.removeLast() }
        self.host = host
        self.port = uri.port
        let path = Array(uri.pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") })
        self.path = path.contains(UInt8(ascii: "%")) ? Self.decodingUnreserved(path) : path
    }

    private static func decodingUnreserved(_ path: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(path.count)
        var at = 0
        while at < path.count {
            if path[at] == UInt8(ascii: "%"), at + 2 < path.count,
                let high = self.hexDigit(path[at + 1]), let low = self.hexDigit(path[at + 2]),
                self.isUnreserved(high << 4 | low)
            {
                decoded.append(high << 4 | low)
                at += 3
            } else {
                decoded.append(path[at])
                at += 1
            }
        }
        return decoded
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
