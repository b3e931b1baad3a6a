/// Clients that a rule speaks of: `10.0.0.0/8`, `::1`, `unix`, `user:alice`, `user:*`, `uid:1000`, `*`.
package enum ClientPattern: SettingText, Hashable {
    case anyone
    /// Whoever came through a Unix socket.
    case unix
    case block(AddressBlock)
    /// Whoever proved to the listener to be this user, or any where it is `*`.
    case user(UserName)
    /// Whoever came through a Unix socket from a process of this user.
    case uid(UserID)

    package static var kind: String { "clients" }
    package static var expectation: String {
        "an address, a block such as 192.168.0.0/16, unix, user:NAME, user:*, uid:NUMBER, or *"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        switch text {
        case "*": self = .anyone
        case "unix": self = .unix
        case _ where text.hasPrefix("user:"):
            self = .user(try UserName(settingText: String(text.dropFirst(5))))
        case _ where text.hasPrefix("uid:"):
            self = .uid(try UserID(settingText: String(text.dropFirst(4))))
        default:
            guard let block = AddressBlock(text) else { throw AddressBlock.problem(text) }
            self = .block(block)
        }
    }

    package var settingText: String {
        switch self {
        case .anyone: "*"
        case .unix: "unix"
        case .block(let block): block.description
        case .user(let name): "user:\(name.text)"
        case .uid(let uid): "uid:\(uid.number)"
        }
    }

    package func matches(_ client: ClientFacts) -> Bool {
        switch self {
        case .anyone: true
        case .unix: client.address == nil
        case .block(let block): client.address.map(block.contains) ?? false
        case .user(let name): name.matches(client.user)
        case .uid(let uid): client.uid == uid.number
        }
    }
}

extension [ClientPattern] {
    /// Whether a client may fit by the address alone that it comes from; an empty list is all.
    var holdAddresses: Bool {
        self.isEmpty
            || self.contains { client in
                switch client {
                case .anyone, .block: true
                case .unix, .user, .uid: false
                }
            }
    }
}

/// What is known about a client when rules are asked about it.
package struct ClientFacts: Sendable, Equatable {
    /// nil for a client of a Unix socket.
    package var address: IPAddress?
    /// Who the client proved to be; nil where it was not asked, or has not answered.
    package var user: String?
    /// Whose process is at the other end of a Unix socket; nil for every other client.
    package var uid: UInt32?

    package init(address: IPAddress?, user: String? = nil, uid: UInt32? = nil) {
        self.address = address
        self.user = user
        self.uid = uid
    }
}

extension String {
    /// A host without the final dot, which names the same one.
    var withoutFinalDot: Substring { self.hasSuffix(".") ? self.dropLast() : self[...] }
}

extension IPAddress {
    /// The address that a host is, in brackets or without them; nil for a name.
    init?(host: Substring) {
        self.init(host.hasPrefix("[") ? host.dropFirst().dropLast() : host)
    }

    /// The addresses that a connection to this one reaches: one to `0.0.0.0` or `::` ends at this
    /// machine, whose loopback address it then is, too (ip(7)).
    var whereConnectionsEnd: [IPAddress] {
        self.value == 0
            ? [self, IPAddress(self.family, self.family == .v4 ? 0x7F00_0001 : 1)] : [self]
    }

    /// Those, and what a network may make of the address: for rules that deny.
    ///
    /// Whoever may go to the embedded address may not therefore go by way of a translator.
    var whereConnectionsMayEnd: [IPAddress] {
        self.whereConnectionsEnd + self.embedded.flatMap(\.whereConnectionsEnd)
    }
}

extension AddressBlock {
    /// Whether a connection to the address ends in the block.
    func containsTarget(_ address: IPAddress) -> Bool {
        address.whereConnectionsEnd.contains { self.contains($0) }
    }

    /// Why a text that looks like a block is none.
    static func problem(_ text: String) -> SettingTextProblem {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, IPAddress(parts[0]) != nil, let length = UInt8(parts[1]) else {
            return SettingTextProblem()
        }
        return AddressBlock(parts[0]).map { Int(length) > $0.base.bitWidth } ?? false
            ? SettingTextProblem("has a prefix that is too long")
            : SettingTextProblem("has bits set beyond its prefix")
    }
}

