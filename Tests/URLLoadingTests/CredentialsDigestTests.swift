import Foundation
import LarderCredentials
import LarderEngine
import LarderHTTP
import Testing

@testable import URLLoading

/// What a server makes of a Digest field: it computes the answer itself (RFC 7616 §3.4).
struct DigestServer {
    var user = "user"
    var password = "secret"
    var realm = "r"
    var method = "GET"
    var content: [UInt8] = []

    /// The parameters of a field's value; nil where it is no Digest.
    static func parameters(_ field: String?) -> [String: String]? {
        guard let field, let found = try? Challenges.parse(Array(field.utf8)[...]),
            let challenge = found.first, challenge.scheme == .digest
        else { return nil }
        return Dictionary(
            uniqueKeysWithValues: challenge.parameters.map {
                ($0.name, String(decoding: $0.value, as: UTF8.self))
            })
    }

    private static func hex(_ text: [UInt8], _ algorithm: String?) -> String {
        let hash: DigestHash = algorithm == "SHA-256" ? .sha256 : .md5
        return (CryptoHasher().hash(text, by: hash) ?? []).map {
            ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }.joined()
    }

    /// Whether the server would let it pass.
    func accepts(_ field: String?) -> Bool {
        guard let sent = Self.parameters(field) else { return false }
        let algorithm = sent["algorithm"]
        func hash(_ text: String) -> String { Self.hex(Array(text.utf8), algorithm) }
        let name = sent["userhash"] == "true" ? hash("\(self.user):\(self.realm)") : self.user
        guard sent["username"] == name else { return false }
        let secret = hash("\(self.user):\(self.realm):\(self.password)")
        var line = "\(self.method):\(sent["uri"] ?? "")"
        if sent["qop"] == "auth-int" { line += ":" + Self.hex(self.content, algorithm) }
        var text = "\(secret):\(sent["nonce"] ?? "")"
        if let qop = sent["qop"] {
            text += ":\(sent["nc"] ?? ""):\(sent["cnonce"] ?? ""):\(qop)"
        }
        return sent["response"] == hash("\(text):\(hash(line))")
    }
}

@Suite("The authentication of a task: Digest (RFC 7616)")
struct CredentialsDigestTests {
    private static let challenge = "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\", algorithm=MD5"

    private func challenge(nonce: String, _ more: String = "") -> String {
        "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=MD5\(more)"
    }

