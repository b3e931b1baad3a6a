import CCurl
import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("Requests through an HTTP parent (RFC 9112 §3.2.2)", .timeLimit(.minutes(10)))
struct ParentTests {
    @Test("go out in absolute form, byte for byte, with the origin's Host and nothing added")
    func absoluteForm() async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(head)
                connection.respond("200 OK", "", "through")
            }
        }
        let record = try await withUpstream({ $0.parents = .all(parent.parent()) }) {
            await $0.answer(to: .example(fields: ["X-Mine": "1"]))
        }
        #expect(record.text == "through")
        #expect(record.facts?.remoteAddress == "127.0.0.1:\(parent.port)")
        #expect(
            notes.all == [
                "GET http://origin.example:8080/a//b?c=%20 HTTP/1.1\r\n"
                    + "Host: origin.example:8080\r\nX-Mine: 1\r\n\r\n"
            ])
    }

    @Test(
        "name server-wide OPTIONS without a path, ftp by its own scheme (RFC 9112 §3.2.4)",
        arguments: [
            (TargetURI(scheme: .http, host: "o.example", pathAndQuery: "*"), "http://o.example"),
            (
                TargetURI(
                    scheme: .ftp, userInfo: "u:p", host: "o.example", pathAndQuery: "/a/b"),
                "ftp://u:p@o.example/a/b"
            ),
            (
                TargetURI(scheme: .http, host: "[::1]", port: 8080, pathAndQuery: "/"),
                "http://[::1]:8080/"
            ),
        ])
    func targets(_ uri: TargetURI, _ expected: String) async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            if let line = connection.readLine() { notes.add(line) }
            _ = connection.readHead()
            connection.respond("200 OK", "", "x")
        }
        let record = try await withUpstream({ $0.parents = .all(parent.parent()) }) {
            await $0.answer(
                to: Request(method: uri.pathAndQuery == "*" ? .options : .get, uri: uri))
        }
        #expect(record.text == "x")
        #expect(notes.all.first?.split(separator: " ").dropFirst().first == expected[...])
    }

    @Test("the first rule that fits speaks, and where none fits the way is direct")
    func rules() async throws {
        let origin = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.respond("200 OK", "", "direct") }
        }
        let parent = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.respond("200 OK", "", "parent") }
        }
        let through = ParentRules.Via.parent(parent.parent())
        let rules = ParentRules([
            ParentRules.Rule(via: .direct) { host, port in host == "127.0.0.1" && port != 1 },
            ParentRules.Rule(via: through) { host, _ in host.hasSuffix(".example") },
        ])
        try await withUpstream({ $0.parents = rules }) { upstream in
            #expect(await upstream.answer(to: origin.request()).text == "direct")
            #expect(await upstream.answer(to: .example()).text == "parent")
            #expect(upstream.dial(host: "127.0.0.1", port: 22, via: Fields()) { _ in } == nil)
            #expect(upstream.dialer != nil)
        }
        try await withUpstream { #expect($0.dialer == nil) }
        #expect(rules.parent(host: "other", port: 80) == nil)
    }

    @Test(
        """
        bring a Basic login at once, which no answer of the parent's has to ask for, but not with a \
        TRACE, whose answer may show it (RFC 9110 §9.3.8)
        """,
        arguments: [(LarderHTTP.Method.get, "Basic YWxpY2U6b3BlbiBzZXNhbWU="), (.trace, "none")])
    func basic(_ method: LarderHTTP.Method, bears login: String) async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(field("Proxy-Authorization", in: head) ?? "none")
                connection.respond("200 OK")
            }
        }
        _ = try await withUpstream({ $0.parents = .all(parent.parent(.http, .basic, as: .alice)) })
        {
            await $0.answer(to: .example(method, fields: ["Proxy-Authorization": "Basic eDp5"]))
        }
        #expect(notes.all == [login])
    }

    @Test(
        "answer the parent's challenge, of which the receiver hears nothing (RFC 9110 §11.7.1)",
        arguments: [Parent.Authentication.digest, .any],
        [
            "Content-Length: 3\r\n\r\nno!",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nno!\r\n0\r\nT: 1\r\n\r\n",
        ])
    func challenge(_ authentication: Parent.Authentication, _ refusal: String) async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let length = Int(field("Content-Length", in: head) ?? "") ?? 0
                let content = connection.read(length) ?? ""
                guard let login = field("Proxy-Authorization", in: head) else {
                    notes.add("asked \(content)")
                    connection.write(
                        "HTTP/1.1 407 No\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"n\", "
                            + "qop=\"auth\"\r\n\(refusal)")
                    continue
                }
                let isRight = ["Digest username=\"alice\"", "uri=\"/a//b?c=%20\""]
                    .allSatisfy(login.contains)
                notes.add("\(isRight) \(content)")
                connection.respond("200 OK", "", "in")
            }
        }
        let rules = ParentRules.all(parent.parent(.http, authentication, as: .alice))
        let record = try await withUpstream({ $0.parents = rules }) {
            await $0.answer(
                to: .example(.put, length: .known(5)), body: ScriptedContent(text: "hello"))
        }
        #expect(record.failure == nil)
        #expect(record.violations == [])
        #expect(record.head?.status == .ok)
        #expect(record.text == "in")
        #expect(record.trailers == Fields())
        let probe = authentication == .any ? "asked hello" : "asked "
        #expect(notes.all == [probe, "true hello"])
    }

    @Test("that the parent refuses for their login fail, and its challenge goes no further")
    func refusedLogin() async throws {
        let parent = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.respond("407 No", "Proxy-Authenticate: Basic realm=\"r\"\r\n", "page")
            }
        }
        for login in [nil, ParentLogin.alice] {
            let record = try await withUpstream({
                $0.parents = .all(parent.parent(.http, login == nil ? .none : .basic, as: login))
            }) { await $0.answer(to: .example()) }
            #expect(record.head == nil)
            let failure = try #require(record.failure)
            #expect(failure.kind == .proxyConfigurationError)
            #expect(failure.party == .larder)
            #expect(failure.nextHop == "127.0.0.1:\(parent.port)")
            #expect(failure.detail.contains("127.0.0.1:\(parent.port)"))
            #expect(!"\(failure)".contains("sesame"))
        }
    }

    @Test(
        "where any login will do, one that takes Basic alone is not asked again (RFC 7617 §2.2)",
        arguments: [
            ("Basic realm=\"r\"", "no yes yes yes"),
            ("Basic realm=\"r\", Digest realm=\"r\", nonce=\"n\"", "no yes no yes no yes"),
        ])
    func knownScheme(_ challenge: String, _ expected: String) async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let hasLogin = field("Proxy-Authorization", in: head) != nil
                notes.add(hasLogin ? "yes" : "no")
                connection.respond(
                    hasLogin ? "200 OK" : "407 No", "Proxy-Authenticate: \(challenge)\r\n")
            }
        }
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .any, as: .alice)) }) {
            upstream in
            for _ in 0..<3 {
                let record = await upstream.answer(to: .example())
                #expect(record.head?.status == .ok)
            }
        }
        #expect(notes.all.joined(separator: " ") == expected)
    }

    @Test("a login that a parent no longer takes is offered no more before it is asked for")
    func forgottenScheme() async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let hasLogin = field("Proxy-Authorization", in: head) != nil
                notes.add(hasLogin ? "yes" : "no")
                let isTaken = hasLogin && notes.count == 2
                connection.respond(
                    isTaken ? "200 OK" : "407 No", "Proxy-Authenticate: Basic realm=\"r\"\r\n")
            }
        }
        try await withUpstream({ $0.parents = .all(parent.parent(.http, .any, as: .alice)) }) {
            upstream in
            #expect(await upstream.answer(to: .example()).head?.status == .ok)
            for _ in 0..<2 {
                let failure = await upstream.answer(to: .example()).failure
                #expect(failure?.cause == .proxyAuthenticationRequired)
                #expect(failure?.detail.contains("refuses the login") == true)
            }
        }
        #expect(notes.all.joined(separator: " ") == "no yes yes no yes")
    }

    @Test("a login of a kind that the parent does not take is not called refused")
    func otherScheme() async throws {
        let parent = try ScriptedOrigin { connection in
            while connection.readHead() != nil {
                connection.respond("407 No", "Proxy-Authenticate: Basic realm=\"r\"\r\n")
            }
        }
        let record = try await withUpstream({
            $0.parents = .all(parent.parent(.http, .digest, as: .alice))
        }) { await $0.answer(to: .example()) }
        #expect(
            record.failure?.detail.hasPrefix(
                "the parent takes no login by digest, its rule's authentication; it takes basic")
                == true)
    }

    @Test(
        "content that is gone is not sent a second time, and what would help is what the parent takes",
        arguments: [
            ("Basic realm=\"r\"", "basic"), ("NTLM", "ntlm"),
            ("Basic realm=\"r\", Digest realm=\"r\", nonce=\"n\", NTLM", "digest"),
        ])
    func longContent(_ challenge: String, _ remedy: String) async throws {
        let parent = try ScriptedOrigin { connection in
            guard let head = connection.readHead() else { return }
            _ = connection.read(Int(field("Content-Length", in: head) ?? "") ?? 0)
            connection.respond("407 No", "Proxy-Authenticate: \(challenge)\r\n")
            _ = connection.waitForEnd()
        }
        let text = String(repeating: "x", count: RequestContent.keptLimit + 1)
        let record = try await withUpstream({
            $0.parents = .all(parent.parent(.http, .any, as: .alice))
            $0.continueTimeout = .milliseconds(1)  // The parent asks for the login too late.
        }) {
            await $0.answer(
                to: .example(.put, length: .known(UInt64(text.utf8.count))),
                body: ScriptedContent(text: text))
        }
        #expect(record.failure?.kind == .proxyConfigurationError)
        #expect(record.failure?.detail.contains("authentication: \(remedy)") == true)
        #expect(parent.connectionCount == 1)
    }

    @Test(
        "content that could not be sent twice waits for the parent's leave",
        arguments: [true, false])
    func withheldContent(_ isKnown: Bool) async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                notes.add(field("Expect", in: head) ?? "none")
                guard field("Proxy-Authorization", in: head) != nil else {
                    connection.respond(
                        "407 No", "Proxy-Authenticate: Basic realm=\"r\"\r\n", "page")
                    continue
                }
                connection.write("HTTP/1.1 100 Continue\r\n\r\n")
                let length = Int(field("Content-Length", in: head) ?? "")
                let content = length.map { connection.read($0) } ?? connection.readChunked()
                notes.add("\(content?.utf8.filter { $0 == 0x78 }.count ?? 0)")
                connection.respond("200 OK", "", "in")
            }
        }
        let count = RequestContent.keptLimit + 1
        let record = try await withUpstream({
            $0.parents = .all(parent.parent(.http, .any, as: .alice))
            $0.continueTimeout = .seconds(30)
        }) {
            await $0.answer(
                to: .example(.put, length: isKnown ? .known(UInt64(count)) : .unknown),
                body: ScriptedContent(text: String(repeating: "x", count: count)))
        }
        #expect(record.failure == nil)
        #expect(record.text == "in")
        #expect(record.violations == [])
        #expect(notes.all == ["100-continue", "100-continue", "\(count)"])
    }

    @Test("different logins at one parent do not share connections, equal ones do")
    func affinity() async throws {
        let notes = Notes()
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let login = field("Proxy-Authorization", in: head) ?? ""
                notes.add("\(connection.index) \(login.hasPrefix("Basic YWxp") ? "alice" : "bob")")
                connection.respond("200 OK")
            }
        }
        let alice = parent.parent(.http, .basic, as: .alice, named: "alice")
        let bob = parent.parent(.http, .basic, as: .bob, named: "bob")
        let mixed = ParentRules([
            ParentRules.Rule(via: .parent(alice)) { host, _ in host == "a.example" },
            ParentRules.Rule(via: .parent(bob)) { _, _ in true },
        ])
        for rules in [mixed, .all(alice)] {
            try await withUpstream({ $0.parents = rules }) { upstream in
                for host in ["a.example", "b.example"] {
                    _ = await upstream.answer(to: .example(host: host))
                }
            }
        }
        #expect(notes.all == ["0 alice", "1 bob", "2 alice", "2 alice"])
    }

    @Test("a parent that cannot be reached is named, with its own reason")
    func unreachable() async throws {
        let closed = try ReservedPort()
        let refusing = Parent(kind: .http, host: "127.0.0.1", port: closed.port)
        let refused = try await withUpstream({ $0.parents = .all(refusing) }) {
            await $0.answer(to: .example())
        }
        #expect(refused.failure?.kind == .connectionRefused)
        #expect(refused.failure?.nextHop == "127.0.0.1:\(closed.port)")
        let nameless = Parent(kind: .http, host: "parent.invalid", port: 3128)
        let unknown = try await withUpstream({ $0.parents = .all(nameless) }) {
            await $0.answer(to: .example())
        }
        #expect(unknown.failure?.kind == .dnsError)
        #expect(unknown.failure?.detail.contains("parent.invalid:3128") == true)
    }

    @Test(
        "a parent's host is a host and nothing that libcurl reads more out of",
        arguments: ["", "socks5://127.0.0.1", "alice:sesame@127.0.0.1", "a b", "[::1"])
    func hosts(_ host: String) async throws {
        let parent = Parent(kind: .http, host: host, port: 3128)
        let record = try await withUpstream({ $0.parents = .all(parent) }) {
            await $0.answer(to: .example())
        }
        #expect(record.failure?.kind == .proxyConfigurationError)
    }

    @Test("a refused login names the credential, so that it can be found and mended")
    func refusedLogin() {
        let named = Parent(
            kind: .http, host: "p", port: 1, authentication: .basic,
            credential: ParentCredential(name: "work") { nil })
        let nameless = Parent(kind: .http, host: "p", port: 1)
        for (parent, hadLogin, text) in [
            (named, true, "the parent refuses the login work"),
            (named, false, "the parent wants a login, and there is no user name and password work"),
            (nameless, false, "the parent wants a login, and its rule names no credential"),
        ] {
            let offered = EasyHandle.schemes(of: .basic)
            let failure = ParentFailure.loginWanted(
                by: parent, hadLogin: hadLogin, offered: offered)
            #expect(failure.detail == text)
            #expect(failure.party == .larder && failure.kind == .proxyConfigurationError)
        }
    }

    @Test("a failed handshake with an https parent is no fault of its certificate's")
    func handshake() {
        let parent = Parent(kind: .https, host: "p", port: 1)
        for (code, kind) in [
            (CURLE_SSL_CONNECT_ERROR, UpstreamFailure.Kind.tlsProtocolError),
            (CURLE_PEER_FAILED_VERIFICATION, .tlsCertificateError),
        ] {
            // The result of a verification that never was says "untrusted", too.
            let end = CurlEnd(code: code, distrustsParent: true)
            for way in [Way.relay(parent), .tunnel(parent)] {
                #expect(ParentFailure.of(end, way, hadLogin: false)?.kind == kind)
            }
        }
    }

    @Test("no description of a login shows it")
    func descriptions() {
        let login = ParentLogin.alice
        let credential = ParentCredential(name: "n") { login }
        let parent = Parent(
            kind: .http, host: "p", port: 1, authentication: .basic, credential: credential)
        var dumped = ""
        dump(parent, to: &dumped)
        dump(login, to: &dumped)
        for text in ["\(parent)", "\(login)", String(reflecting: login), dumped] {
            #expect(!text.contains("sesame") && !text.contains("alice"))
        }
    }

    @Test("the bound on connections is the parent's where it relays, for all origins together")
    func bound() async throws {
        let parent = try ScriptedOrigin { connection in
            while connection.readHead() != nil { connection.respond("200 OK", "", "in") }
        }
        try await withUpstream({
            $0.connectionsPerHost = 1
            $0.parents = .all(parent.parent())
        }) { upstream in
            await withTaskGroup(of: Recorder.Record.self) { group in
                for i in 0..<8 {
                    group.addTask { await upstream.answer(to: .example(host: "o\(i).example")) }
                }
                for await record in group { #expect(record.text == "in") }
            }
        }
        #expect(parent.connectionCount == 1)
    }
}
