package import LarderCredentials
package import LarderHTTP
import Synchronization

/// The credentials of a session: what it holds, what was good where, and how it answers.
///
/// Any thread may use it. Changes are in force at once, and last when they have returned, where the
/// session has a storage; one that fails is reported once, and the session goes on in memory.
package final class SessionCredentials: Sendable {
    struct State: ~Copyable {
        var store: CredentialStore
        var spaces = AcceptedSpaces()
        /// Changes of permanent credentials, for the storage.
        var pending: [CredentialChange] = []
        var isSaving = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var hasReported = false
        /// Why the storage did not take the last batch; nil once it has taken one.
        var failure: CredentialStorageError?
        /// The revision of what is held in common, when a refusal was last looked for.
        var seenRevision: UInt64 = 0
    }

    let state: Mutex<State>
    /// What all principals of a session share, where this is the part of one.
    private let common: SessionCredentials?
    /// How often what is held was changed.
    let revision = Atomic<UInt64>(0)
    let storage: (any CredentialStorage)?
    let report: @Sendable (CredentialStorageError) -> Void
    private let hasher: any DigestHasher
    private let nonce: @Sendable () -> [UInt8]
    /// Asked once an exchange, thus without the lock.
    let holdsAny: Atomic<Bool>

    /// - Parameters:
    ///   - store: what it begins with.
    ///   - storage: nil for an ephemeral session.
    ///   - common: where rules find the credentials that this has not: those of the whole session,
    ///     for a principal. Challenges that no rule speaks of are answered from `store` alone.
    ///   - nonce: unpredictable text for Digest, visible ASCII without quotes, another each time.
    ///   - report: hears why the storage failed; any thread, must not block.
    package init(
        _ store: CredentialStore, storage: (any CredentialStorage)? = nil,
        common: SessionCredentials? = nil, hasher: any DigestHasher,
        nonce: @escaping @Sendable () -> [UInt8] = { SessionCredentials.randomNonce() },
        report: @escaping @Sendable (CredentialStorageError) -> Void = { _ in }
    ) {
        self.holdsAny = Atomic(!store.isEmpty)
        self.state = Mutex(State(store: store))
        self.storage = storage
        self.common = common
        self.hasher = hasher
        self.nonce = nonce
        self.report = report
    }

    /// 128 bits of the system's random numbers, in hexadecimal digits.
    package static func randomNonce() -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return (0..<32).map { _ in digits[Int.random(in: 0..<16)] }
    }

    /// What is held now: a copy.
    package var store: CredentialStore { self.state.withLock { $0.store } }

    var isEmpty: Bool { !self.holdsAny.load(ordering: .relaxed) }

    /// The credential that a rule means by a name: its own, or else the one held in common.
    package func named(_ name: String) -> NamedCredential? {
        self.state.withLock { $0.store.named(name) } ?? self.common?.named(name)
    }

    // MARK: Before anyone asks

    /// What would be sent with a request before anyone asks; nil: nothing.
    func preemption(for request: ChallengedRequest) -> Credential? {
        self.state.withLock { Self.entry(for: request, &$0)?.credential }
    }

    /// What is sent with a request before anyone asks, ready to be sent: uses a count of the nonce
    /// up.
    func preempts(_ request: ChallengedRequest) -> SentCredential? {
        let found = self.state.withLock {
            state -> (AcceptedSpaces.Entry, DigestSession?)? in
            guard let entry = Self.entry(for: request, &state) else { return nil }
            let digest = state.spaces.reserve(
                entry.space, entry.credential, owner: entry.owner, at: request.uri)
            return (entry, digest)
        }
        guard let (entry, digest) = found else { return nil }
        return self.sent(
            entry.space, entry.scheme, entry.credential, request, isPreemptive: true,
            digest: digest)
    }

    /// What was good for the URI, if the credential is still the one to use there.
    private static func entry(
        for request: ChallengedRequest, _ state: inout State
    ) -> AcceptedSpaces.Entry? {
        state.spaces.covering(request.uri).first { entry in
            entry.owner == request.named?.name
                && entry.credential == self.credential(for: entry.space, request, state.store)
        }
    }

    private static func credential(
        for space: ProtectionSpace, _ request: ChallengedRequest, _ store: CredentialStore
    ) -> Credential? {
        if let named = request.named { return named.asPassword }
        if let own = store.offered(for: space) { return own }
        // Kept for the host's default method: whichever that turns out to be.
        return store.offered(
            for: ProtectionSpace(
                party: space.party, host: space.host, port: space.port, realm: space.realm,
                method: .default))
    }

    // MARK: Challenges

    /// Whether there is something to answer a challenge with, whichever it may be.
    func mayAnswer(_ request: ChallengedRequest) -> Bool {
        if let named = request.named { return named.asPassword != nil }
        return self.state.withLock { $0.store.holdsAny(for: request.uri) }
    }

    /// An answer to the challenges of a 401; nil where none is to be given.
    ///
    /// - Parameter sent: what went out for this target before, the last one last.
    func answer(
        _ challenges: Challenges, to request: ChallengedRequest, after sent: [SentCredential]
    ) -> SentCredential? {
        for challenge in challenges.ranked().map(\.withBasicRealm) {
            guard let space = ProtectionSpace(challenge, from: request.uri),
                let credential = self.usable(for: space, request)
            else { continue }
            if let answer = self.answer(challenge, space, credential, request, sent) {
                return answer
            }
        }
        return nil
    }

    private func usable(
        for space: ProtectionSpace, _ request: ChallengedRequest
    ) -> Credential? {
        let revision = self.common?.revision.load(ordering: .acquiring) ?? 0
        return self.state.withLock { state in
            if state.seenRevision != revision {
                state.seenRevision = revision
                state.spaces.forgetRefusals()
            }
            guard let credential = Self.credential(for: space, request, state.store),
                !state.spaces.isRefused(credential, for: space, owner: request.named?.name)
            else { return nil }
            return credential
        }
    }

    func answer(
        _ challenge: Challenge, _ space: ProtectionSpace, _ credential: Credential,
        _ request: ChallengedRequest, _ sent: [SentCredential]
    ) -> SentCredential? {
        let same = sent.filter { $0.scheme == challenge.scheme }
        switch challenge.scheme {
        case .basic:
            // What Digest was refused with is not sent in clear after it.
            guard
                !sent.contains(where: { $0.scheme == .digest && $0.forbidsClear(request, space) }),
                same.allSatisfy({ $0.isPreemptive && $0.credential != credential }),
                (try? Basic.check(challenge)) != nil
            else { return nil }
            return self.sent(space, .basic, credential, request, isPreemptive: false)
        case .digest:
            return self.digest(challenge, space, credential, request, same)
        default:
            guard same.isEmpty else { return nil }
            return self.sent(space, challenge.scheme, credential, request, isPreemptive: false)
        }
    }

    private func digest(
        _ challenge: Challenge, _ space: ProtectionSpace, _ credential: Credential,
        _ request: ChallengedRequest, _ same: [SentCredential]
    ) -> SentCredential? {
        guard let parsed = try? DigestChallenge(challenge) else { return nil }
        var session = DigestSession(parsed, credential: credential, cnonce: self.nonce())
        if let last = same.last, let used = last.digest {
            if let renewed = used.renewed(by: parsed, cnonce: self.nonce()),
                last.credential == credential
            {
                session = renewed
            } else {
                // Old servers forget a nonce without saying `stale`; an answer to this very
                // challenge is another thing.
                guard last.isPreemptive, used.nonce != parsed.nonce else { return nil }
            }
        }
        // Another request may have begun to use the nonce: then this one counts on.
        let shared = self.state.withLock { state in
            state.spaces.reserve(
                space, credential, owner: request.named?.name, at: request.uri,
                nonce: parsed.nonce)
        }
        if shared == nil {
            var kept = session
            _ = kept.reserving()
            guard
                let answer = self.sent(
                    space, .digest, credential, request, isPreemptive: false, digest: session)
            else { return nil }
            self.state.withLock { $0.spaces.begin(answer, kept, at: request.uri) }
            return answer
        }
        return self.sent(
            space, .digest, credential, request, isPreemptive: false, digest: shared)
    }

    func sent(
        _ space: ProtectionSpace, _ scheme: AuthenticationScheme, _ credential: Credential,
        _ request: ChallengedRequest, isPreemptive: Bool, digest: DigestSession? = nil
    ) -> SentCredential? {
        var digest = digest
        guard let form = self.form(scheme, credential, request, &digest) else { return nil }
        return SentCredential(
            form: form, space: space, scheme: scheme, credential: credential,
            owner: request.named?.name, isPreemptive: isPreemptive, digest: digest)
    }

    private func form(
        _ scheme: AuthenticationScheme, _ credential: Credential, _ request: ChallengedRequest,
        _ digest: inout DigestSession?
    ) -> SentCredential.Form? {
        let password = credential.password
        switch scheme {
        case .basic: return (try? Basic.fieldValue(for: credential)).map { .field(Secret($0)) }
        case .digest:
            guard var session = digest else { return nil }
            let value = try? session.fieldValue(for: request.target, hasher: self.hasher)
            digest = session
            return value.map { .field(Secret($0)) }
        case .ntlm, .negotiate:
            return .connection(
                ConnectionAuthentication(
                    scheme: scheme == .ntlm ? .ntlm : .negotiate, user: credential.user
                ) { password.revealed })
        default: return nil
        }
    }

    /// Whether what is held for a challenge is not sent because it was refused before.
    func withholds(_ challenges: Challenges, _ request: ChallengedRequest) -> Bool {
        challenges.ranked().contains { challenge in
            guard let space = ProtectionSpace(challenge, from: request.uri) else { return false }
            return self.state.withLock { state in
                Self.credential(for: space, request, state.store).map {
                    state.spaces.isRefused($0, for: space, owner: request.named?.name)
                } ?? false
            }
        }
    }

    // MARK: What the origin says

    /// The origin took a credential.
    ///
    /// - Returns: false where its proof that it knows the password too is wrong.
    @discardableResult
    package func accepted(
        _ sent: SentCredential, by head: ResponseHead, for request: ChallengedRequest
    ) -> Bool {
        let information = AuthenticationInformation(head.fields)
        if let information, let digest = sent.digest,
            let isRight = try? digest.verifies(
                information,
                for: DigestSession.Target(
                    method: request.method, uri: request.uri.pathAndQuery, content: nil),
                hasher: self.hasher), !isRight
        {
            _ = self.state.withLock { $0.spaces.refused(sent, at: request.uri) }
            return false
        }
        self.state.withLock { $0.spaces.accepted(sent, at: request.uri, information) }
        return true
    }

    /// The origin did not take a credential: it is not sent again until it has changed.
    package func refused(_ sent: SentCredential, at uri: TargetURI) {
        _ = self.state.withLock { $0.spaces.refused(sent, at: uri) }
    }

    /// What was refused may have become right.
    func forgetRefusals() {
        self.state.withLock { $0.spaces.forgetRefusals() }
    }
}
