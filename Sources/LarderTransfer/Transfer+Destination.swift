import CCurl
import Glibc
import LarderHTTP

/// The addresses that a transfer may be connected to (`DestinationPolicy`).
///
/// Asked where libcurl makes a connection, before a packet goes there, and where it uses one again,
/// which another client's request may have made. Where there is a parent, what libcurl shows is the
/// parent's address, whether the parent gets the request or lays a tunnel: no client has chosen that.
extension Transfer {
    /// Whether libcurl may try this address; where it may not, the next one of the name is tried.
    ///
    /// For its data an FTP server names a port, which no access rule was asked about: none below 1024,
    /// where other services of the host listen.
    func mayTry(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
        guard self.way.parent == nil else { return true }
        if self.isFTP, let port = unsafe Self.port(of: address), port < 1024,
            port != self.request.uri.port
        {
            self.dataObjection = "the FTP server names port \(port) for its data"
            return false
        }
        guard let policy = self.request.destinations else { return true }
        let text = unsafe Self.text(of: address) ?? ""
        guard let detail = policy.objection(self.request.method, self.request.uri, at: text) else {
            return true
        }
        self.addressObjection = detail
        return false
    }

    /// Why the request must not go out on a connection to this address; nil: it may.
    func objection(to address: String) -> UpstreamFailure? {
        guard self.way.parent == nil, let policy = self.request.destinations,
            let detail = policy.objection(self.request.method, self.request.uri, at: address)
        else { return nil }
        return Self.prohibited(detail)
    }

    /// The client's fault, so that nothing stale stands in for it and nobody else's request fails by it.
    static func prohibited(_ detail: String) -> UpstreamFailure {
        UpstreamFailure(.httpRequestDenied, party: .client, detail: detail)
    }

    /// An address without its port; nil for a family that has no such text.
    private static func text(of address: UnsafePointer<curl_sockaddr>) -> String? {
        guard let bytes = unsafe Self.bytes(of: address) else { return nil }
        return unsafe withUnsafeTemporaryAllocation(
            of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)
        ) { text in
            let family = unsafe address.pointee.family
            guard let start = text.baseAddress, let first = bytes.baseAddress,
                let written = unsafe inet_ntop(family, first, start, socklen_t(text.count))
            else { return nil }
            return unsafe String(cString: written)
        }
    }

    /// The port of an address; nil for a family that is not of IP.
    private static func port(of address: UnsafePointer<curl_sockaddr>) -> UInt16? {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr),
            [AF_INET, AF_INET6].contains(unsafe address.pointee.family)
        else { return nil }
        // At the same place in both (`in_port_t`, behind the family).
        let start = unsafe UnsafeRawPointer(address) + offset
        return UInt16(
            bigEndian: unsafe start.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }

    /// Whether an address is one of loopback (RFC 6890 §2.2).
    static func isLoopback(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
        guard let bytes = unsafe Self.bytes(of: address) else { return false }
        return switch unsafe address.pointee.family {
        case AF_INET: unsafe bytes.first == 127
        default: unsafe bytes.last == 1 && bytes.dropLast().allSatisfy { $0 == 0 }
        }
    }

    /// The bytes of an address without its port; nil for a family that is not of IP.
    private static func bytes(
        of address: UnsafePointer<curl_sockaddr>
    ) -> UnsafeRawBufferPointer? {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
        let (place, count): (Int?, Int) =
            switch unsafe address.pointee.family {
            case AF_INET: (MemoryLayout<sockaddr_in>.offset(of: \.sin_addr), 4)
            case AF_INET6: (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr), 16)
            default: (nil, 0)
            }
        guard let place else { return nil }
        // The address is longer than the `sockaddr` that the field is declared as.
        let start = unsafe UnsafeRawPointer(address) + offset + place
        return unsafe UnsafeRawBufferPointer(start: start, count: count)
    }
}
