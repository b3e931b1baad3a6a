import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

/// The requests that are known are those of a loop, whatever the listener is that they came through.
@Suite("Requests that came before, through another door")
struct KnownRequestDoorTests {
    /// So many connections that each loop has one of them.
    private static let clients = System.coreCount * 2

    /// Has every loop know a request.
    private static func make(
        known request: String, through clients: [Peer], until end: String = "</a>"
    ) async throws {
        for client in clients {
            for _ in 0..<4 {
                let answer = try await client.answer(to: request, until: end)
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
            }
        }
    }

    /// - Parameter first: what each asks for, so that it has a session, as known requests take it for
    ///   granted.
    private static func connect(
        _ address: ListenAddress, asking first: String = get("/first")
    ) async throws -> [Peer] {
        var peers: [Peer] = []
        for _ in 0..<self.clients {
            let peer = try await Peer.connect(to: address)
            let answer = try await peer.answer(to: first, until: "</first>")
            #expect(answer.hasPrefix("HTTP/1.1 200 "))
            peers.append(peer)
        }
        return peers
    }

    @Test("are answered to nobody who has not said who he is")
    func authentication() async throws {
        let origin = StoringSession()
        let directory = OneSessionDirectory(origin.session())
        try await Fixture.run(directory: directory) { proxy in
            try await Self.make(known: get("/a"), through: Self.connect(proxy.address))
            let closed = try await proxy.server.listen(
                on: .tcp(host: "127.0.0.1", port: 0), directory: directory,
                options: ListenerOptions(authentication: ScriptedAuthenticator()))
            let first = get("/first", "Proxy-Authorization: Basic alice\r\n")
            for client in try await Self.connect(closed, asking: first) {
                for request in [get("/a"), get("/a", "X-Id: 1\r\n"), get("/a")] {
                    let answer = try await client.answer(to: request, until: "\r\n\r\n")
                    #expect(answer.hasPrefix("HTTP/1.1 407 "))
                }
            }
        }
    }

    @Test("are the proxy's own where the proxy has come to listen there")
    func own() async throws {
        let origin = StoringSession()
        let directory = OneSessionDirectory(origin.session())
        try await Fixture.run(directory: directory) { proxy in
            let early = try await Self.connect(proxy.address)
            let other = try await proxy.server.listen(
                on: .tcp(host: "127.0.0.1", port: 0), directory: directory)
            guard case .tcp(_, let port) = other else { return }
            let request =
                "GET http://127.0.0.1:\(port)/a HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n"
            // Their connections are older than the listener.
            try await Self.make(known: request, through: early)
            for client in try await Self.connect(proxy.address) {
                let answer = try await client.answer(to: request, until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 404 "))
            }
        }
    }

    /// Lets those that come by a socket go to one host alone.
    private final class NoSockets: AccessPolicy {
        let generation: UInt64? = 1

        func judge(_ query: AccessQuery) -> AccessVerdict {
            if case .ip = query.client { return .allowed }
            return query.host == "b.example" ? .allowed : .denied(rule: "a socket")
        }
    }

    @Test("are judged anew for another client")
    func client() async throws {
        let origin = StoringSession()
        let directory = OneSessionDirectory(origin.session())
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-\(UUID().uuidString.prefix(8)).sock").path
        try await Fixture.run(access: NoSockets(), directory: directory) { proxy in
            try await Self.make(known: get("/a"), through: Self.connect(proxy.address))
            let socket = try await proxy.server.listen(on: .unix(path: path), directory: directory)
            let first = "GET http://b.example/first HTTP/1.1\r\nHost: b.example\r\n\r\n"
            for client in try await Self.connect(socket, asking: first) {
                let answer = try await client.answer(to: get("/a"), until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 403 "))
            }
        }
    }

    @Test("are none where the door has a request cache policy of its own")
    func policy() async throws {
        let origin = StoringSession()
        let directory = OneSessionDirectory(origin.session())
        try await Fixture.run(directory: directory) { proxy in
            try await Self.make(known: get("/a"), through: Self.connect(proxy.address))
            let reloading = try await proxy.server.listen(
                on: .tcp(host: "127.0.0.1", port: 0), directory: directory,
                options: ListenerOptions(cachePolicy: .reloadIgnoringLocal))
            for client in try await Self.connect(reloading) {
                let answer = try await client.answer(to: get("/a"))
                #expect(answer.contains("; fwd="))
            }
            // And what was asked there is no other's.
            try await Self.make(known: get("/a"), through: Self.connect(proxy.address))
        }
    }

    @Test("with what is said to the proxy itself are understood each time")
    func said() async throws {
        let origin = StoringSession()
        let directory = OneSessionDirectory(origin.session())
        let options = ListenerOptions { _ in true }
        try await Fixture.run(directory: directory, options: options) { proxy in
            let clients = try await Self.connect(proxy.address)
            try await Self.make(known: get("/a"), through: clients)
            for client in clients {
                for number in 0..<4 {
                    for field in ["Larder-Cache-Policy", "larder-cache-policy"] {
                        let answer = try await client.answer(
                            to: get("/a", "X: \(number)\r\n\(field): reload-ignoring-local\r\n"),
                            until: "</a>")
                        #expect(answer.contains("; fwd="))
                    }
                    let plain = try await client.answer(to: get("/a", "X: \(number)\r\n"))
                    #expect(plain.contains("; hit"))
                }
            }
        }
    }
}
