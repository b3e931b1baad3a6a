/// Whose connections are counted together: those from one IPv4 address, or from one /64 of IPv6.
///
/// A machine takes as many addresses of its /64 as it likes (RFC 4291 §2.5.4, RFC 8981).
struct ClientNetwork: Hashable, Sendable {
    private let address: IPAddress

    init(of address: IPAddress) {
        self.address = address.isIPv4 ? address : IPAddress(v6: (address.bits >> 64) << 64)
    }
}