    @Test(
        "is answered as the server computes it",
        arguments: [
            "Digest realm=\"r\", nonce=\"n\"",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth,auth-int\", algorithm=MD5",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256, opaque=\"o\"",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256, userhash=true",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\", algorithm=SHA-256",
        ])
    func answers(challenge: String) throws {
        var script = try ScriptedChallenges("http://example.com/a/b?c=d", method: "POST")
        let content = Array("content".utf8)
        let asked = script.challenged(challenge, content: content).challenge
        #expect(
            asked?.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPDigest)
        let field = script.use("user").field
        #expect(DigestServer(method: "POST", content: content).accepts(field), "\(field ?? "-")")
        #expect(!DigestServer(password: "else", method: "POST", content: content).accepts(field))
        #expect(DigestServer.parameters(field)?["uri"] == "/a/b?c=d")
    }

    @Test("the first algorithm that is known is taken, one question for all of them (§3.7)")
    func algorithms() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged(
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-512-256",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")
        let field = script.use("user").field
        #expect(DigestServer.parameters(field)?["algorithm"] == "SHA-256")
        _ = script.challenged(
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")
        #expect(script.machine.decided(.rejectProtectionSpace, nil).isDelivery)
    }

    @Test("content that is not at hand makes auth-int impossible, and Basic the next best")
    func contentUnknown() throws {
        var script = try ScriptedChallenges(method: "POST")
        let protected = "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\""
        #expect(script.challenged(protected, content: nil).isDelivery)
        let asked = script.challenged(protected, "Basic realm=\"r\"", content: nil).challenge
        #expect(asked?.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
    }

    @Test("a stale nonce is replaced without a question, twice in a row and no more (§3.3)")
    func stale() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged(self.challenge(nonce: "n0"))
        _ = script.use("user")
        for round in 1...2 {
            let field = script.challenged(self.challenge(nonce: "n\(round)", ", stale=true")).field
            #expect(DigestServer().accepts(field))
            #expect(DigestServer.parameters(field)?["nonce"] == "n\(round)")
            #expect(DigestServer.parameters(field)?["nc"] == "00000001")
        }
        let asked = script.challenged(self.challenge(nonce: "n3", ", stale=true")).challenge
        #expect(asked?.previousFailureCount == 1)
    }

    @Test("a refused answer is no stale one: the delegate is asked, and another password tried")
    func refused() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged(self.challenge(nonce: "n0"))
        _ = script.use("user", "wrong")
        let asked = script.challenged(self.challenge(nonce: "n1")).challenge
        #expect(asked?.previousFailureCount == 1)
        #expect(asked?.proposedCredential?.password == "wrong")
        #expect(DigestServer().accepts(script.use("user").field))
    }

    @Test("what Digest was refused with is not sent in clear after it")
    func neverClear() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged(self.challenge(nonce: "n0"), "Basic realm=\"r\"")
        _ = script.use("user", "wrong")
        #expect(script.challenged("Basic realm=\"r\"").isDelivery)
        // Another request begins anew.
        script.move(to: "http://example.com/other")
        _ = script.machine.preemption(for: script.request)
        #expect(script.challenged("Basic realm=\"r\"").challenge != nil)
    }

    @Test("counts of a nonce are shared by the tasks of a storage, and none is used twice (§3.4)")
    func counts() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage)
        _ = script.challenged(Self.challenge)
        _ = script.use("user")
        script.accepted()
        var counts: Set<String> = []
        for number in 0..<20 {
            var other = try ScriptedChallenges("http://example.com/\(number)", storage: storage)
            let field = other.machine.preemption(for: other.request)?.field
            #expect(DigestServer().accepts(field))
            counts.insert(DigestServer.parameters(field)?["nc"] ?? "none")
            other.accepted()
        }
        #expect(counts.count == 20)
        #expect(!counts.contains("00000001"))
    }

    @Test("a domain bounds what is sent at once (§3.3)")
    func domain() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges("http://example.com/in/x", storage: storage)
        _ = script.challenged(self.challenge(nonce: "n", ", domain=\"/in /also\""))
        _ = script.use("user")
        script.accepted()
        for (path, isSent) in [("/in/y", true), ("/also/z", true), ("/out", false)] {
            var other = try ScriptedChallenges("http://example.com\(path)", storage: storage)
            #expect((other.machine.preemption(for: other.request) != nil) == isSent, "\(path)")
        }
    }

    @Test("nextnonce is used from the next request on (§3.5)")
    func nextNonce() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged(Self.challenge)
        _ = script.use("user")
        script.accepted(info: ["nextnonce=\"fresh\""])
        let field = script.machine.preemption(for: script.request)?.field
        #expect(DigestServer.parameters(field)?["nonce"] == "fresh")
        #expect(DigestServer.parameters(field)?["nc"] == "00000001")
        #expect(DigestServer().accepts(field))
    }

    @Test("a server that does not know the password is not kept, however it answers (§3.5)")
    func unproven() throws {
        var script = try ScriptedChallenges()
        _ = script.challenged(Self.challenge)
        let sent = DigestServer.parameters(script.use("user").field)
        script.accepted(info: [
            "rspauth=\"00000000000000000000000000000000\", qop=auth, nc=00000001, "
                + "cnonce=\"\(sent?["cnonce"] ?? "")\""
        ])
        #expect(script.storage?.allCredentials.isEmpty == true)
        #expect(script.machine.preemption(for: script.request) == nil)
    }

    @Test("a nonce that the server has forgotten without saying so is replaced without a question")
    func forgotten() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage)
        _ = script.challenged(Self.challenge)
        _ = script.use("user")
        script.accepted()
        var other = try ScriptedChallenges(storage: storage)
        #expect(other.machine.preemption(for: other.request) != nil)
        let field = other.challenged(self.challenge(nonce: "new")).field
        #expect(DigestServer().accepts(field))
        #expect(DigestServer.parameters(field)?["nonce"] == "new")
        // And the next one would be a refusal.
        #expect(other.challenged(self.challenge(nonce: "newer")).challenge != nil)
    }

    @Test("auth-int is sent at once with content that is at hand")
    func protectedPreemption() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage, method: "POST")
        let content = Array("content".utf8)
        _ = script.challenged("Digest realm=\"r\", nonce=\"n\", qop=auth-int", content: content)
        _ = script.use("user")
        script.accepted()
        #expect(script.machine.preemption(for: script.request) == nil)
        script.request.httpBody = Data(content)
        let field = script.machine.preemption(for: script.request)?.field
        #expect(DigestServer(method: "POST", content: content).accepts(field))
    }

    @Test("a credential of one use counts its nonces for the task alone")
    func once() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage)
        _ = script.challenged(Self.challenge)
        #expect(DigestServer().accepts(script.use("user", "secret", .none).field))
        let field = script.challenged(self.challenge(nonce: "n2", ", stale=true")).field
        #expect(DigestServer().accepts(field))
        script.accepted()
        #expect(script.machine.preemption(for: script.request) == nil)
        #expect(storage.servers.remembersNothing)
    }
}

