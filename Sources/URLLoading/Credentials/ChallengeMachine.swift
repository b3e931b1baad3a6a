import Foundation
import LarderCredentials
import LarderEngine
import LarderHTTP
import LarderSession

/// How a task answers those who want to know who it is (§6): servers by 401, proxies by 407.
///
/// ```
/// preemption ─▶ (the request is sent) ─▶ answered ─▶ .deliver
///                 ▲                        │  ▲
///                 └──────── .retry ────────┘  └ accepted, with whatever was no challenge
///                 └─ .retry ◀─ decided ◀─ .ask
/// ```
///
/// A value: it calls nobody but the storage. What was accepted, and the nonces of Digest, are
/// remembered by the storage for all tasks; what was refused by the task alone, as the next one may
/// find another password on the server.
struct ChallengeMachine {
    /// A credential as it went out, and where it came from.
    struct Attempt {
        let sent: SentCredential
        let credential: URLCredential
        /// Remembers it: the storage's, or the task's own.
        let memory: SessionCredentials
    }

    /// A challenge that could be answered.
    struct Candidate {
        let challenge: Challenge
        let space: ProtectionSpace
        let shown: URLProtectionSpace
    }

    /// The challenges of a response that are not decided yet, the present one first.
    struct Question {
        var candidates: ArraySlice<Candidate>
        var asked: ChallengedRequest
        let isProxy: Bool
        let proxy: ProxyParty?
        /// The credential in the URL's user information.
        let urlCredential: URLCredential?
        /// Was refused by this response.
        let refused: URLCredential?
        let response: URLResponse?
    }

    /// Beyond so many answers for one target it is the response that the program gets: a delegate
    /// that always has an answer and a server that never takes one would go on for ever.
    static let roundLimit = 20

    let storage: URLCredentialStorage?
    /// Counts nonces of credentials that are used once.
    var ownMemory: SessionCredentials?
    /// What went out for the present target, the last one last.
    var attempts: [Attempt] = []
    /// Whether the last of them was sent with the request under way.
    var isSentNow = false
    var rounds = 0
    var proxyAttempt: (login: ProxyLogin, candidate: Candidate, credential: URLCredential)?
    /// The login that is sent to the proxy with each request, once it was asked for.
    var proxyLogin: ProxyLogin?
    /// What was refused in this task, where.
    var refusals: [(space: ProtectionSpace, credential: Credential)] = []
    var failures = 0
    var question: Question?
    /// The target of the last response.
    var url: URL?
    /// The answer that was given out last, until it is known what became of it.
    var pending: (url: URL?, authorization: LoadAuthorization?)?

    /// - Parameter storage: where credentials are found and kept; nil: each is used once.
    init(storage: URLCredentialStorage?) {
        self.storage = storage
    }

    // MARK: Before a load

    /// What is sent with a request before anyone asks; nil: nothing.
    ///
    /// Once for each load; for a repetition it gives the answer of the `.retry` again.
    mutating func preemption(for request: URLRequest) -> LoadAuthorization? {
        if let pending = self.pending, pending.url == request.url { return pending.authorization }
        self.question = nil
        self.pending = nil
        self.attempts = []
        self.isSentNow = false
        self.rounds = 0
        return self.authorization(self.preemptive(request))
    }

    /// With the login for the proxy, where there is one.
    func authorization(_ authorization: LoadAuthorization?) -> LoadAuthorization? {
        guard let login = self.proxyLogin else { return authorization }
        return .proxied(login, authorization)
    }

    /// Whether a new machine could have anything to send: whether any server is remembered.
    static func mayPreempt(by storage: URLCredentialStorage?) -> Bool {
        guard let storage else { return false }
        storage.beginSoon()
        return !storage.servers.remembersNothing
    }

    private mutating func preemptive(_ request: URLRequest) -> LoadAuthorization? {
        guard let storage = self.storage, Self.mayPreempt(by: storage),
            !request.namesAuthorization, !request.isEchoed, let url = request.url,
            let uri = TargetURI(challenged: url)
        else { return nil }
        let wanted = URLCredential(userInformationOf: url)?.asLogin
        let asked = ChallengedRequest(
            method: Method(rawValue: request.httpMethod ?? "GET"), uri: uri,
            content: request.mayHaveContent ? nil : [])
        var used: URLCredential?
        let content = { request.httpBody.map { Array($0) } }
        let sent = storage.servers.preempts(asked, content: content) { space, credential in
            if request.isWebSocket, space.method.isSessionWide { return false }
            if let wanted, !wanted.isSameLogin(as: credential) { return false }
            used = storage.held(credential, for: URLProtectionSpace(space))
            return used != nil
        }
        guard let sent, let used else { return nil }
        self.attempts = [Attempt(sent: sent, credential: used, memory: storage.servers)]
        self.isSentNow = true
        return sent.authorization
    }

