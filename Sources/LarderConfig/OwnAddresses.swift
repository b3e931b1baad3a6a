/// The addresses that lead back to the machine that connects to them, or to what serves it alone.
///
/// What listens there trusts whoever can connect: services of the machine, and of clouds what hands
/// out its credentials. A client of another machine, which could not connect there itself, is not
/// brought there by a rule that lets it go everywhere, but by one that names destinations.
extension AddressBlock {
    /// Loopback, the unspecified addresses, link-local addresses, and the address at which AWS has
    /// what other clouds have at 169.254.169.254.
    package static let ownAddresses = [
        "127.0.0.0/8", "0.0.0.0", "169.254.0.0/16", "::1", "::", "fe80::/10", "fd00:ec2::254",
    ].compactMap { AddressBlock($0) }
}

extension AccessQuestion {
    /// Whether the host is, or has led to, an address of this machine's own.
    package var leadsBack: Bool {
        guard let target = self.address ?? IPAddress(host: self.host.withoutFinalDot) else {
            return false
        }
        return target.whereConnectionsMayEnd.contains { address in
            AddressBlock.ownAddresses.contains { $0.contains(address) }
        }
    }
}

extension ClientFacts {
    /// Whether it has come from this machine: by a Unix socket, or from a loopback address.
    package var isOfThisMachine: Bool { self.address?.isLoopback ?? true }
}

extension IPAddress {
    fileprivate var isLoopback: Bool {
        self.family == .v4 ? self.value >> 24 == 127 : self.value == 1
    }
}

extension AccessRule {
    /// Whether it allows without naming destinations.
    var allowsEverything: Bool { self.action == .allow && self.destinations.isEmpty }

    /// Whether it could bring clients of other machines back to this one.
    package var mayLeadBack: Bool {
        self.allowsEverything
            && (self.clients.isEmpty || self.clients.contains { $0.mayBeElsewhere })
    }
}

extension ClientPattern {
    fileprivate var mayBeElsewhere: Bool {
        switch self {
        case .anyone, .user: true
        case .unix, .uid: false
        case .block(let block): !(block.base.isLoopback && block.prefixLength >= 8)
        }
    }
}
