import NIOCore
import NIOPosix

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Why the proxy cannot listen where it was told to.
package struct ListenError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Code: String, Hashable, Sendable {
        case addressInUse
        /// No such address on this machine, or a name that does not resolve.
        case badAddress
        case permissionDenied
        /// Something that is no socket lies where one is to be.
        case notSocket
        case draining
        case other
    }

    package var code: Code
    package var address: ListenAddress
    package var detail: String

    init(_ code: Code, address: ListenAddress, detail: String) {
        self.code = code
        self.address = address
        self.detail = detail
    }

    init(_ error: any Error, address: ListenAddress) {
        if error is UnixDomainSocketPathWrongType {
            self.init(
                .notSocket, address: address, detail: "something that is no socket lies there")
            return
        }
        guard let error = error as? IOError else {
            self.init(
                error is SocketAddressError ? .badAddress : .other, address: address,
                detail: "\(error)")
            return
        }
        switch error.errnoCode {
        case EADDRINUSE:
            self.init(.addressInUse, address: address, detail: "another program listens there")
        case EADDRNOTAVAIL, ENOENT, ENOTDIR:
            self.init(.badAddress, address: address, detail: "there is no such address here")
        case EACCES, EPERM:
            self.init(.permissionDenied, address: address, detail: "not permitted")
        default:
            self.init(.other, address: address, detail: "\(error)")
        }
    }

    static func isRefusal(_ error: IOError) -> Bool { error.errnoCode == ECONNREFUSED }

    package var description: String { "cannot listen on \(self.address): \(self.detail)" }
}
