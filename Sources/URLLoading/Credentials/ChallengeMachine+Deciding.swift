import Foundation
import LarderCredentials
import LarderEngine
import LarderHTTP
import LarderSession

/// The choice of a challenge, and of the credential for it.
extension ChallengeMachine {
    /// The delegate, or nobody, has answered the last `.ask`.
    mutating func decided(
        _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?
    ) -> ChallengeStep {
        guard let question = self.question, let first = question.candidates.first else {
            return .deliver
        }
        switch disposition {
        case .useCredential:
            guard let credential, credential.asLogin != nil else { return self.goOnWithout() }
            if let answer = self.answer(first, with: credential, question, isChosen: true) {
                return self.retry(answer.authorization)
            }
            // It cannot be expressed in this scheme, or must not be: then in the next.
            return self.reject()
        case .performDefaultHandling: return self.handleByDefault()
        case .cancelAuthenticationChallenge:
            self.question = nil
            return .fail(URLError(.cancelled))
        case .rejectProtectionSpace: return self.reject()
        }
    }

    private mutating func reject() -> ChallengeStep {
        if self.question?.candidates.isEmpty == false { self.question?.candidates.removeFirst() }
        return self.ask()
    }

    private mutating func goOnWithout() -> ChallengeStep {
        guard let question = self.question else { return .deliver }
        self.question = nil
        self.isSentNow = false
        return self.undelivered(question.isProxy, question.asked.uri)
    }

    /// The response is for the program, unless it is a proxy's where the origin's is expected: what
    /// stands in the way to a secure origin must not speak in its name.
    func undelivered(_ isProxy: Bool, _ uri: TargetURI) -> ChallengeStep {
        isProxy && uri.scheme == .https ? .fail(URLError(.userAuthenticationRequired)) : .deliver
    }

    mutating func ask() -> ChallengeStep {
        guard let question = self.question, let first = question.candidates.first else {
            return self.goOnWithout()
        }
        let proposal =
            question.refused ?? question.urlCredential ?? self.stored(for: first)
        return .ask(
            URLAuthenticationChallenge(
                first.shown, proposing: proposal, after: self.failures,
                response: question.response),
            isSessionWide: first.space.method.isSessionWide)
    }

    /// The credential in the URL, else the storage's default, unless the task was refused with it.
    private mutating func handleByDefault() -> ChallengeStep {
        guard let question = self.question else { return .deliver }
        for candidate in question.candidates {
            for credential in [question.urlCredential, self.stored(for: candidate)] {
                guard let credential, let login = credential.asLogin,
                    !self.isRefused(login, for: candidate.space)
                else { continue }
                if let answer = self.answer(
                    candidate, with: credential, question, isChosen: false)
                {
                    return self.retry(answer.authorization)
                }
            }
        }
        return self.goOnWithout()
    }

    /// The default for the challenge's space, else the one for the host's default method.
    private func stored(for candidate: Candidate) -> URLCredential? {
        guard let storage = self.storage else { return nil }
        return storage.defaultCredential(for: candidate.shown)
            ?? storage.defaultCredential(for: candidate.shown.ofDefaultMethod)
    }

    mutating func retry(_ authorization: LoadAuthorization?) -> ChallengeStep {
        self.question = nil
        let all = self.authorization(authorization)
        self.pending = (self.url, all)
        return .retry(all)
    }

    // MARK: Candidates

    /// The challenges that can be answered, strongest first, each space once.
    func candidates(
        _ challenges: Challenges, _ asked: ChallengedRequest, proxy: ProxyParty?,
        ofWebSocket isWebSocket: Bool = false
    ) -> [Candidate] {
        var found: [Candidate] = []
        for challenge in challenges.ranked().map(\.withBasicRealm) {
            guard let method = AuthenticationMethod(challenge.scheme),
                Self.isUsable(challenge, asked, isProxy: proxy != nil),
                // A handshake is one request on a connection of its own: there is no second leg.
                !isWebSocket || !method.isSessionWide
            else { continue }
            let space = ProtectionSpace(
                party: proxy.map { .proxy($0.kind) } ?? .server(asked.uri.scheme),
                host: proxy?.host ?? asked.uri.host, port: proxy?.port ?? asked.uri.port,
                realm: challenge.realm, method: method)
            if found.contains(where: { $0.space == space }) { continue }
            // What Digest was refused with is not sent in clear after it.
            if challenge.scheme == .basic, self.forbidsClear(space) {
                continue
            }
            found.append(
                Candidate(challenge: challenge, space: space, shown: URLProtectionSpace(space)))
        }
        return found
    }

    private static func isUsable(
        _ challenge: Challenge, _ asked: ChallengedRequest, isProxy: Bool
    ) -> Bool {
        switch challenge.scheme {
        case .basic: return (try? Basic.check(challenge)) != nil
        case .digest:
            guard let digest = try? DigestChallenge(challenge),
                CryptoHasher().hash([], by: digest.algorithm.hash) != nil
            else { return false }
            return isProxy || digest.protections != [.authInt] || asked.content != nil
        default: return true
        }
    }

