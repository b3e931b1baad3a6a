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

    @Test("have a Unix socket's permissions before anybody can connect, also when opened again")
    func mode() async throws {
        let path = "/tmp/larder-listener-\(getpid())-mode.sock"
        func mode() -> mode_t {
            var status = stat()
            return unsafe stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
        }
        var options = ListenerOptions()
        options.socketMode = 0o600
        try await Fixture.run(options: options, on: .unix(path: path)) { proxy in
            #expect(mode() == 0o600)
            let channels = proxy.server.state.withLock { $0.channels }
            for channel in channels { try await channel.close().get() }
            try await proxy.events.wait(for: "the listener") {
                $0.last == .listenerReopened(proxy.address)
            }
            #expect(mode() == 0o600)
        }
    }
}

@Suite("Clients of a listener for both families (RFC 4291 §2.5.5.2)")
struct DualStackTests {
    @Test("an IPv4 client has its IPv4 address in the log and in Forwarded")
    func mapped() async throws {
        try await Fixture.run(
            on: .tcp(host: "::", port: 0), configure: { $0.addsForwarded = true }
        ) { proxy in
            let client = try await Peer.connect(to: .tcp(host: "127.0.0.1", port: proxy.port))
            _ = try await client.answer(to: get(), until: "hello")
            let request = try await proxy.session.exchange().request
            #expect(request.fields.string("forwarded")?.contains("for=127.0.0.1;") == true)
            #expect(try await proxy.log.entry().client.text == "127.0.0.1")
        }
    }
}
