import LarderHTTP
import Synchronization
import Testing

@testable import LarderTransfer

/// Allows or prohibits addresses, and notes which it was asked about.
private final class Destinations: DestinationPolicy {
    private let prohibited: Set<String>
    private let asked = Mutex<[String]>([])

    init(prohibiting prohibited: Set<String>) {
        self.prohibited = prohibited
    }

    var addresses: [String] { self.asked.withLock { $0 } }

    func objection(_ method: Method, _ uri: TargetURI, at address: String) -> String? {
        self.asked.withLock { $0.append(address) }
        return self.prohibited.contains(address) ? "not to \(address)" : nil
    }
}

@Suite("Addresses that a request must not go to", .timeLimit(.minutes(10)))
struct DestinationTests {
    private static func serving() throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
    }

    private static func request(
        _ origin: ScriptedOrigin, host: String, _ destinations: Destinations?
    ) -> Request {
        var request = origin.request()
        request.uri = TargetURI(
            scheme: .http, host: host, port: origin.port, pathAndQuery: "/")
        request.destinations = destinations
        return request
    }

    @Test(
        "are not connected to, by whatever name they are asked for",
        arguments: ["localhost", "127.0.0.1", "2130706433", "0x7f.1"])
    func prohibited(_ host: String) async throws {
        let origin = try Self.serving()
        let none = Destinations(prohibiting: ["127.0.0.1", "::1"])
        try await withUpstream { upstream in
            let record = await upstream.answer(to: Self.request(origin, host: host, none))
            #expect(record.failure?.kind == .httpRequestDenied)
            #expect(record.failure?.party == .client)
            let allowed = Destinations(prohibiting: [])
            #expect(
                await upstream.answer(to: Self.request(origin, host: host, allowed)).text == "ok")
            #expect(!allowed.addresses.isEmpty)
        }
        #expect(origin.connectionCount == 1)
    }

    @Test("are passed over where the name leads to others, too")
    func others() async throws {
        let origin = try Self.serving()
        let some = Destinations(prohibiting: ["::1"])
        try await withUpstream { upstream in
            let record = await upstream.answer(to: Self.request(origin, host: "localhost", some))
            #expect(record.text == "ok")
        }
    }

    @Test("are not asked for over a connection that another request has made")
    func reused() async throws {
        let origin = try Self.serving()
        let none = Destinations(prohibiting: ["127.0.0.1", "::1"])
        try await withUpstream { upstream in
            for _ in 0..<2 {
                let first = await upstream.answer(to: Self.request(origin, host: "localhost", nil))
                #expect(first.text == "ok")
                let second = await upstream.answer(
                    to: Self.request(origin, host: "localhost", none))
                #expect(second.failure?.kind == .httpRequestDenied)
                #expect(second.text.isEmpty)
            }
        }
    }

    /// A parent that answers every request itself, also what it was to pass on by SOCKS5.
    private static func answering(as kind: Parent.Kind) throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            if kind == .socks5 {
                guard let greeting = connection.readRaw(2),
                    connection.readRaw(Int(greeting[1])) != nil
                else { return }
                connection.write([5, 0])
                // The name, behind its length, and the port (RFC 1928 §4).
                guard let request = connection.readRaw(5),
                    connection.readRaw(Int(request[4]) + 2) != nil
                else { return }
                connection.write([5, 0, 0, 1, 127, 0, 0, 1, 0, 0])
            }
            while connection.readHead() != nil { connection.respond("200 OK", "", "ok") }
        }
    }

    @Test(
        "are the parent's affair where there is one, also over a connection that is used again",
        arguments: [Parent.Kind.http, .socks5])
    func parent(_ kind: Parent.Kind) async throws {
        let parent = try Self.answering(as: kind)
        let none = Destinations(prohibiting: ["127.0.0.1", "::1"])
        try await withUpstream({ $0.parents = .all(parent.parent(kind)) }) { upstream in
            var request = Request.example()
            request.destinations = none
            for _ in 0..<2 { #expect(await upstream.answer(to: request).text == "ok") }
            #expect(none.addresses.isEmpty)
        }
        #expect(parent.connectionCount == 1)
    }

    @Test("are the parent's affair where it lays a tunnel to an https origin")
    func tunnel() async throws {
        let parent = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.respond("504 Gateway Timeout", "Connection: close\r\n", "")
            connection.close()
        }
        let none = Destinations(prohibiting: ["127.0.0.1", "::1"])
        try await withUpstream({ $0.parents = .all(parent.parent()) }) { upstream in
            var request = Request(
                uri: TargetURI(scheme: .https, host: "o.example", pathAndQuery: "/"))
            request.destinations = none
            // The parent was asked, and it is its answer that comes.
            #expect(await upstream.answer(to: request).failure?.kind == .connectionTimeout)
            #expect(none.addresses.isEmpty)
        }
    }
}