/// Destinations that an access rule speaks of: `example.com`, `.example.com`, `*.example.com:443`,
/// `10.0.0.0/8:1-1023`, `[::1]`, `*`.
///
/// A block matches requests that name an address, and those that a name leads to one, which is known
/// when they are connected: before that names are not resolved.
package struct DestinationPattern: SettingText, Hashable {
    package enum Host: Hashable, Sendable {
        case any
        /// The domain itself and everything below it, written with a leading dot.
        case domain(String)
        case glob(Glob)
        case block(AddressBlock)
    }

    package let host: Host
    /// nil: every port.
    package let ports: PortRange?

    var isOfAddresses: Bool { if case .block = self.host { true } else { false } }

    package static var kind: String { "destinations" }
    package static var expectation: String {
        "a host such as example.com, .example.com, *.example.com:443, 10.0.0.0/8 or [::1]:80"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        let (written, ports) = try Self.split(text)
        self.ports = ports
        // As hosts of requests are compared.
        let host = String(written).withoutFinalDot
        guard !host.isEmpty || written.isEmpty, !host.hasSuffix(".") else {
            throw SettingTextProblem()
        }
        if host == "*" || host.isEmpty {
            guard !(host.isEmpty && ports == nil) else { throw SettingTextProblem() }
            self.host = .any
        } else if let block = AddressBlock(host) {
            self.host = .block(block)
        } else if host.contains("/") {
            throw AddressBlock.problem(String(host))
        } else {
            let name = host.lowercased()
            guard name.utf8.allSatisfy(Self.isHostByte) else {
                throw SettingTextProblem("has a character that no host name has")
            }
            guard !Self.isMeantAsAddress(name) else {
                throw SettingTextProblem(
                    "is neither an address nor a name: write 127.0.0.1, or 10.0.0.0/8 for a block")
            }
            self.host =
                name.hasPrefix(".")
                ? .domain(String(name.dropFirst())) : .glob(Glob(name))
        }
    }

    /// Whether a name ends in a number, as only an address does (URL Standard, "ends in a number"), or
    /// stands for addresses by wildcards: written otherwise, or by a name, those would not be meant.
    private static func isMeantAsAddress(_ name: String) -> Bool {
        let last = name.split(separator: ".").last ?? ""
        let isNumber = last.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
        let isHexadecimal =
            last.hasPrefix("0x") && last.dropFirst(2).allSatisfy(\.isHexDigit)
        let hasDigit = name.utf8.contains { $0 >= 0x30 && $0 <= 0x39 }
        let hasLetter = name.utf8.contains { $0 >= 0x61 || "-_".utf8.contains($0) }
        return isNumber || isHexadecimal || (hasDigit && !hasLetter)
    }

    /// Host and ports; an IPv6 address stands in brackets, or alone without a port.
    private static func split(
        _ text: String
    ) throws(SettingTextProblem) -> (host: Substring, ports: PortRange?) {
        var host = text[...]
        var rest = Substring()
        if text.hasPrefix("["), let close = text.firstIndex(of: "]") {
            let inside = text[text.index(after: text.startIndex)..<close]
            rest = text[text.index(after: close)...]
            host = inside
            if rest.hasPrefix("/") {
                let end = rest.firstIndex(of: ":") ?? rest.endIndex
                host = Substring(String(inside) + String(rest[..<end]))
                rest = rest[end...]
            }
        } else if text.filter({ $0 == ":" }).count == 1, let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
            rest = text[colon...]
        }
        guard !rest.isEmpty else { return (host, nil) }
        guard rest.hasPrefix(":") else { throw SettingTextProblem() }
        let ports = String(rest.dropFirst())
        if ports == "*" { return (host, nil) }
        return (host, try PortRange(settingText: ports))
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "*"), UInt8(ascii: "?"):
            true
        default: false
        }
    }

    package var settingText: String {
        var text: String
        switch self.host {
        case .any: text = "*"
        case .domain(let domain): text = ".\(domain)"
        case .glob(let glob): text = glob.pattern
        case .block(let block):
            text = block.description
            if block.base.family == .v6 {
                text = "[\(block.base)]"
                if block.prefixLength < 128 { text += "/\(block.prefixLength)" }
            }
        }
        if let ports = self.ports { text += ":\(ports.settingText)" }
        return text
    }

    /// Whether a host and a port are meant.
    ///
    /// - Parameters:
    ///   - host: in lower case; an IPv6 address with or without brackets. A final dot, which names the
    ///     same host, does not count.
    ///   - address: what the host led to, where that is known.
    package func matches(host: String, port: UInt16, address: IPAddress? = nil) -> Bool {
        if let ports = self.ports, !ports.ports.contains(port) { return false }
        let name = host.withoutFinalDot
        switch self.host {
        case .any: return true
        case .domain(let domain): return name == domain || name.hasSuffix(".\(domain)")
        case .glob(let glob): return glob.matches(name.utf8)
        case .block(let block):
            return (address ?? IPAddress(host: name)).map(block.containsTarget) ?? false
        }
    }
}
