import Foundation
import LarderCredentials
import LarderHTTP
import Testing

@testable import URLLoading

/// A task's authentication, step by step, with what is needed to say it in a line.
struct ScriptedChallenges {
    var machine: ChallengeMachine
    var request: URLRequest
    let storage: URLCredentialStorage?

    init(
        _ url: String = "http://example.com/a/b", storage: URLCredentialStorage? = .ephemeral(),
        method: String = "GET"
    ) throws {
        self.machine = ChallengeMachine(storage: storage)
        self.request = URLRequest(url: try #require(URL(string: url)))
        self.request.httpMethod = method
        self.storage = storage
    }

    static func head(
        _ status: UInt16, _ lines: [String] = [], name: String = "WWW-Authenticate"
    ) -> ResponseHead {
        var fields = Fields()
        for line in lines { fields.append(name, line) }
        return ResponseHead(status: StatusCode(rawValue: status), fields: fields)
    }

    mutating func challenged(
        _ lines: String..., content: [UInt8]? = []
    ) -> ChallengeStep {
        self.machine.answered(Self.head(401, lines), to: self.request, content: content)
    }

    mutating func accepted(_ status: UInt16 = 200, info: [String] = []) {
        self.machine.accepted(
            Self.head(status, info, name: "Authentication-Info"), to: self.request)
    }

    mutating func use(
        _ user: String, _ password: String = "secret",
        _ persistence: URLCredential.Persistence = .forSession
    ) -> ChallengeStep {
        self.machine.decided(
            .useCredential,
            URLCredential(user: user, password: password, persistence: persistence))
    }

    /// The URL of the request, changed.
    mutating func move(to url: String) {
        self.request.url = URL(string: url)
    }
}

extension ChallengeStep {
    var challenge: URLAuthenticationChallenge? {
        guard case .ask(let challenge, _) = self else { return nil }
        return challenge
    }

    /// The value of `Authorization` with which the request is repeated.
    var field: String? {
        guard case .retry(let authorization) = self else { return nil }
        return authorization?.field
    }

    var isDelivery: Bool {
        if case .deliver = self { return true }
        return false
    }

    var failure: URLError.Code? {
        guard case .fail(let error) = self else { return nil }
        return error.code
    }
}

extension LoadAuthorization {
    var field: String? {
        guard case .field(let value)? = self.forOrigin else { return nil }
        return String(decoding: value.revealed, as: UTF8.self)
    }

    var connection: ConnectionAuthentication? {
        guard case .connection(let handshake)? = self.forOrigin else { return nil }
        return handshake
    }
}

func basic(_ user: String, _ password: String = "secret") -> String {
    "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
}

@Suite("The authentication of a task: which challenge (§6.1, §6.2)")
struct CredentialsChallengeMachineTests {
    @Test(
        "a 401 without a challenge that is understood is an ordinary response",
        arguments: [
            [], ["Bearer realm=\"x\""], ["Digest realm=\"x\""], ["=,;"], ["Basic realm=My Realm"],
            ["Basic abc="], ["Basic charset=latin1"],
            ["Digest realm=\"x\", nonce=\"n\", algorithm=SHA-512-256, qop=\"auth\""],
        ])
    func bare(lines: [String]) throws {
        var script = try ScriptedChallenges()
        let step = script.machine.answered(
            ScriptedChallenges.head(401, lines), to: script.request, content: [])
        #expect(step.isDelivery)
    }

    @Test("Basic without a realm is Basic with an empty one", arguments: ["Basic", "basic a=b"])
    func noRealm(line: String) throws {
        var script = try ScriptedChallenges()
        let space = try #require(script.challenged(line).challenge).protectionSpace
        #expect(space.realm == "")
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
        #expect(script.use("u").field == basic("u"))
        script.accepted()
        #expect(script.storage?.credentials(for: space)?["u"] != nil)
    }

    @Test(
        "the space is the server's, with the realm, and nothing is proposed where nothing is known")
    func space() throws {
        var script = try ScriptedChallenges("https://Example.com:8443/a?b")
        let challenge = try #require(script.challenged("Basic realm=\"A \\\"b\\\"\"").challenge)
        let space = challenge.protectionSpace
        #expect(space.host == "example.com")
        #expect(space.port == 8443)
        #expect(space.protocol == NSURLProtectionSpaceHTTPS)
        #expect(space.realm == "A \"b\"")
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
        #expect(!space.isProxy())
        #expect(challenge.proposedCredential == nil)
        #expect(challenge.previousFailureCount == 0)
        #expect((challenge.failureResponse as? HTTPURLResponse)?.statusCode == 401)
        #expect(challenge.error == nil)
    }