    // MARK: After a load

    /// What a response with status 401 or 407 leads to; any other is delivered.
    ///
    /// - Parameters:
    ///   - content: the whole content of the request, for Digest with `auth-int`; nil where it is
    ///     not at hand.
    ///   - response: what delegates see of the head.
    ///   - proxy: who said 407; nil where that is not known, and it counts as a response then.
    mutating func answered(
        _ head: ResponseHead, to request: URLRequest, content: [UInt8]?,
        response: URLResponse? = nil, proxy: ProxyParty? = nil
    ) -> ChallengeStep {
        self.pending = nil
        self.question = nil
        self.url = request.url
        guard !request.isEchoed else { return .deliver }
        switch head.status.rawValue {
        case 401: self.proxyAccepted()
        case 407 where proxy != nil: break
        default:
            self.isSentNow = false
            return .deliver
        }
        guard let url = request.url, let uri = TargetURI(challenged: url) else { return .deliver }
        let isProxy = head.status.rawValue == 407
        let asked = ChallengedRequest(
            method: Method(rawValue: request.httpMethod ?? "GET"), uri: uri, content: content)
        // A refusal has a say in what may be answered next.
        let refusedLogin = isProxy ? self.noteProxyRefusal(by: proxy) : nil
        let challenges = Challenges(
            head.fields, name: FieldName(isProxy ? .proxyAuthenticate : .wwwAuthenticate))
        let candidates = self.candidates(
            challenges, asked, proxy: isProxy ? proxy : nil, ofWebSocket: request.isWebSocket)
        self.rounds += 1
        guard !candidates.isEmpty, self.rounds <= Self.roundLimit else {
            if self.isSentNow, !isProxy { _ = self.noteRefusal(candidates, asked) }
            return self.undelivered(isProxy, uri)
        }
        if !isProxy, let renewed = self.renewal(candidates, asked) {
            return self.retry(renewed)
        }
        let refused = isProxy ? refusedLogin : self.noteRefusal(candidates, asked)
        self.question = Question(
            candidates: candidates[...], asked: asked, isProxy: isProxy,
            proxy: isProxy ? proxy : nil,
            urlCredential: isProxy ? nil : URLCredential(userInformationOf: url),
            refused: refused,
            response: response ?? HTTPURLResponse(challenging: head, url: url))
        return self.ask()
    }

    /// The server took what was sent, if anything was: stores the credential by its persistence.
    ///
    /// For each response that is no challenge: redirections and the final one.
    mutating func accepted(_ head: ResponseHead, to request: URLRequest) {
        self.pending = nil
        self.question = nil
        let status = head.status.rawValue
        guard status != 407 else { return }
        self.proxyAccepted()
        defer { self.isSentNow = false }
        guard self.isSentNow, let last = self.attempts.last, Self.showsAcceptance(status),
            let uri = request.url.flatMap({ TargetURI(challenged: $0) })
        else { return }
        let asked = ChallengedRequest(
            method: Method(rawValue: request.httpMethod ?? "GET"), uri: uri)
        // One that proves not to know the password is not to be sent anything by itself again.
        guard last.memory.accepted(last.sent, by: head, for: asked) else { return }
        self.keep(last.credential, for: last.sent.space)
    }

    /// Whether the server has looked at a credential and found it good: not where it did not get so
    /// far.
    private static func showsAcceptance(_ status: UInt16) -> Bool {
        switch status {
        case 400, 401, 408, 421, 429, 431, 500...: false
        default: true
        }
    }

    private mutating func proxyAccepted() {
        guard let attempt = self.proxyAttempt else { return }
        self.proxyAttempt = nil
        self.keep(attempt.credential, for: attempt.candidate.space)
        if attempt.credential.asLogin?.persistence != CredentialPersistence.none {
            self.storage?.remember(attempt.login, for: attempt.candidate.shown)
        }
    }

    private func keep(_ credential: URLCredential, for space: ProtectionSpace) {
        guard let storage = self.storage else { return }
        let shown = URLProtectionSpace(space)
        if let held = credential.asLogin.flatMap({ storage.held($0, for: shown) }),
            held.persistence.rawValue >= credential.persistence.rawValue
        {
            return
        }
        let before = storage.defaultCredential(for: shown)?.asLogin
        let isDefaultRefused = before.map { self.isRefused($0, for: space) } ?? false
        storage.keepAccepted(credential, for: shown, asDefault: isDefaultRefused)
    }

    func isRefused(_ credential: Credential, for space: ProtectionSpace) -> Bool {
        self.refusals.contains {
            $0.space == space && $0.credential.isSameLogin(as: credential)
        }
    }
}