    private func forbidsClear(_ space: ProtectionSpace) -> Bool {
        if space.isProxy {
            return self.refusals.contains { refusal in
                refusal.space.method == .digest && refusal.space.party == space.party
                    && refusal.space.host == space.host && refusal.space.port == space.port
            }
        }
        // One that went out before anyone asked was perhaps meant for another part of the server.
        return self.attempts.contains { $0.sent.scheme == .digest && !$0.sent.isPreemptive }
    }

    // MARK: Answers

    /// What goes out for the origin, which is nothing where only the proxy was answered.
    private struct Answer {
        var authorization: LoadAuthorization?
    }

    /// nil: the credential cannot be sent.
    private mutating func answer(
        _ candidate: Candidate, with credential: URLCredential, _ question: Question,
        isChosen: Bool
    ) -> Answer? {
        guard let login = credential.asLogin else { return nil }
        if question.isProxy { return self.answerProxy(candidate, login, credential, question) }
        let memory = self.memory(for: login)
        let counting = self.attempts.map(\.sent).filter {
            // What a program chooses may be sent again: it has its reasons.
            $0.scheme == .digest && candidate.challenge.scheme == .basic
                || !isChosen && $0.credential == login && $0.space == candidate.space
        }
        guard
            let sent = memory.answer(
                candidate.challenge, in: candidate.space, with: login, to: question.asked,
                after: counting)
        else { return nil }
        self.attempts.append(Attempt(sent: sent, credential: credential, memory: memory))
        self.isSentNow = true
        return Answer(authorization: sent.authorization)
    }

    private mutating func answerProxy(
        _ candidate: Candidate, _ login: Credential, _ credential: URLCredential,
        _ question: Question
    ) -> Answer? {
        guard let proxy = question.proxy else { return nil }
        let isExpressible =
            candidate.space.method != .basic || (try? Basic.fieldValue(for: login)) != nil
        guard isExpressible else { return nil }
        let answer = ProxyLogin(
            proxy: proxy, method: candidate.space.method, user: login.user,
            password: login.password)
        self.proxyLogin = answer
        self.proxyAttempt = (answer, candidate, credential)
        // `retry` adds it; what the origin was sent goes along again.
        return Answer(
            authorization: self.isSentNow ? self.attempts.last?.sent.authorization : nil)
    }

    /// What is used once is remembered for the task alone.
    private mutating func memory(for login: Credential) -> SessionCredentials {
        if let storage = self.storage, login.persistence != .none { return storage.servers }
        if let own = self.ownMemory { return own }
        let own = SessionCredentials(
            CredentialStore(keepsPermanent: false), hasher: CryptoHasher())
        self.ownMemory = own
        return own
    }

    /// An answer with a new nonce, where only the old one was wrong (RFC 7616 §3.3, `stale`): nobody
    /// is asked, and nothing was refused.
    mutating func renewal(
        _ candidates: [Candidate], _ asked: ChallengedRequest
    ) -> LoadAuthorization? {
        guard self.isSentNow, let last = self.attempts.last, last.sent.scheme == .digest,
            let candidate = candidates.first(where: { $0.space == last.sent.space }),
            let sent = last.memory.answer(
                candidate.challenge, in: candidate.space, with: last.sent.credential, to: asked,
                after: self.attempts.map(\.sent).filter { $0.space == candidate.space })
        else { return nil }
        self.attempts.append(
            Attempt(sent: sent, credential: last.credential, memory: last.memory))
        return sent.authorization
    }

    /// Takes down that the request under way was refused; gives the credential, nil where what was
    /// sent beforehand was meant for another space.
    mutating func noteRefusal(
        _ candidates: [Candidate], _ asked: ChallengedRequest
    ) -> URLCredential? {
        guard self.isSentNow, let last = self.attempts.last else { return nil }
        self.isSentNow = false
        let isOfIt =
            candidates.isEmpty || candidates.contains { $0.space == last.sent.space }
        if last.sent.isPreemptive, !isOfIt {
            self.attempts = []
            return nil
        }
        last.memory.refused(last.sent, at: asked.uri)
        self.refusals.append((last.sent.space, last.sent.credential))
        self.failures += 1
        return last.credential
    }

    /// Takes down that a proxy refused the request under way; gives the credential that was sent.
    ///
    /// A login that had been accepted, by this task or another, is not accepted any more.
    mutating func noteProxyRefusal(by proxy: ProxyParty?) -> URLCredential? {
        if let proxy { self.storage?.forgetLogin(for: proxy) }
        guard let attempt = self.proxyAttempt, attempt.login.proxy == proxy else {
            self.proxyLogin = nil
            self.proxyAttempt = nil
            return nil
        }
        self.proxyAttempt = nil
        self.proxyLogin = nil
        if let login = attempt.credential.asLogin {
            self.refusals.append((attempt.candidate.space, login))
        }
        self.failures += 1
        return attempt.credential
    }
}

extension SentCredential {
    /// As a load takes it.
    var authorization: LoadAuthorization {
        switch self.form {
        case .field(let value): .field(value)
        case .connection(let handshake): .connection(handshake)
        }
    }
}
