package import LarderHTTP

/// A pattern for the host of a destination.
package enum HostPattern: Hashable, Sendable {
    case any
    /// That name, or that IPv4 or bracketed IPv6 literal, in lower case.
    case exactly(String)
    /// Names that end in `.` and this, not the name itself.
    case below(String)
    /// Addresses of a block. Matches hosts written as addresses; names are not resolved for it,
    /// except that a tunnel's destination is judged again by the address it got.
    case block(AddressBlock)

    /// `*`, `example.com`, `*.example.com`, `192.0.2.0/24`, `2001:db8::1`; nil where none is meant.
    package init?(_ text: String) {
        let lower = text.lowercased()
        if lower == "*" {
            self = .any
        } else if let block = AddressBlock(lower) {
            self = .block(block)
        } else if lower.hasPrefix("*."), Self.isName(lower.dropFirst(2)) {
            self = .below(String(lower.dropFirst(2)))
        } else if Self.isName(lower[...]) {
            self = .exactly(lower)
        } else {
            return nil
        }
    }

    private static func isName(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                ASCII.isDigit($0) || ASCII.lowercased($0) &- 0x61 < 26
                    || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
                    || $0 == UInt8(ascii: "_")
            }
    }

    /// - Parameter address: `host` as an address, where it is one.
    func matches(_ host: String, address: IPAddress?) -> Bool {
        switch self {
        case .any: true
        case .exactly(let name): name == Self.withoutFinalDot(host)
        case .below(let name):
            Self.withoutFinalDot(host).utf8.count > name.utf8.count + 1
                && Self.withoutFinalDot(host).hasSuffix("." + name)
        case .block(let block): address.map(block.contains) ?? false
        }
    }

    /// `example.com.` is the same host as `example.com`; a rule must not be passed by the dot.
    private static func withoutFinalDot(_ host: String) -> String {
        host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
    }
}

/// One rule: it applies where each of its lists, unless empty, has a match.
package struct AccessRule: Hashable, Sendable {
    package enum Effect: String, Hashable, Sendable { case allow, deny }

    package var effect: Effect
    /// Where they connect from, empty for anywhere; a Unix socket counts as loopback.
    package var clients: [AddressBlock]
    package var hosts: [HostPattern]
    package var ports: [ClosedRange<UInt16>]
    package var methods: [Method]

    package init(
        _ effect: Effect, clients: [AddressBlock] = [], hosts: [HostPattern] = [],
        ports: [ClosedRange<UInt16>] = [], methods: [Method] = []
    ) {
        self.effect = effect
        self.clients = clients
        self.hosts = hosts
        self.ports = ports
        self.methods = methods
    }

    func applies(to query: AccessQuery, destination: IPAddress?) -> Bool {
        (self.clients.isEmpty || self.clientMatches(query.client))
            && (self.methods.isEmpty || self.methods.contains(query.method))
            && (self.ports.isEmpty || self.ports.contains { $0.contains(query.port) })
            && (self.hosts.isEmpty
                || self.hosts.contains { $0.matches(query.host, address: destination) })
    }

    private func clientMatches(_ client: ClientAddress) -> Bool {
        switch client {
        case .ip(let address, _, _): self.clients.contains { $0.contains(address) }
        case .unix: self.clients.contains { $0.contains(IPAddress(v4: 0x7F00_0001)) }
        }
    }
}

/// Rules in order: the first that applies decides.
///
/// As it comes, clients on this machine may go anywhere, and others nowhere: what listens beyond
/// loopback must say for whom.
package struct AccessRules: AccessPolicy, Hashable {
    package let rules: [AccessRule]
    /// What happens where no rule applies.
    package let fallback: AccessRule.Effect
    /// Whether any rule needs the destination as an address.
    private let looksAtAddresses: Bool

    package init(
        _ rules: [AccessRule] = [AccessRule(.allow, clients: AddressBlock.loopback)],
        fallback: AccessRule.Effect = .deny
    ) {
        self.rules = rules
        self.fallback = fallback
        self.looksAtAddresses = rules.contains { rule in
            rule.hosts.contains { if case .block = $0 { true } else { false } }
        }
    }

    package func judge(_ query: AccessQuery) -> AccessVerdict {
        let destination = self.looksAtAddresses ? IPAddress(query.host) : nil
        for (index, rule) in self.rules.enumerated()
        where rule.applies(to: query, destination: destination) {
            return rule.effect == .allow ? .allowed : .denied(rule: "rule \(index + 1)")
        }
        return self.fallback == .allow ? .allowed : .denied(rule: "no rule")
    }
}