@Suite("The authentication of a task: proxies (§6.1)")
struct CredentialsProxyTests {
    private static let proxy = ProxyParty(host: "proxy.example", port: 3128, kind: .http)

    private func asked(
        _ script: inout ScriptedChallenges, _ lines: String...,
        by proxy: ProxyParty? = CredentialsProxyTests.proxy
    ) -> ChallengeStep {
        script.machine.answered(
            ScriptedChallenges.head(407, lines, name: "Proxy-Authenticate"), to: script.request,
            content: [], proxy: proxy)
    }

    private func login(_ step: ChallengeStep) -> ProxyLogin? {
        guard case .retry(let authorization) = step else { return nil }
        return authorization?.forProxy
    }

    @Test("a 407 asks for the proxy's space, which is its own")
    func space() throws {
        var script = try ScriptedChallenges()
        let step = self.asked(&script, "Basic realm=\"p\"")
        let space = try #require(step.challenge?.protectionSpace)
        #expect(space.isProxy())
        #expect(space.proxyType == NSURLProtectionSpaceHTTPProxy)
        #expect(space.protocol == nil)
        #expect(space.host == "proxy.example")
        #expect(space.port == 3128)
        let login = self.login(script.use("user"))
        #expect(login?.user == "user")
        #expect(login?.method == .basic)
        #expect(login?.proxy == Self.proxy)
        #expect(login?.password == Secret("secret"))
    }

    @Test("the login goes along with what the origin asks for, and is kept when it was taken")
    func together() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage)
        _ = self.asked(&script, "Basic realm=\"p\"")
        _ = script.use("proxy-user")
        _ = script.challenged("Basic realm=\"o\"")
        guard case .retry(let authorization?) = script.use("user") else {
            Issue.record("no answer")
            return
        }
        #expect(authorization.forProxy?.user == "proxy-user")
        #expect(authorization.field == basic("user"))
        // The origin's 401 came through the proxy.
        #expect(storage.allCredentials.keys.contains { $0.isProxy() })
        #expect(storage.login(for: Self.proxy)?.user == "proxy-user")
        script.accepted()
        #expect(storage.allCredentials.count == 2)
        script.move(to: "http://elsewhere.example/")
        let next = script.machine.preemption(for: script.request)
        #expect(next?.forProxy?.user == "proxy-user")
        #expect(next?.forOrigin == nil)
    }

    @Test("a refusal counts, and what was accepted before is forgotten")
    func refused() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage)
        _ = self.asked(&script, "Digest realm=\"p\", nonce=\"n\"", "Basic realm=\"p\"")
        #expect(self.login(script.use("user"))?.method == .digest)
        let step = self.asked(&script, "Basic realm=\"p\"")
        // Not in clear what Digest was refused with.
        #expect(step.isDelivery)
        _ = self.asked(&script, "NTLM")
        _ = script.use("user")
        script.accepted()
        #expect(storage.login(for: Self.proxy) != nil)
        var other = try ScriptedChallenges(storage: storage)
        let challenge = self.asked(&other, "NTLM").challenge
        #expect(challenge?.proposedCredential?.user == "user")
        #expect(storage.login(for: Self.proxy) == nil)
    }

    @Test("on the way to a secure origin the proxy's response is none for the program")
    func secure() throws {
        var script = try ScriptedChallenges("https://example.com/")
        _ = self.asked(&script, "Basic realm=\"p\"")
        #expect(
            script.machine.decided(.performDefaultHandling, nil).failure
                == .userAuthenticationRequired)
        var plain = try ScriptedChallenges("http://example.com/")
        _ = self.asked(&plain, "Basic realm=\"p\"")
        #expect(plain.machine.decided(.performDefaultHandling, nil).isDelivery)
    }

    @Test("a 407 that no proxy said is an ordinary response")
    func noProxy() throws {
        var script = try ScriptedChallenges("https://example.com/")
        #expect(self.asked(&script, "Basic realm=\"p\"", by: nil).isDelivery)
    }

    @Test("an origin with the proxy's name and port gets nothing of its login")
    func apart() throws {
        let storage = URLCredentialStorage.ephemeral()
        var script = try ScriptedChallenges(storage: storage)
        _ = self.asked(&script, "Basic realm=\"p\"")
        _ = script.use("proxy-user")
        script.accepted()
        var other = try ScriptedChallenges("http://proxy.example:3128/", storage: storage)
        #expect(other.machine.preemption(for: other.request)?.forOrigin == nil)
        _ = other.challenged("Basic realm=\"p\"")
        #expect(other.machine.decided(.performDefaultHandling, nil).isDelivery)
    }
}