    @Test("the strongest is asked first, and a rejected space leads to the next (§6.3)")
    func ranking() throws {
        var script = try ScriptedChallenges()
        var step = script.challenged(
            "Basic realm=\"b\"", "NTLM, Unknown x=y", "Digest realm=\"d\", nonce=\"n\", qop=auth",
            "Negotiate")
        var methods: [String] = []
        while case .ask(let challenge, let isSessionWide) = step {
            methods.append(challenge.protectionSpace.authenticationMethod)
            #expect(isSessionWide == (methods.count <= 2))
            step = script.machine.decided(.rejectProtectionSpace, nil)
        }
        #expect(
            methods == [
                NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodNTLM,
                NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodHTTPBasic,
            ])
        #expect(step.isDelivery)
    }

    @Test("the URL's user information is proposed before what is stored, and then what has failed")
    func proposals() throws {
        var script = try ScriptedChallenges("http://url%40er:p%3Aw@example.com/")
        let space = URLProtectionSpace(
            host: "example.com", port: 80, protocol: NSURLProtectionSpaceHTTP, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        script.storage?.set(
            URLCredential(user: "stored", password: "s", persistence: .forSession), for: space)
        var challenge = script.challenged("Basic realm=\"r\"").challenge
        #expect(challenge?.proposedCredential?.user == "url@er")
        #expect(challenge?.proposedCredential?.password == "p:w")
        #expect(script.use("mine").field == basic("mine"))
        challenge = script.challenged("Basic realm=\"r\"").challenge
        #expect(challenge?.proposedCredential?.user == "mine")
        #expect(challenge?.previousFailureCount == 1)

        script.move(to: "http://example.com/")
        #expect(script.machine.preemption(for: script.request) == nil)
        challenge = script.challenged("Basic realm=\"r\"").challenge
        #expect(challenge?.proposedCredential?.user == "stored")
        #expect(challenge?.previousFailureCount == 1)
    }

    @Test("each refusal counts, in whatever scheme, until one is taken")
    func failures() throws {
        var script = try ScriptedChallenges()
        for count in 0..<3 {
            let challenge = script.challenged("Basic realm=\"r\"").challenge
            #expect(challenge?.previousFailureCount == count)
            // The same again is the program's own decision.
            #expect(script.use("user").field == basic("user"))
        }
        script.accepted()
        #expect(script.storage?.allCredentials.count == 1)
    }

    @Test("a delegate that always has an answer and a server that never takes it come to an end")
    func bounded() throws {
        var script = try ScriptedChallenges()
        var rounds = 0
        while script.challenged("Basic realm=\"r\"").challenge != nil {
            rounds += 1
            _ = script.use("user\(rounds)")
            try #require(rounds < 100)
        }
        #expect(rounds == ChallengeMachine.roundLimit)
    }
}

@Suite("The authentication of a task: what the delegate says (§6.3)")
struct CredentialsDispositionTests {
    @Test("cancelling fails the task as cancelled")
    func cancel() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged("Basic realm=\"r\"")
        #expect(
            script.machine.decided(.cancelAuthenticationChallenge, nil).failure == .cancelled)
    }

    @Test("a credential of nil, of no password, or of another kind goes on without")
    func without() throws {
        for credential in [
            nil, URLCredential(user: "u", password: nil, persistence: .forSession),
            URLCredential(clientKey: Data(), clientCertificate: Data(), persistence: .none),
        ] {
            var script = try ScriptedChallenges()
            _ = script.challenged("Basic realm=\"r\"")
            #expect(script.machine.decided(.useCredential, credential).isDelivery)
        }
    }

    @Test("what Basic cannot express goes to the next space, and out of the last one")
    func inexpressible() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged("Basic realm=\"r\"")
        #expect(script.use("a:b").isDelivery)
        _ = script.challenged("Basic realm=\"r\"")
        #expect(script.use("a", "b\u{7}").isDelivery)
    }

    @Test("default handling takes the URL's credential, then the stored one, each once")
    func defaultHandling() throws {
        var script = try ScriptedChallenges("http://u:p@example.com/")
        let space = URLProtectionSpace(
            host: "example.com", port: 80, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodDefault)
        script.storage?.set(
            URLCredential(user: "stored", password: "s", persistence: .forSession), for: space)
        _ = script.challenged("Basic realm=\"r\"")
        #expect(script.machine.decided(.performDefaultHandling, nil).field == basic("u", "p"))
        _ = script.challenged("Basic realm=\"r\"")
        #expect(script.machine.decided(.performDefaultHandling, nil).field == basic("stored", "s"))
        _ = script.challenged("Basic realm=\"r\"")
        #expect(script.machine.decided(.performDefaultHandling, nil).isDelivery)
    }

    @Test(
        "default handling ignores the credential that comes along, and delivers where it has none")
    func defaultWithout() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged("Basic realm=\"r\"")
        let step = script.machine.decided(
            .performDefaultHandling,
            URLCredential(user: "u", password: "p", persistence: .forSession))
        #expect(step.isDelivery)
        // Called twice, or late: nothing happens.
        #expect(script.use("u").isDelivery)
    }

    @Test("a stored credential of a weaker scheme answers where the stronger has none")
    func storedForWeaker() throws {
        var script = try ScriptedChallenges()
        let space = URLProtectionSpace(
            host: "example.com", port: 80, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        script.storage?.set(
            URLCredential(user: "stored", password: "s", persistence: .forSession), for: space)
        _ = script.challenged("Digest realm=\"r\", nonce=\"n\", qop=auth, Basic realm=\"r\"")
        #expect(script.machine.decided(.performDefaultHandling, nil).field == basic("stored", "s"))
    }

    @Test("NTLM and Negotiate are handed to the upstream")
    func handshakes() throws {
        for (line, scheme) in [
            ("NTLM", ConnectionScheme.ntlm), ("Negotiate", .negotiate),
        ] {
            var script = try ScriptedChallenges()
            _ = script.challenged(line)
            guard case .retry(let authorization?) = script.use("DOMAIN\\user") else {
                Issue.record("no answer to \(line)")
                continue
            }
            let handshake = try #require(authorization.connection)
            #expect(handshake.scheme == scheme)
            #expect(handshake.user == "DOMAIN\\user")
            #expect(handshake.revealedPassword == Array("secret".utf8))
            #expect(!"\(authorization)".contains("secret\""))
        }
    }
}

