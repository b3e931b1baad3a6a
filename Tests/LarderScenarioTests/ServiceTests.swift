import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("The daemon as a service", .timeLimit(.minutes(10)))
struct ServiceTests {
    /// The socket of a service manager.
    private final class Manager: Sendable {
        let name: String
        private let file: CInt

        init() throws {
            self.name = "larder-notify-\(UUID().uuidString)"
            self.file = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let bytes = [0] + Array(self.name.utf8)
            unsafe withUnsafeMutableBytes(of: &address.sun_path) {
                unsafe $0.copyBytes(from: bytes)
            }
            let length = socklen_t(2 + bytes.count)
            let status = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(self.file, $0, length)
                }
            }
            var limit = timeval(tv_sec: 60, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            let isLimited = unsafe setsockopt(self.file, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            try #require(status == 0 && isLimited == 0)
        }

        deinit { close(self.file) }

        /// The next of what it is told; nil after a minute.
        func hears() async -> String? {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    var bytes = [UInt8](repeating: 0, count: 256)
                    let count = unsafe recv(self.file, &bytes, bytes.count, 0)
                    continuation.resume(
                        returning: count < 0
                            ? nil : String(decoding: bytes.prefix(count), as: UTF8.self))
                }
            }
        }
    }

    @Test("tells the service manager when clients can connect, when it reloads, and when it stops")
    func notifies() async throws {
        try await Scene.inTurn {
            let manager = try Manager()
            let home = try Home()
            try home.configure("")
            let proxy = try await home.serve(variables: ["NOTIFY_SOCKET": "@\(manager.name)"])
            #expect(await manager.hears() == "READY=1")
            proxy.program.signal(SIGHUP)
            let reloading = await manager.hears() ?? ""
            #expect(reloading.hasPrefix("RELOADING=1\nMONOTONIC_USEC="), "\(reloading)")
            #expect(await manager.hears() == "READY=1")
            proxy.program.signal(SIGTERM)
            #expect(await manager.hears() == "STOPPING=1")
            #expect(try await proxy.program.ended().status == 0)
        }
    }

    @Test("keeps its settings where --listen moves it, and does not start where they would be lost")
    func listen() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(
                "listeners: [{address: '127.0.0.1:1', cache-policy: return-cache-dont-load}]")
            let words = ["serve", "--config", home.configuration, "--listen"]
            let lost = try await home.start(
                words + ["127.0.0.1:0", "--listen", "127.0.0.1:2"]
            ).ended()
            #expect(lost.status == 64)
            #expect(lost.errText.contains("127.0.0.1:1"))
            let wrong = try await home.start(words + ["nowhere"]).ended()
            #expect(wrong.status == 64)
        }
    }

    /// A socket that listens on a free port of loopback, as a socket unit's.
    private static func listening() throws -> (descriptor: CInt, port: UInt16) {
        let file = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(file, $0, size) | Glibc.listen(file, 16) | getsockname(file, $0, &size)
            }
        }
        try #require(file >= 0 && status == 0)
        return (file, UInt16(bigEndian: address.sin_port))
    }

    private static let question = "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"

    /// The proxy, told that it was given `count` sockets, of which it has one.
    private static func serve(
        _ home: Home, on socket: CInt, count: Int = 1
    ) async throws -> ProxyProcess {
        // The shell's process becomes the proxy's.
        let program = try Program(
            "/bin/sh",
            [
                "-c", "LISTEN_PID=$$ exec \"$0\" \"$@\"", Program.larder, "serve", "--config",
                home.configuration,
            ], environment: home.environment.merging(["LISTEN_FDS": "\(count)"]) { $1 },
            descriptors: [socket])
        let proxy = ProxyProcess(program)
        try await proxy.announced()
        return proxy
    }

    @Test("serves on the service manager's socket, and refuses nobody between two processes")
    func inherits() async throws {
        try await Scene.inTurn {
            let (socket, port) = try Self.listening()
            defer { close(socket) }
            let home = try Home()
            try home.configure("listeners: [{address: '127.0.0.1:\(port)'}]")
            let first = try await Self.serve(home, on: socket)
            #expect(first.port == Int(port))
            let client = try await first.connect()
            try await client.send(Self.question)
            #expect(try await client.message(to: "OPTIONS").status == 200)
            first.program.signal(SIGTERM)
            #expect(try await first.program.ended().status == 0)
            // There is no process now: this one waits in the socket's queue.
            let waiting = try await Wire.connect(port: Int(port))
            try await waiting.send(Self.question)
            let second = try await Self.serve(home, on: socket)
            #expect(second.port == Int(port))
            #expect(try await waiting.message(to: "OPTIONS").status == 200)
        }
    }

    @Test("says which of the service manager's sockets it does not serve")
    func unwanted() async throws {
        try await Scene.inTurn {
            let (socket, port) = try Self.listening()
            defer { close(socket) }
            let home = try Home()
            try home.configure("")
            let proxy = try await Self.serve(home, on: socket, count: 2)
            #expect(proxy.log.contains("127.0.0.1:\(port)"))
            #expect(proxy.log.contains("it does not listen"))
        }
    }

    @Test("takes its configuration from a pipe, which is read once, and a reload is refused")
    func pipedConfiguration() async throws {
        try await Scene.inTurn {
            let home = try Home()
            // A small document goes to the program by a pipe.
            let script = """
                exec "$0" serve --config /dev/stdin <<END
                listeners: [{address: '127.0.0.1:0'}]
                access: [{action: deny}]
                END
                """
            let program = try home.start(["-c", script, Program.larder], path: "/bin/sh")
            let proxy = ProxyProcess(program)
            try await proxy.announced()
            #expect(try await proxy.get("http://a.example/").status == 403)
            program.signal(SIGHUP)
            try await program.said("cannot be read again")
            #expect(try await proxy.get("http://a.example/").status == 403)
            #expect(try await proxy.stop().status == 0)
        }
    }
}
