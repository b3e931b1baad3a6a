import Foundation
import Glibc
import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("Tunnels through a parent (RFC 9110 §9.3.6, RFC 1928)", .timeLimit(.minutes(10)))
struct TunnelTests {
    /// Reads from a dialled socket until `count` bytes came; blocking, on a thread of its own.
    private func read(_ descriptor: Int32, _ count: Int) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let connection = OriginConnection(descriptor, index: 0)
                // NIO and libcurl want it non-blocking, this does not.
                let flags = fcntl(descriptor, F_GETFL)
                _ = fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK)
                connection.write("ping")
                continuation.resume(returning: connection.read(count) ?? "")
            }
        }
    }

    @Test("are laid by CONNECT alone; what comes right behind the answer is the tunnel's")
    func early() async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            guard let head = connection.readHead() else { return }
            notes.add(head.components(separatedBy: "\r\n")[0])
            notes.add(field("Host", in: head) ?? "")
            notes.add(field("Via", in: head) ?? "")
            notes.add(field("Proxy-Authorization", in: head) ?? "")
            connection.write("HTTP/1.1 200 Fine\r\nX: 1\r\n\r\nSSH-2.0-early")
            notes.add(connection.read(4) ?? "")
            connection.write(" and late")
            _ = connection.waitForEnd()
        }
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .basic, as: .alice)) }) {
            upstream in
            let socket = try #require(await upstream.dialled()).get()
            let descriptor = try #require(socket.take())
            #expect(socket.take() == nil)
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            #expect(await self.read(descriptor, 22) == "SSH-2.0-early and late")
        }
        #expect(
            notes.all == [
                "CONNECT origin.example:2222 HTTP/1.1", "origin.example:2222", "1.1 before",
                "Basic YWxpY2U6b3BlbiBzZXNhbWU=", "ping",
            ])
    }

    @Test("that led in a circle are told so (RFC 9110 §7.6.3)")
    func circle() async throws {
        let parent = try ScriptedOrigin { connection in
            let head = connection.readHead() ?? ""
            let via = head.components(separatedBy: "\r\n").filter { $0.hasPrefix("Via: ") }
            let isCircle = via == ["Via: 1.1 before", "Via: 1.1 us"]
            connection.respond(isCircle ? "508 Loop Detected" : "200 OK", "", "")
        }
        try await withUpstream({ $0.parents = .all(parent.parent()) }) { upstream in
            guard case .failure(let failure)? = await upstream.dialled() else {
                Issue.record("a tunnel stands")
                return
            }
            #expect(failure.kind == .proxyLoopDetected)
        }
    }

    @Test(
        "are laid after the parent's challenge, also over another connection",
        arguments: [true, false])
    func challenge(_ persists: Bool) async throws {
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                if field("Proxy-Authorization", in: head)?.hasPrefix("Digest ") == true {
                    connection.write("HTTP/1.1 200 OK\r\n\r\ninside")
                    _ = connection.waitForEnd()
                    return
                }
                let fields = "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n"
                connection.respond(
                    "407 No", fields + (persists ? "" : "Connection: close\r\n"), "page")
                if !persists { return connection.close() }
            }
        }
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .any, as: .alice)) }) {
            upstream in
            let socket = try #require(await upstream.dialled()).get()
            #expect(await self.read(try #require(socket.take()), 6) == "inside")
        }
        #expect(parent.connectionCount == (persists ? 1 : 2))
    }

    @Test(
        "that the parent refuses fail, each with its reason",
        arguments: [
            ("407 No", UpstreamFailure.Kind.proxyConfigurationError),
            ("405 No", .proxyConfigurationError), ("403 No", .httpRequestDenied),
            ("451 No", .httpRequestDenied), ("302 See", .httpRequestDenied),
            ("502 No", .destinationUnavailable), ("504 No", .connectionTimeout),
            ("404 No", .destinationNotFound),
        ])
    func refusals(_ status: String, _ kind: UpstreamFailure.Kind) async throws {
        let parent = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.respond(status, "Proxy-Authenticate: Basic realm=\"r\"\r\n", "a page")
            connection.close()
        }
        try await withUpstream({
            $0.parents = .all(parent.parent(.http, .basic, as: .alice))
            $0.verifiesCertificates = false
        }) { upstream in
            let dialled = try #require(await upstream.dialled())
            guard case .failure(let failure) = dialled else {
                Issue.record("a tunnel in spite of \(status)")
                return
            }
            let fetched = await upstream.answer(
                to: Request(uri: TargetURI(scheme: .https, host: "o.example", pathAndQuery: "/")))
            for failure in [failure, try #require(fetched.failure)] {
                #expect(failure.kind == kind)
                #expect(failure.nextHop == "127.0.0.1:\(parent.port)")
                #expect(!failure.detail.contains("sesame"))
                let received = status.hasPrefix("407") ? nil : status.prefix(3)
                #expect(failure.receivedStatus?.description == received.map(String.init))
            }
            #expect(fetched.head == nil)
        }
    }

    @Test("that the parent breaks off, or leaves waiting, fail")
    func midway() async throws {
        let closing = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 O")
            connection.close()
        }
        let silent = try ScriptedOrigin { connection in _ = connection.waitForEnd() }
        for (parent, kind, limit) in [
            (closing, UpstreamFailure.Kind.connectionTerminated, Duration.seconds(30)),
            (silent, .connectionTimeout, .milliseconds(100)),
        ] {
            try await withUpstream({
                $0.parents = .all(parent.parent())
                $0.tunnelTimeout = limit
            }) { upstream in
                let result = try #require(await upstream.dialled())
                guard case .failure(let failure) = result else {
                    Issue.record("a tunnel")
                    return
                }
                #expect(failure.kind == kind)
            }
        }
    }

    @Test("are not laid through an https parent, and that is said")
    func secureParent() async throws {
        let parent = Parent(kind: .https, host: "127.0.0.1", port: 9)
        try await withUpstream({ $0.parents = .all(parent) }) { upstream in
            let result = try #require(await upstream.dialled())
            #expect(throws: UpstreamFailure.self) { try result.get() }
            guard case .failure(let failure) = result else { return }
            #expect(failure.kind == .proxyConfigurationError)
            #expect(failure.detail.contains("https parent"))
        }
    }

    @Test("may be given up, before and after they stand")
    func cancel() async throws {
        let asked = Gate()
        let ended = Gate()
        let parent = try ScriptedOrigin { connection in
            _ = connection.readHead()
            asked.open()
            if connection.waitForEnd() { ended.open() }
        }
        try await withUpstream({ $0.parents = .all(parent.parent()) }) { upstream in
            let dial = upstream.dial(host: "o.example", port: 1, via: Fields()) { _ in
                Issue.record("told of a dial that was given up")
            }
            await asked.passed()
            dial?.cancel()
            await ended.passed()
        }
        let dropped = Gate()
        let other = try ScriptedOrigin { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            if connection.waitForEnd() { dropped.open() }
        }
        try await withUpstream({ $0.parents = .all(other.parent()) }) { upstream in
            _ = await upstream.dialled()  // Nobody takes the socket.
            await dropped.passed()
        }
    }

    /// What has the connections of one login used by no other.
    enum Apart: CaseIterable {
        case logins, ticket, socksLogins

        fileprivate func rules(_ parent: ScriptedOrigin) -> ParentRules {
            if self == .ticket { return .all(parent.parent(.http, .negotiate)) }
            let kind = self == .logins ? Parent.Kind.http : .socks5
            return ParentRules([
                ParentRules.Rule(via: .parent(parent.parent(kind, .basic, as: .bob, named: "b"))) {
                    host, _ in host == "b.example"
                },
                ParentRules.Rule(via: .parent(parent.parent(kind, .basic, as: .alice))) { _, _ in
                    true
                },
            ])
        }
    }

    @Test(
        "are handed over whole also where no login's connections are used by another",
        arguments: Apart.allCases)
    func apart(_ apart: Apart) async throws {
        let ended = [Gate(), Gate()]
        let parent = try ScriptedOrigin { connection in
            if apart == .socksLogins {
                guard Self.negotiate(connection, wants: true) != nil else { return }
                connection.write(Self.granted)
            } else {
                guard connection.readHead() != nil else { return }
                connection.write("HTTP/1.1 200 OK\r\n\r\n")
            }
            connection.write("inside")
            if connection.waitForEnd() { ended[connection.index].open() }
        }
        try await withUpstream({ $0.parents = apart.rules(parent) }) { upstream in
            for gate in ended {
                let socket = try #require(await upstream.dialled()).get()
                #expect(await self.read(try #require(socket.take()), 6) == "inside")
                // Ours is closed by now, and libcurl has kept none.
                await gate.passed()
            }
        }
    }

    // MARK: SOCKS5

    /// Reads a greeting, perhaps a login, and the request; what the last names.
    private static func negotiate(_ connection: OriginConnection, wants login: Bool) -> String? {
        guard let greeting = connection.readRaw(2), greeting[0] == 5,
            let methods = connection.readRaw(Int(greeting[1]))
        else { return nil }
        guard methods.contains(login ? 2 : 0) else {
            connection.write([5, 0xFF])
            return nil
        }
        connection.write([5, login ? 2 : 0])
        var name = ""
        if login {
            for _ in 0..<2 {
                if name.isEmpty { _ = connection.readRaw(1) }
                guard let count = connection.readRaw(1)?[0],
                    let text = connection.read(Int(count))
                else { return nil }
                name += text + "/"
            }
            connection.write([1, name == "alice/open sesame/" ? 0 : 1])
        }
        guard let request = connection.readRaw(4), request[3] == 3,
            let count = connection.readRaw(1)?[0], let host = connection.read(Int(count)),
            let port = connection.readRaw(2)
        else { return nil }
        return "\(name)\(host):\(Int(port[0]) << 8 + Int(port[1]))"
    }

    private static let granted: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 0, 0]

    @Test(
        "and requests go by SOCKS5, which gets the name, not an address", arguments: [true, false])
    func socks(_ hasLogin: Bool) async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            guard let name = Self.negotiate(connection, wants: hasLogin) else { return }
            notes.add(name)
            connection.write(Self.granted)
            if name.hasSuffix(":2222") {
                connection.write("early")
                _ = connection.waitForEnd()
            }
            while let head = connection.readHead() {
                notes.add(head.components(separatedBy: "\r\n")[0])
                connection.respond("200 OK", "", "socks")
            }
        }
        let rules = ParentRules.all(
            parent.parent(.socks5, hasLogin ? .basic : .none, as: hasLogin ? .alice : nil))
        try await withUpstream({ $0.parents = rules }) { upstream in
            #expect(await upstream.answer(to: .example()).text == "socks")
            #expect(await upstream.answer(to: .example()).text == "socks")
            let socket = try #require(await upstream.dialled()).get()
            #expect(await self.read(try #require(socket.take()), 5) == "early")
        }
        let login = hasLogin ? "alice/open sesame/" : ""
        let line = "GET /a//b?c=%20 HTTP/1.1"
        #expect(
            notes.all == [
                "\(login)origin.example:8080", line, line, "\(login)origin.example:2222",
            ])
    }

    @Test(
        "that SOCKS5 refuses say why (RFC 1928 §6)",
        arguments: [
            (1, UpstreamFailure.Kind.destinationUnavailable), (2, .httpRequestDenied),
            (3, .destinationIPUnroutable), (4, .destinationIPUnroutable),
            (5, .connectionRefused), (6, .connectionTimeout), (7, .proxyConfigurationError),
            (8, .proxyConfigurationError),
        ] as [(UInt8, UpstreamFailure.Kind)])
    func socksRefusals(_ reply: UInt8, _ kind: UpstreamFailure.Kind) async throws {
        let parent = try ScriptedOrigin { connection in
            _ = Self.negotiate(connection, wants: false)
            connection.write([5, reply, 0, 1, 0, 0, 0, 0, 0, 0])
            _ = connection.waitForEnd()
        }
        let record = try await withUpstream({ $0.parents = .all(parent.parent(.socks5)) }) {
            await $0.answer(to: .example())
        }
        #expect(record.failure?.kind == kind)
        #expect(record.failure?.nextHop == "127.0.0.1:\(parent.port)")
    }

    @Test("by SOCKS5 with a wrong login, or without one, fail as Larder's fault")
    func socksLogin() async throws {
        let parent = try ScriptedOrigin { connection in
            _ = Self.negotiate(connection, wants: true)
            connection.close()
        }
        for (authentication, login) in [
            (Parent.Authentication.basic, ParentLogin.bob), (.none, nil),
        ] {
            let rules = ParentRules.all(parent.parent(.socks5, authentication, as: login))
            let record = try await withUpstream({ $0.parents = rules }) {
                await $0.answer(to: .example())
            }
            #expect(record.failure?.kind == .proxyConfigurationError)
            #expect(record.failure?.party == .larder)
            #expect(record.failure?.detail.contains("swordfish") == false)
        }
    }

    @Test("count among the connections of their own origin alone")
    func bound() async throws {
        let all = Gate()
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            guard let name = Self.negotiate(connection, wants: false) else { return }
            connection.write(Self.granted)
            notes.add(name)
            if notes.count == 3 { all.open() }
            // Nobody is answered until every origin has its connection.
            guard all.block() else { return }
            while connection.readHead() != nil { connection.respond("200 OK", "", "in") }
        }
        try await withUpstream({
            $0.connectionsPerHost = 1
            $0.parents = .all(parent.parent(.socks5))
        }) { upstream in
            await withTaskGroup(of: Recorder.Record.self) { group in
                for i in 0..<6 {
                    let host = "o\(i % 3).example"
                    group.addTask { await upstream.answer(to: .example(host: host)) }
                }
                for await record in group { #expect(record.text == "in") }
            }
        }
        #expect(notes.all.sorted() == (0..<3).map { "o\($0).example:8080" })
    }
}