@Suite("The authentication of a task: what is kept, and sent before anyone asks (§6.3, §6.4)")
struct CredentialsPreemptionTests {
    private func accepted(
        _ persistence: URLCredential.Persistence, storage: URLCredentialStorage?
    ) throws -> ScriptedChallenges {
        var script = try ScriptedChallenges(storage: storage)
        _ = script.machine.preemption(for: script.request)
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.use("user", "secret", persistence)
        script.accepted()
        return script
    }

    @Test("an accepted credential is stored and sent at once inside its space, by another task too")
    func preempted() throws {
        let storage = URLCredentialStorage.ephemeral()
        _ = try self.accepted(.forSession, storage: storage)
        for (url, isSent) in [
            ("http://example.com/a/c", true), ("http://example.com/a/c/d?e", true),
            ("http://example.com/other", false), ("http://example.com:81/a/b", false),
            ("https://example.com/a/b", false), ("http://example.org/a/b", false),
            ("http://user:secret@example.com/a/b", true),
            ("http://somebody:else@example.com/a/b", false),
        ] {
            var script = try ScriptedChallenges(url, storage: storage)
            let sent = script.machine.preemption(for: script.request)
            #expect(sent?.field == (isSent ? basic("user") : nil), "\(url)")
        }
    }

    @Test("a TRACE, whose answer shows what it bore, gets no login (RFC 9110 §9.3.8)")
    func echoed() throws {
        let storage = URLCredentialStorage.ephemeral()
        _ = try self.accepted(.forSession, storage: storage)
        var script = try ScriptedChallenges("http://example.com/a/c", storage: storage)
        script.request.httpMethod = "TRACE"
        #expect(script.machine.preemption(for: script.request) == nil)
    }

