import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@testable import LarderProxy

@Suite("The session that answers a client")
struct RoutingTests {
    /// Each user's own session, under any name but two.
    struct Sessions {
        let common = ScriptedSession { $0.answer(200, [:], "common") }
        let alice = ScriptedSession { $0.answer(200, [:], "alice") }
        let work = ScriptedSession { $0.answer(200, [:], "work") }

        func directory() -> ScriptedDirectory {
            ScriptedDirectory { client, name in
                switch name {
                case "work": .session(work, name: "work")
                case "secret": .refused(.sessionNotAllowed)
                case .some: .refused(.unknownSession(nearest: "work"))
                case nil:
                    client.user == "alice"
                        ? .session(alice, name: "alice") : .session(common, name: "common")
                }
            }
        }
    }

    static func run(
        trusts: @escaping @Sendable (ClientIdentity) -> Bool = { _ in true },
        authentication: ScriptedAuthenticator? = nil,
        _ body: (Fixture, ScriptedDirectory, Sessions, Peer) async throws -> Void
    ) async throws {
        let sessions = Sessions()
        let directory = sessions.directory()
        try await Fixture.run(
            sessions.common, directory: directory,
            options: ListenerOptions(authentication: authentication, trusts: trusts)
        ) { proxy in
            try await body(proxy, directory, sessions, try await proxy.connect())
        }
    }

    @Test("is asked for once, and again when user, name or directory have changed")
    func remembered() async throws {
        let alice = AuthenticationTests.field("alice")
        let bob = AuthenticationTests.field("bob")
        let work = bob + "Larder-Session: work\r\n"
        let asked = [alice, alice, bob, work, work, alice]
        try await Self.run(authentication: ScriptedAuthenticator()) {
            proxy, directory, _, client in
            var sessions: [String] = []
            for (number, fields) in asked.enumerated() {
                try await client.send(get("/\(number)", fields))
                sessions.append(try await proxy.log.entry(number).session)
            }
            #expect(sessions == ["alice", "alice", "common", "work", "work", "alice"])
            #expect(directory.choices.value == ["alice/-", "bob/-", "bob/work", "alice/-"])
            directory.forget()
            try await client.send(get("/again", alice))
            try await proxy.log.entry(asked.count)
            #expect(directory.choices.value.count == 5)
        }
    }

    @Test("is named by the client where that is trusted, and the name travels no further")
    func named() async throws {
        try await Self.run { proxy, _, sessions, client in
            try await client.send(get("/", "Larder-Session: work\r\nlarder-cache-policy: \r\n"))
            try await client.received("HTTP/1.1 400 ")
            try await client.received("}")
            try await client.send(get("/", "LARDER-SESSION: work\r\nX-End: 1\r\n"))
            try await client.received("work")
            let request = try await sessions.work.exchange().request
            #expect(request.fields == ["X-End": "1", "Via": "1.1 pantry"])
        }
    }

    @Test("is not named by the client where that is not trusted")
    func untrusted() async throws {
        try await Self.run(trusts: { $0.user == "alice" }, authentication: ScriptedAuthenticator())
        { proxy, directory, sessions, client in
            try await client.send(
                get("/", AuthenticationTests.field("bob") + "Larder-Session: nonsense\r\n"))
            try await client.received("common")
            #expect(directory.choices.value == ["bob/-"])
            let request = try await sessions.common.exchange().request
            #expect(!request.fields.contains(FieldName(.larderSession)))
            try await client.send(
                get("/", AuthenticationTests.field("alice") + "Larder-Session: work\r\n"))
            try await client.received("work")
        }
    }

