import LarderCredentials
import LarderHTTP
import Testing

@testable import LarderSession

@Suite("Credentials that a caller chooses itself")
struct ChosenCredentialsTests {
    private struct NoHasher: DigestHasher {
        func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]? { octets }
    }

    private let memory = SessionCredentials(
        CredentialStore(keepsPermanent: false), hasher: NoHasher(), nonce: { Array("c".utf8) })
    private let credential = Credential(
        user: "u", password: Secret("p"), persistence: .forSession)

    private func request(_ path: String = "/a") -> ChallengedRequest {
        ChallengedRequest(
            method: .get, uri: TargetURI(scheme: .https, host: "h", pathAndQuery: path),
            content: [])
    }

    private func answer(_ line: String) throws -> SentCredential {
        let challenge = try #require(try Challenges.parse(Array(line.utf8)[...]).first)
        let space = try #require(ProtectionSpace(challenge, from: self.request().uri))
        return try #require(
            self.memory.answer(
                challenge, in: space, with: self.credential, to: self.request(), after: []))
    }

    private func preempts(_ path: String = "/b", isHeld: Bool = true) -> SentCredential? {
        self.memory.preempts(self.request(path), content: { nil }) { _, _ in isHeld }
    }

    @Test("are sent at once where they were accepted, as long as the caller has them")
    func preempted() throws {
        #expect(self.memory.remembersNothing)
        let sent = try self.answer("Basic realm=\"r\"")
        #expect(self.preempts() == nil)
        self.memory.accepted(
            sent, by: ResponseHead(status: StatusCode(rawValue: 200)), for: self.request())
        #expect(!self.memory.remembersNothing)
        #expect(self.preempts()?.credential == self.credential)
        #expect(self.preempts(isHeld: false) == nil)
        // Nothing is looked up: the store is empty, and says nothing.
        #expect(self.memory.preempts(self.request("/b")) == nil)
    }

    @Test("are forgotten by space, but for one user's")
    func forgotten() throws {
        let sent = try self.answer("Basic realm=\"r\"")
        let head = ResponseHead(status: StatusCode(rawValue: 200))
        self.memory.accepted(sent, by: head, for: self.request())
        self.memory.forget(sent.space, except: "u")
        #expect(self.preempts() != nil)
        self.memory.forget(sent.space)
        #expect(self.preempts() == nil)
        self.memory.accepted(sent, by: head, for: self.request())
        self.memory.forgetAll()
        #expect(self.memory.remembersNothing)
    }

    @Test("with a nonce count on, and ask for content where it is protected")
    func counted() throws {
        let sent = try self.answer("Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"")
        self.memory.accepted(
            sent, by: ResponseHead(status: StatusCode(rawValue: 200)), for: self.request())
        var request = self.request("/b")
        request.content = nil
        #expect(self.memory.preempts(request, content: { nil }) { _, _ in true } == nil)
        let counts = (0..<3).map { _ in
            self.memory.preempts(request, content: { [1] }) { _, _ in true }?.digest?.nonceCount
        }
        #expect(counts == [2, 3, 4])
    }

    @Test("a change is in force when it is told, and what is reread gives way to it")
    func changed() {
        let space = ProtectionSpace(
            party: .server(.https), host: "h", port: 443, realm: "r", method: .basic)
        let count = self.memory.changeCount
        let isNew = self.memory.change { ($0.set(self.credential, for: space), true) }
        #expect(isNew)
        #expect(self.memory.store.defaultCredential(for: space) == self.credential)
        #expect(!self.memory.reread([], unchangedSince: count))
        #expect(self.memory.reread([], unchangedSince: self.memory.changeCount))
        #expect(self.memory.store.defaultCredential(for: space) == self.credential)
    }
}
