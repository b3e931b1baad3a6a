import Glibc
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderProxy

@Suite("Listeners in trouble")
struct ListenerTests {
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
