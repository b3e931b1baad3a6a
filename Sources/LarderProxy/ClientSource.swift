/// Where a client comes from, as far as clients are told apart when they are counted.
package enum ClientSource: Hashable, Sendable {
    case v4(UInt128)
    /// The first half of the address: the other is the client's own to choose (RFC 4291 §2.5.4).
    case v6(UInt128)
    case unix(UInt32?)

    package init(_ client: ClientAddress) {
        switch client {
        case .ip(let address, _, _): self.init(address)
        case .unix(let peer): self = .unix(peer?.uid)
        }
    }

    init(_ address: IPAddress) {
        self = address.isIPv4 ? .v4(address.bits) : .v6(address.bits >> 64)
    }
}
