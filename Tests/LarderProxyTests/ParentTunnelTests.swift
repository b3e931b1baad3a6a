import Foundation
import Glibc
import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

/// A dialer that leads every destination but `direct.example` to one port of this machine.
private final class ScriptedDialer: TunnelDialer {
    enum Script: Sendable {
        case connect(port: Int)
        case fail(UpstreamFailure)
        /// Neither, ever.
        case hang
    }

    final class Dial: TunnelDial {
        let isCancelled = Event(false)

        func cancel() { self.isCancelled.change { $0 = true } }
    }

    let asked = Event<[String]>([])
    let shown = Event<[Fields]>([])
    let dial = Dial()
    private let script: Script

    init(_ script: Script) { self.script = script }

    func dial(
        host: String, port: UInt16, via: Fields,
        completion: @escaping @Sendable (Result<DialledSocket, UpstreamFailure>) -> Void
    ) -> (any TunnelDial)? {
        self.asked.change { $0.append("\(host):\(port)") }
        self.shown.change { $0.append(via) }
        if host == "localhost" { return nil }
        switch self.script {
        case .connect(let port):
            Thread.detachNewThread { completion(Self.connected(port)) }
        case .fail(let failure):
            completion(.failure(failure))  // As early as the port allows.
        case .hang: break
        }
        return self.dial
    }

    private static func connected(_ port: Int) -> Result<DialledSocket, UpstreamFailure> {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // The fields of `sockaddr_in` belong to one module or another, depending on what was read before.
        let address = try? SocketAddress(ipAddress: "127.0.0.1", port: port)
        let isConnected = unsafe address?.withSockAddr { pointer, size in
            unsafe Glibc.connect(descriptor, pointer, socklen_t(size)) == 0
        }
        guard isConnected == true else {
            return .failure(UpstreamFailure(.connectionRefused, detail: "not connected"))
        }
        return .success(DialledSocket(descriptor))
    }
}

/// Allows every host and no address: what judges by address refuses.
private final class HostsOnly: AccessPolicy {
    func judge(_ query: AccessQuery) -> AccessVerdict {
        query.address == nil ? .allowed : .denied(rule: "an address")
    }
}

@Suite("Tunnels and upgrades through a parent (RFC 9110 §9.3.6, §7.8)")
struct ParentTunnelTests {
    private static let request =
        "CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\r\n"

    @Test("carry bytes over the connection that the session's dialer made")
    func tunnel() async throws {
        let origin = try await RawOrigin.start()
        let dialer = ScriptedDialer(.connect(port: origin.port))
        // Rules on addresses are about direct dials: the parent's own is not the destination's.
        try await Fixture.run(ScriptedSession(dialer: dialer), access: HostsOnly()) { proxy in
            let client = try await proxy.connect()
            try await client.send(Self.request + "ahead")
            let far = try await origin.accepted()
            try await far.received("ahead")
            try await far.send("back")
            try await client.received("\r\n\r\nback")
            try await client.endOutput()
            #expect(try await far.receivedAll() == "ahead")
            try await far.endOutput()
            let entry = try await proxy.log.entry()
            #expect(entry.isTunnel)
            #expect(entry.origin.address == "127.0.0.1:\(origin.port)")
            #expect(entry.origin.isParent)
            #expect(dialer.asked.value == ["far.example:443"])
        }
        try await origin.stop()
    }

    @Test("show the parent the way that the request has come (RFC 9110 §7.6.3)")
    func via() async throws {
        var failure = UpstreamFailure(.proxyLoopDetected, detail: "CONNECT: 508")
        failure.hop = NextHop(address: "parent.example:3128", isParent: true)
        let dialer = ScriptedDialer(.fail(failure))
        try await Fixture.run(ScriptedSession(dialer: dialer)) { proxy in
            let client = try await proxy.connect()
            let head = Self.request.dropLast()  // CR LF is one character.
            try await client.send(head + "Via: 1.0 before\r\nX-Mine: 1\r\n\r\n")
            try await client.received("HTTP/1.1 502 ")
            try await client.received("error=proxy_loop_detected")
            let shown = dialer.shown.value.first?.values(FieldName(.via)).map {
                String(decoding: $0, as: UTF8.self)
            }
            #expect(shown?.count == 2)
            #expect(shown?.first == "1.0 before")
            #expect(shown?.last?.hasPrefix("1.1 ") == true)
            #expect(dialer.shown.value.first?.lines.count == 2)
        }
    }

    @Test("are direct where the dialer says so, and then judged by address")
    func direct() async throws {
        let origin = try await RawOrigin.start()
        let dialer = ScriptedDialer(.hang)
        try await Fixture.run(
            ScriptedSession(dialer: dialer), access: HostsOnly(),
            configure: { $0.connectPorts = [UInt16(origin.port)] }
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.connect(origin, "localhost"))
            try await client.received("HTTP/1.1 403 ")
            #expect(try await proxy.log.entry().rule == "an address")
            #expect(dialer.asked.value == ["localhost:\(origin.port)"])
        }
        try await origin.stop()
    }

    @Test("that the parent refuses are answered with its name in Proxy-Status (RFC 9209 §2.1.2)")
    func refused() async throws {
        var failure = UpstreamFailure(.destinationUnavailable, detail: "CONNECT: 403")
        failure.hop = NextHop(address: "parent.example:3128", isParent: true)
        let dialer = ScriptedDialer(.fail(failure))
        try await Fixture.run(ScriptedSession(dialer: dialer)) { proxy in
            let client = try await proxy.connect()
            try await client.send(Self.request)
            try await client.received("HTTP/1.1 503 ")
            try await client.received(
                "error=destination_unavailable; next-hop=\"parent.example:3128\"")
        }
    }

    @Test("ask for a switch of protocols through the parent's tunnel")
    func upgrade() async throws {
        let origin = try await RawOrigin.start()
        let dialer = ScriptedDialer(.connect(port: origin.port))
        try await Fixture.run(ScriptedSession(dialer: dialer)) { proxy in
            let client = try await proxy.connect()
            try await client.send(
                "GET http://far.example/chat HTTP/1.1\r\nHost: far.example\r\n"
                    + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            let far = try await origin.accepted()
            try await far.received("GET /chat HTTP/1.1\r\nHost: far.example\r\n")
            try await far.received("Upgrade: websocket\r\n\r\n")
            try await far.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\n\r\nfirst")
            try await client.received("\r\n\r\nfirst")
            #expect(dialer.asked.value == ["far.example:80"])
        }
        try await origin.stop()
    }

    @Test("are given up when the client leaves")
    func leaving() async throws {
        let dialer = ScriptedDialer(.hang)
        try await Fixture.run(ScriptedSession(dialer: dialer)) { proxy in
            let client = try await proxy.connect()
            try await client.send(Self.request)
            try await dialer.asked.wait(for: "the dial") { !$0.isEmpty }
            try await client.reset()
            try await dialer.dial.isCancelled.wait(for: "its end") { $0 }
        }
    }
}
