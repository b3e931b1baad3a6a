import Foundation
import Glibc
import Synchronization
import Testing

@testable import LarderDaemon

@Suite("The service manager")
struct ServiceManagerTests {
    /// Its end of the socket.
    private final class Manager {
        let file: CInt

        init(_ name: [UInt8]) throws {
            self.file = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
            try #require(self.file >= 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
            let length = socklen_t(2 + name.count)
            let status = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(self.file, $0, length)
                }
            }
            try #require(status == 0)
        }

        deinit { close(self.file) }

        /// What has come; a datagram is there when its sending has returned.
        func heard() -> String? {
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = unsafe recv(self.file, &bytes, bytes.count, CInt(MSG_DONTWAIT))
            return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
        }
    }

    @Test("hears what it is told, at a path")
    func path() throws {
        let path = "/tmp/larder-notify-\(UUID().uuidString)"
        let manager = try Manager(Array(path.utf8))
        defer { _ = unsafe unlink(path) }
        ServiceManager.tell("READY=1", socket: path)
        #expect(manager.heard() == "READY=1")
    }

    @Test("hears it at a name without a file, which is no longer than it is")
    func abstract() throws {
        let name = "larder-notify-\(UUID().uuidString)"
        let manager = try Manager([0] + Array(name.utf8))
        ServiceManager.tell("STOPPING=1", socket: "@\(name)")
        #expect(manager.heard() == "STOPPING=1")
    }

    @Test(
        "that is not there, or cannot be, is not told",
        arguments: [
            nil, "", "relative", "/nowhere", "vsock:2:1", String(repeating: "/x", count: 99),
        ])
    func nobody(_ socket: String?) {
        ServiceManager.tell("READY=1", socket: socket)
    }
}

@Suite("A start that takes long")
struct StartWatchTests {
    @Test("is granted more time as long as it gets on, and goes on until a signal ends it")
    func watch() {
        let told = Mutex<[String]>([])
        let watch = StartWatch { line in told.withLock { $0.append(line) } }
        let start = ContinuousClock.now
        for seconds in [0, 1, 4, 5, 9, 10] {
            #expect(watch.mayGoOn(at: start + .seconds(seconds)))
        }
        #expect(!watch.isEnded)
        watch.end()
        #expect(watch.isEnded && !watch.mayGoOn(at: start + .seconds(60)))
        let line = "EXTEND_TIMEOUT_USEC=60000000"
        #expect(told.withLock { $0 } == [line, line, line])
    }
}
