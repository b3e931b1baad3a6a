import Foundation
import Glibc
import LarderProxy
import NIOCore
import Testing

@testable import LarderDaemon

@Suite("Sockets of the service manager's (sd_listen_fds(3))")
struct InheritedSocketsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let pid: String?
        let count: String?
        let found: Range<CInt>

        var testDescription: String {
            "LISTEN_PID=\(self.pid ?? "") LISTEN_FDS=\(self.count ?? "")"
        }
    }

    @Test(
        "are counted from 3 on, where they are for this process",
        arguments: [
            Case(pid: "100", count: "1", found: 3..<4),
            Case(pid: "100", count: "3", found: 3..<6),
            Case(pid: "101", count: "1", found: 3..<3),
            Case(pid: nil, count: "1", found: 3..<3),
            Case(pid: "100", count: nil, found: 3..<3),
            Case(pid: "100", count: "0", found: 3..<3),
            Case(pid: "100", count: "-1", found: 3..<3),
            Case(pid: "100", count: "one", found: 3..<3),
            Case(pid: "", count: "1", found: 3..<3),
            Case(pid: "100", count: "2147483647", found: 3..<3),
            Case(pid: "100", count: "99999999999999999999", found: 3..<3),
        ])
    func counted(_ one: Case) {
        let found = InheritedSockets.descriptors(pid: one.pid, count: one.count, own: 100)
        #expect(found == one.found)
    }

    @Test("are no more than there can be descriptors")
    func bounded() {
        let found = InheritedSockets.descriptors(pid: "1", count: "2147483000", own: 1)
        #expect(found.count < 2_147_483_000)
    }

    @Test("are told by the addresses that listeners would have")
    func told() throws {
        let sockets: [InheritedSockets.Inherited] = [
            .init(descriptor: 3, address: try SocketAddress(ipAddress: "127.0.0.1", port: 49041)),
            .init(descriptor: 4, address: try SocketAddress(ipAddress: "::1", port: 3128)),
            .init(descriptor: 5, address: try SocketAddress(unixDomainSocketPath: "/run/s")),
            .init(descriptor: 6, address: nil),
        ]
        let addresses = sockets.map { $0.listenAddress?.description }
        #expect(addresses == ["127.0.0.1:49041", "[::1]:3128", "unix:/run/s", nil])
        for (socket, address) in zip(sockets, addresses) {
            #expect(socket.remedy.contains("address: \"\(address ?? "")\"") == (address != nil))
        }
    }

    @Test("belong to the listener that has their address")
    func matched() throws {
        let sockets = InheritedSockets([
            .init(descriptor: 3, address: try SocketAddress(ipAddress: "127.0.0.1", port: 3128)),
            .init(descriptor: 4, address: try SocketAddress(ipAddress: "::", port: 3128)),
            .init(descriptor: 5, address: try SocketAddress(unixDomainSocketPath: "/run/s")),
            .init(descriptor: 6, address: nil),
        ])
        #expect(sockets.descriptor(for: .tcp(host: "127.0.0.1", port: 3128)) == 3)
        #expect(sockets.descriptor(for: .tcp(host: "localhost", port: 3128)) == 3)
        #expect(sockets.descriptor(for: .tcp(host: "0:0::0", port: 3128)) == 4)
        #expect(sockets.descriptor(for: .unix(path: "/run/s")) == 5)
        #expect(sockets.descriptor(for: .tcp(host: "127.0.0.1", port: 3129)) == nil)
        #expect(sockets.descriptor(for: .tcp(host: "127.0.0.2", port: 3128)) == nil)
        #expect(sockets.descriptor(for: .unix(path: "/run/t")) == nil)
    }
}
