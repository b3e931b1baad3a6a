import Glibc
import LarderConfig
import NIOCore
import Testing

@testable import LarderDaemon
@testable import LarderProxy

@Suite("A place where the proxy cannot listen")
struct ListenErrorTests {
    @Test(
        "is told with what helps, and ends with the status of it",
        arguments: [
            ("127.0.0.1:80", EACCES, .notPermitted, "CapabilityBoundingSet="),
            ("unix:/run/x", EACCES, .notPermitted, "let this user write to its directory"),
            ("127.0.0.1:80", EADDRINUSE, .unavailable, "stop whoever listens there"),
            ("192.0.2.1:80", EADDRNOTAVAIL, .unavailable, "give the listener another address"),
        ] as [(String, CInt, DaemonError.Code, String)])
    func told(_ text: String, _ code: CInt, _ expected: DaemonError.Code, _ remedy: String) throws {
        let address = try LarderConfig.ListenAddress(settingText: text)
        let failure = ListenError(
            IOError(errnoCode: code, reason: "bind"), address: LarderProxy.ListenAddress(address))
        let error = ProxyParts.error(failure, address)
        #expect(error.code == expected)
        #expect(error.description.hasPrefix("cannot listen on \(text): "))
        #expect(error.description.contains(remedy))
    }
}