    @Test(
        "what is used once is not kept, and neither is anything without a storage",
        arguments: [URLCredential.Persistence.none, .synchronizable])
    func once(persistence: URLCredential.Persistence) throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try self.accepted(persistence, storage: storage)
        #expect(storage.allCredentials.isEmpty)
        #expect(script.machine.preemption(for: script.request) == nil)
        script = try self.accepted(.forSession, storage: nil)
        #expect(script.machine.preemption(for: script.request) == nil)
    }

    @Test(
        "a status that says nothing about the credential accepts nothing",
        arguments: [
            400, 408, 421, 429, 431, 500, 503,
        ] as [UInt16])
    func inconclusive(status: UInt16) throws {
        var script = try ScriptedChallenges()
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.use("user")
        script.accepted(status)
        #expect(script.storage?.allCredentials.isEmpty == true)
    }

    @Test("a redirection accepts, and another origin gets nothing")
    func redirected() throws {
        var script = try ScriptedChallenges()
        _ = script.machine.preemption(for: script.request)
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.use("user")
        script.accepted(302)
        script.move(to: "http://elsewhere.example/a/b")
        #expect(script.machine.preemption(for: script.request) == nil)
        script.move(to: "http://example.com/a/next")
        #expect(script.machine.preemption(for: script.request)?.field == basic("user"))
    }

    @Test("one that is wrong later is challenged again, and counts as a failure")
    func wrongLater() throws {
        let storage = URLCredentialStorage.ephemeral()
        _ = try self.accepted(.forSession, storage: storage)
        var script = try ScriptedChallenges(storage: storage)
        #expect(script.machine.preemption(for: script.request) != nil)
        let challenge = script.challenged("Basic realm=\"r\"").challenge
        #expect(challenge?.previousFailureCount == 1)
        #expect(challenge?.proposedCredential?.user == "user")
        // It is not sent again without being asked for.
        #expect(script.machine.decided(.performDefaultHandling, nil).isDelivery)
        var next = try ScriptedChallenges(storage: storage)
        #expect(next.machine.preemption(for: next.request) == nil)
    }

    @Test("what was sent into another realm has not failed")
    func otherRealm() throws {
        let storage = URLCredentialStorage.ephemeral()
        _ = try self.accepted(.forSession, storage: storage)
        var script = try ScriptedChallenges("http://example.com/a/inner/", storage: storage)
        #expect(script.machine.preemption(for: script.request) != nil)
        let challenge = script.challenged("Basic realm=\"inner\"").challenge
        #expect(challenge?.previousFailureCount == 0)
        #expect(challenge?.proposedCredential == nil)
        _ = script.use("other")
        script.accepted()
        #expect(script.machine.preemption(for: script.request)?.field == basic("other"))
        script.move(to: "http://example.com/a/x")
        #expect(script.machine.preemption(for: script.request)?.field == basic("user"))
    }

    @Test("nothing is sent at once where the program says itself who it is")
    func ownField() throws {
        let storage = URLCredentialStorage.ephemeral()
        _ = try self.accepted(.forSession, storage: storage)
        var script = try ScriptedChallenges(storage: storage)
        script.request.allHTTPHeaderFields = ["authorization": "Bearer x"]
        #expect(script.machine.preemption(for: script.request) == nil)
    }

    @Test("what was removed or replaced in the storage is not sent any more")
    func removed() throws {
        let storage = URLCredentialStorage.ephemeral()
        _ = try self.accepted(.forSession, storage: storage)
        let (space, held) = try #require(storage.allCredentials.first)
        let credential = try #require(held["user"])
        let other = URLCredential(user: "other", password: "o", persistence: .forSession)
        storage.setDefaultCredential(other, for: space)
        var script = try ScriptedChallenges(storage: storage)
        #expect(script.machine.preemption(for: script.request) == nil)
        storage.setDefaultCredential(credential, for: space)
        _ = try self.accepted(.forSession, storage: storage)
        storage.remove(credential, for: space)
        script = try ScriptedChallenges(storage: storage)
        #expect(script.machine.preemption(for: script.request) == nil)
    }

    @Test("the default that was refused gives way to the one that was accepted")
    func replacesDefault() throws {
        let storage = URLCredentialStorage.ephemeral()
        let space = URLProtectionSpace(
            host: "example.com", port: 80, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.set(
            URLCredential(user: "old", password: "o", persistence: .forSession), for: space)
        var script = try ScriptedChallenges(storage: storage)
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.machine.decided(.performDefaultHandling, nil)
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.use("new")
        script.accepted()
        #expect(storage.defaultCredential(for: space)?.user == "new")
        #expect(storage.credentials(for: space)?.count == 2)
    }

    @Test("a permanent credential is not made to last shorter by the same one of a URL")
    func lasting() throws {
        let storage = URLCredentialStorage.ephemeral()
        let space = URLProtectionSpace(
            host: "example.com", port: 80, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.set(
            URLCredential(user: "u", password: "p", persistence: .permanent), for: space)
        var script = try ScriptedChallenges("http://u:p@example.com/", storage: storage)
        _ = script.challenged("Basic realm=\"r\"")
        _ = script.machine.decided(.performDefaultHandling, nil)
        script.accepted()
        #expect(storage.defaultCredential(for: space)?.persistence == .permanent)
    }
}
