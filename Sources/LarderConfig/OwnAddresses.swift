/// The addresses that lead back to the machine that connects to them, or to what serves it alone.
///
/// What listens there trusts whoever can connect: services of the machine, and of clouds what hands
/// out its credentials. A client of another machine, which could not connect there itself, is not
/// brought there by a rule that lets it go everywhere, but by one that names destinations.
extension AddressBlock {
    /// Loopback, the unspecified addresses, link-local addresses, and those at which clouds have what
    /// most have at 169.254.169.254.
    ///
    /// They are the providers' own to choose, and stand in their documents alone.
    package static let ownAddresses = [
        "127.0.0.0/8", "0.0.0.0", "169.254.0.0/16", "::1", "::", "fe80::/10",
        // AWS: the metadata of an instance, and the credentials of a pod in EKS.
        "fd00:ec2::254", "fd00:ec2::23",
        // Google, Azure (its wire server), Alibaba, Oracle, Scaleway, Linode.
        "fd20:ce::254", "168.63.129.16", "100.100.100.200", "fd00:100::100:200", "192.0.0.192",
        "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1",
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
