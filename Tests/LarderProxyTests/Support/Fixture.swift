import LarderHTTP
import LarderSession
import NIOPosix
import Testing

@testable import LarderProxy

/// A proxy on a fresh port of loopback, with a scripted session behind it.
struct Fixture {
    let server: ProxyServer
    let address: ListenAddress
    let session: ScriptedSession
    let log: LogRecorder
    let events: Event<[ProxyEvent]>

    static let now = Timestamp(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    /// Runs `body` with a proxy and drains it, which must leave nothing open.
    static func run(
        _ session: ScriptedSession = ScriptedSession(), access: any AccessPolicy = LocalClients(),
        group: MultiThreadedEventLoopGroup = .singleton, directory: (any SessionDirectory)? = nil,
        options: ListenerOptions = ListenerOptions(),
        on listens: ListenAddress = .tcp(host: "127.0.0.1", port: 0),
        configure: (inout ProxyConfiguration) -> Void = { _ in },
        resolver: NameResolver = NameResolver(),
        clock: @escaping @Sendable () -> Timestamp = { Self.now },
        _ body: (Fixture) async throws -> Void
    ) async throws {
        var configuration = ProxyConfiguration()
        configuration.pseudonym = "pantry"
        configure(&configuration)
        let log = LogRecorder()
        let events = Event<[ProxyEvent]>([])
        let server = ProxyServer(
            group: group, configuration: configuration, access: access, log: log,
            report: { event in events.change { $0.append(event) } }, resolver: resolver,
            clock: clock)
        let address = try await server.listen(
            on: listens, directory: directory ?? OneSessionDirectory(session), options: options)
        let fixture = Fixture(
            server: server, address: address, session: session, log: log, events: events)
        do {
            try await body(fixture)
        } catch {
            await server.drain(within: .zero)
            throw error
        }
        await server.drain(within: .zero)
        let statistics = server.statistics()
        if statistics.connectionsOpen != 0 || statistics.tunnelsOpen != 0 {
            throw TimedOut(description: "left open: \(statistics)")
        }
    }

    func connect(reads: Bool = true) async throws -> Peer {
        try await Peer.connect(to: self.address, reads: reads)
    }

    var port: UInt16 {
        if case .tcp(_, let port) = self.address { port } else { 0 }
    }
}

/// A GET in absolute form.
func get(_ path: String = "/", _ fields: String = "", version: String = "1.1") -> String {
    "GET http://a.example\(path) HTTP/\(version)\r\nHost: a.example\r\n\(fields)\r\n"
}

/// Checks that a client received answers with these bodies, each one letter so many times, and no
/// more.
func expect(_ received: String, isAnswersOf bodies: [(letter: String, count: Int)]) throws {
    var rest = Array(received.utf8)[...]
    for (letter, count) in bodies {
        let end = try #require(rest.firstRange(of: Array("\r\n\r\n".utf8)))
        rest = rest[end.upperBound...]
        #expect(rest.prefix(count).elementsEqual(String(repeating: letter, count: count).utf8))
        rest = rest.dropFirst(count)
    }
    #expect(rest.isEmpty)
}
