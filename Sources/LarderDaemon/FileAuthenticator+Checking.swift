import LarderCredentials
package import LarderHTTP
package import LarderProxy
import LarderState
import Synchronization

/// What can be said of credentials at once.
extension FileAuthenticator {
    /// The longest user name and password that are looked at: no file holds longer ones.
    private static let longestUser = 255
    private static let longestPassword = 511

    package func check(
        _ value: FieldValue?, client: ClientAddress,
        completion: @escaping @Sendable (AuthenticationVerdict) -> Void
    ) -> AuthenticationVerdict {
        guard let value else { return .missing }
        let scheme = value.prefix { $0 != ASCII.space }
        let (knowsPasswords, knowsTokens) = self.state.withLock {
            ($0.register.knowsPasswords, $0.register.knowsTokens)
        }
        if scheme.spells("basic"), knowsPasswords {
            return self.checkBasic(value, client: client, completion: completion)
        }
        if scheme.spells("bearer"), knowsTokens {
            return self.checkBearer(value, client: client)
        }
        // No guess at what is known here, and nothing that could be right.
        return .missing
    }

    // MARK: Tokens

    /// A right one always passes: it is too long to be found by trying.
    private func checkBearer(_ value: FieldValue, client: ClientAddress) -> AuthenticationVerdict {
        let token = TokenFile.token(in: value)
        let digest = token.map { self.key.digest(ofToken: $0) }
        let name = self.state.withLock { state in
            digest.flatMap { state.register.name(ofToken: $0) }
        }
        return name.map { .known(user: $0) } ?? self.refuse(client: client)
    }

    private func throttled(
        _ attempt: LimitedAttempt, client: ClientAddress, user: [UInt8] = []
    ) -> AuthenticationVerdict? {
        guard case .throttled(let time, let isNews) = attempt else { return nil }
        if isNews {
            let user = String(decoding: user, as: UTF8.self)
            self.notice(.throttled(client: client, user: user))
        }
        return .throttled(retryAfter: time)
    }

    // MARK: Passwords

    private enum Step {
        case verdict(AuthenticationVerdict)
        case throttled(LimitedAttempt)
        /// Has to be verified; those give way of which these are the waiters.
        case verify(turn: UInt64, insteadOf: [Completion])
    }

    private func checkBasic(
        _ value: FieldValue, client: ClientAddress, completion: @escaping Completion
    ) -> AuthenticationVerdict {
        guard let (user, password) = try? Basic.read(value), user.count <= Self.longestUser,
            password.revealed.count <= Self.longestPassword
        else { return self.refuse(client: client) }
        let digest = self.key.digest(Array(value))
        let asked = Asked(
            digest: digest, user: user, client: client,
            guess: GuessLimit.Guess(client, user: self.key.number(ofUser: user)))
        let now = self.clock()
        let step = self.state.withLock { state in
            self.step(&state, asked, at: now, completion: completion)
        }
        switch step {
        case .verdict(let verdict):
            return verdict
        case .throttled(let attempt):
            return self.throttled(attempt, client: client, user: user) ?? .busy
        case .verify(let turn, let others):
            self.verify(user, password, digest: digest, turn: turn)
            for other in others { other(.busy) }
            return .pending
        }
    }

    /// What a client says of itself.
    private struct Asked {
        let digest: [UInt8]
        let user: [UInt8]
        let client: ClientAddress
        let guess: GuessLimit.Guess
    }

    /// What is known comes before what has to be verified: who was right is not kept waiting by
    /// others who are wrong.
    private func step(
        _ state: inout State, _ asked: Asked, at now: ContinuousClock.Instant,
        completion: @escaping Completion
    ) -> Step {
        // The same once more is no further guess, and costs no further hash.
        if state.refused.user(of: asked.digest, at: now) != nil { return .verdict(.refused) }
        let recall = state.limit.mayRecall(asked.guess, at: now)
        guard recall == .granted else { return .throttled(recall) }
        if let user = state.verified.user(of: asked.digest, at: now) {
            return .verdict(.known(user: user))
        }
        let step = self.unknown(&state, asked, at: now, completion: completion)
        switch step {
        case .verify, .verdict(.pending): break
        case .verdict, .throttled: state.limit.missed(asked.guess, at: now)
        }
        return step
    }

    /// Credentials of which nothing is known yet.
    private func unknown(
        _ state: inout State, _ asked: Asked, at now: ContinuousClock.Instant,
        completion: @escaping Completion
    ) -> Step {
        let running = state.verifications[asked.digest]
        if running.map({ $0.guess != asked.guess }) ?? true {
            let look = state.limit.look(asked.guess, at: now)
            guard look == .granted else { return .throttled(look) }
        }
        guard state.waiting < self.options.waiting else { return .verdict(.busy) }
        if running != nil {
            state.verifications[asked.digest]?.waiters.append(completion)
            state.waiting += 1
            return .verdict(.pending)
        }
        let isFull = state.verifications.count >= self.options.queue
        let other = isFull ? Self.givingWay(state, to: asked.guess.source) : nil
        guard !isFull || other != nil else { return .verdict(.busy) }
        let attempt = state.limit.take(asked.guess, at: now)
        guard attempt == .granted else { return .throttled(attempt) }
        let ended = other.flatMap { state.verifications.removeValue(forKey: $0) }
        if let ended {
            // Nobody looked at it.
            state.limit.giveBack(ended.guess)
            state.waiting -= ended.waiters.count
        }
        let turn = state.nextNumber
        state.nextNumber &+= 1
        state.verifications[asked.digest] = Verification(
            client: asked.client, guess: asked.guess, user: asked.user, number: turn,
            waiters: [completion])
        state.waiting += 1
        return .verify(turn: turn, insteadOf: ended?.waiters ?? [])
    }

    private static func givingWay(_ state: State, to newcomer: ClientSource) -> [UInt8]? {
        CrowdedGuesses.givingWay(
            state.verifications.compactMap { digest, guess in
                guess.isRunning
                    ? nil : .init(key: digest, source: guess.guess.source, number: guess.number)
            }, to: newcomer)
    }

    /// Refuses what is no credentials at all, or no token: it counts like a wrong guess at a user
    /// that all such have in common.
    private func refuse(client: ClientAddress) -> AuthenticationVerdict {
        let guess = GuessLimit.Guess(client, user: 0)
        let now = self.clock()
        let (attempt, isNews) = self.state.withLock { state -> (LimitedAttempt, Bool) in
            let attempt = state.limit.take(guess, at: now)
            return (attempt, attempt == .granted && state.limit.failed(guess))
        }
        if let throttled = self.throttled(attempt, client: client) { return throttled }
        if isNews { self.notice(.refused(client: client, user: "")) }
        return .refused
    }
}