    @Test(
        "is refused where there is none, or none for this client",
        arguments: [
            ("wrok", "400 Bad Request", "did you mean work?"),
            ("secret", "403 Forbidden", "may not use"),
            ("", "400 Bad Request", "must hold one name"),
            ("work, work", "400 Bad Request", "must hold one name"),
            (String(repeating: "w", count: 129), "400 Bad Request", "must hold one name"),
        ])
    func refused(_ name: String, _ status: String, _ told: String) async throws {
        try await Self.run { proxy, _, sessions, client in
            try await client.send(get("/", "Larder-Session: \(name)\r\n"))
            let answer = try await client.received("}")
            #expect(answer.hasPrefix("HTTP/1.1 \(status)\r\n"))
            #expect(answer.contains(told))
            try await client.send(get("/", "Larder-Session: work\r\n"))
            try await client.received("\r\n\r\nwork")
            #expect(sessions.work.exchanges.value.count == 1)
            #expect(sessions.common.exchanges.value.isEmpty)
        }
    }

    @Test("is one for all where a listener has but one")
    func one() async throws {
        let session = ScriptedSession()
        let directory = OneSessionDirectory(session, name: "only")
        let client = ClientIdentity(address: .unix(nil))
        for name in [nil, "only"] {
            guard case .session(_, "only") = directory.session(for: client, named: name) else {
                Issue.record("refused \(name ?? "none")")
                return
            }
        }
        guard case .refused(let answer) = directory.session(for: client, named: "other") else {
            Issue.record("not refused")
            return
        }
        #expect(answer.status == StatusCode(400))
    }

    @Test("of a Unix socket's client is chosen by whose process that is (SO_PEERCRED, unix(7))")
    func peer() async throws {
        let path = "/tmp/larder-\(UInt64.random(in: 0 ... .max)).sock"
        defer { _ = unsafe unlink(path) }
        let session = ScriptedSession()
        let seen = Event<[ClientIdentity]>([])
        let directory = ScriptedDirectory { client, _ in
            seen.change { $0.append(client) }
            return .session(session, name: "mine")
        }
        let access = ScriptedAccess { $0.uid != getuid() }
        try await Fixture.run(
            session, access: access, directory: directory,
            options: ListenerOptions(authentication: ScriptedAuthenticator()),
            on: .unix(path: path)
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            try await client.received("hello")
            let expected = ClientAddress.unix(PeerCredentials(uid: getuid(), pid: getpid()))
            let entry = try await proxy.log.entry()
            #expect(entry.client == expected)
            #expect(entry.client.text == "unix:\(getuid())")
            #expect(seen.value == [ClientIdentity(address: expected)])
            // What such a client does say about itself is verified nevertheless.
            try await client.send(get("/", AuthenticationTests.field("wrong")))
            try await client.received("HTTP/1.1 407 ")
            try await client.received("}")
            try await client.send(get("/", AuthenticationTests.field("alice")))
            try await client.seen.wait(for: "the second text") {
                String(decoding: $0.bytes, as: UTF8.self).hasSuffix("hello")
            }
            #expect(seen.value.last == ClientIdentity(address: expected, user: "alice"))
        }
    }

    @Test("is for a Unix socket's clients that authenticate themselves, where the listener says so")
    func peersAuthenticate() async throws {
        let path = "/tmp/larder-\(UInt64.random(in: 0 ... .max)).sock"
        defer { _ = unsafe unlink(path) }
        try await Fixture.run(
            options: ListenerOptions(
                authentication: ScriptedAuthenticator(), authenticatesUnixPeers: true),
            on: .unix(path: path)
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(get())
            try await client.received("HTTP/1.1 407 ")
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test("of a tunnel decides whether anything may pass")
    func offlineTunnel() async throws {
        let offline = OfflineSession()
        let directory = OneSessionDirectory(offline)
        try await Fixture.run(directory: directory) { proxy in
            let client = try await proxy.connect()
            try await client.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
            try await client.received("HTTP/1.1 504 ")
        }
    }

    private final class OfflineSession: ExchangeSession {
        let inner = ScriptedSession()
        var cachePolicy: RequestCachePolicy { .returnCacheDontLoad }

        func perform(
            _ request: Request, body: (any BodySource)?, options: ExchangeOptions,
            client: any ExchangeClient
        ) -> any Exchange {
            self.inner.perform(request, body: body, options: options, client: client)
        }
    }
}
