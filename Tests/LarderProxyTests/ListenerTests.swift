import Glibc
import LarderHTTP
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Listeners in trouble")
struct ListenerTests {
    /// Takes all descriptors that the process may still have.
    private static func exhaust() -> [CInt] {
        var taken: [CInt] = []
        while true {
            let descriptor = dup(2)
            guard descriptor >= 0 else { return taken }
            taken.append(descriptor)
        }
    }

    /// Has the loops turn, without anything for Dispatch to do meanwhile: while there are no descriptors
    /// it ends the process as soon as it wants to know what its threads are at (`DescriptorLimit`).
    private static func turn(_ group: MultiThreadedEventLoopGroup) throws {
        for _ in 0..<1_000 { try group.next().submit {}.wait() }
    }

    /// Connects without waiting to be accepted.
    private static func connect(_ descriptor: CInt, port: UInt16) throws -> Bool {
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: Int(port))
        return unsafe address.withSockAddr { address, size in
            unsafe Glibc.connect(descriptor, address, socklen_t(size)) == 0
        }
    }

    @Test("turn no loop in vain while there is no descriptor left, and go on when there is one")
    func exhausted() async {
        await #expect(processExitsWith: .success) {
            // Others' may have been inherited.
            let free = dup(2)
            close(free)
            let most = rlim_t(free + 128)
            var limit = rlimit(rlim_cur: most, rlim_max: most)
            precondition(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let session = ScriptedSession { if $0.request.method == .get { $0.answer() } }
            try await Fixture.run(session, group: group) { proxy in
                // It is busy, and so does not give way.
                let busy = try await proxy.connect()
                try await busy.send(post("Content-Length: 5\r\n"))
                try await session.exchange()
                let late = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
                let taken = Self.exhaust()
                precondition(late >= 0 && !taken.isEmpty)
                let isConnected = try Self.connect(late, port: proxy.port)
                precondition(isConnected)
                try await proxy.events.wait(for: "the pause") { !$0.isEmpty }
                try Self.turn(group)
                let failed = proxy.server.statistics().acceptsFailed
                // Once a second, on a machine however slow.
                precondition((1...30).contains(failed), "\(failed) attempts")
                precondition(proxy.events.value.count == 1)
                for descriptor in taken { close(descriptor) }
                let peer = Peer()
                _ = try await ClientBootstrap(group: group)
                    .channelInitializer { $0.pipeline.addHandler(peer) }
                    .withConnectedSocket(late).get()
                _ = try await peer.answer(to: get(), until: "hello")
            }
        }
    }

    @Test("are opened again where an error closed them", arguments: [true, false])
    func reopened(isUnix: Bool) async throws {
        let path = "larder-listener-\(getpid())-\(isUnix).sock"
        try await Fixture.run(
            on: isUnix ? .unix(path: "/tmp/\(path)") : .tcp(host: "127.0.0.1", port: 0)
        ) { proxy in
            let kept = try await proxy.connect()
            _ = try await kept.answer(to: get(), until: "hello")
            let channels = proxy.server.state.withLock { $0.channels }
            for channel in channels { try await channel.close().get() }
            // Between them it may be said that somebody else had the port for a moment.
            try await proxy.events.wait(for: "the listener") {
                $0.first == .listenerLost(proxy.address)
                    && $0.last == .listenerReopened(proxy.address)
            }
            _ = try await proxy.connect().answer(to: get(), until: "hello")
            _ = try await kept.answer(to: get(), until: "hello")
        }
    }
}
