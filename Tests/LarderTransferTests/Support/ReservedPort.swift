import Glibc
import Testing

/// A port of 127.0.0.1 that the kernel gives to nobody else while this lives, and on which nobody listens
/// but a program of this user that binds it with SO_REUSEPORT (socket(7)).
///
/// A port that was free once may be another test's by the time that a server binds it.
final class ReservedPort {
    let port: UInt16
    private let socket: Int32

    init() throws {
        let socket = Glibc.socket(
            AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(socket >= 0)
        self.socket = socket
        var on: Int32 = 1
        let code = unsafe setsockopt(
            socket, SOL_SOCKET, SO_REUSEPORT, &on, socklen_t(MemoryLayout<Int32>.size))
        try #require(code == 0)
        self.port = try #require(ScriptedOrigin.bind(socket))
    }

    deinit { close(self.socket) }
}
