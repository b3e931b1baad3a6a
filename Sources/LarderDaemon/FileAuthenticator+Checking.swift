import LarderCredentials
package import LarderHTTP
package import LarderProxy
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
        if scheme.spells("basic"), self.options.passwordFile != nil {
            return self.checkBasic(value, client: client, completion: completion)
        }
        if scheme.spells("bearer"), self.options.tokenFile != nil {
            return self.checkBearer(value, client: client)
        }
        // No guess at what is known here, and nothing that could be right.
        return .missing
    }

    // MARK: Tokens

    private func checkBearer(_ value: FieldValue, client: ClientAddress) -> AuthenticationVerdict {
        let token = TokenFile.token(in: value)
        let digest = token.map { self.key.digest(ofToken: $0) }
        let now = self.clock()
        let (attempt, name, isNews) = self.state.withLock {
            state -> (FailureLimit.Attempt, String?, Bool) in
            let attempt = state.limit.take(client, at: now)
            guard attempt == .granted else { return (attempt, nil, false) }
            guard let name = digest.flatMap({ state.register.name(ofToken: $0) }) else {
                return (attempt, nil, state.limit.failed(client))
            }
            state.limit.giveBack(client)
            return (attempt, name, false)
        }
        if let throttled = self.throttled(attempt, client: client) { return throttled }
        if let name { return .known(user: name) }
        if isNews { self.notice(.refused(client: client, user: "")) }
        return .refused
    }

    private func throttled(
        _ attempt: FailureLimit.Attempt, client: ClientAddress
    ) -> AuthenticationVerdict? {
        guard case .throttled(let time, let isNews) = attempt else { return nil }
        if isNews { self.notice(.throttled(client: client)) }
        return .throttled(retryAfter: time)
    }

    // MARK: Passwords

    private enum Step {
        case verdict(AuthenticationVerdict)
        case throttled(FailureLimit.Attempt)
        case verify
    }

    private func checkBasic(
        _ value: FieldValue, client: ClientAddress, completion: @escaping Completion
    ) -> AuthenticationVerdict {
        guard let (user, password) = try? Basic.read(value), user.count <= Self.longestUser,
            password.revealed.count <= Self.longestPassword
        else { return self.refuse(client: client) }
        let digest = self.key.digest(value)
        let now = self.clock()
        let step = self.state.withLock { state in
            self.step(&state, digest, user, client: client, at: now, completion: completion)
        }
        switch step {
        case .verdict(let verdict):
            return verdict
        case .throttled(let attempt):
            return self.throttled(attempt, client: client) ?? .busy
        case .verify:
            self.verify(user, password, digest: digest)
            return .pending
        }
    }

    /// Throttling comes before all that could confirm a guess, also at what is remembered or being
    /// verified for others.
    private func step(
        _ state: inout State, _ digest: KeyedDigest, _ user: [UInt8], client: ClientAddress,
        at now: ContinuousClock.Instant, completion: @escaping Completion
    ) -> Step {
        let flight = state.flights[digest]
        // The same once more from where it came from is no further guess.
        if flight?.client.text != client.text {
            let look = state.limit.look(client, at: now)
            guard look == .granted else { return .throttled(look) }
        }
        if let user = state.verified.user(of: digest, at: now) {
            return .verdict(.known(user: user))
        }
        guard state.waiting < self.options.waiting else { return .verdict(.busy) }
        if flight != nil {
            state.flights[digest]?.waiters.append(completion)
            state.waiting += 1
            return .verdict(.pending)
        }
        guard state.flights.count < self.options.queue else { return .verdict(.busy) }
        let attempt = state.limit.take(client, at: now)
        guard attempt == .granted else { return .throttled(attempt) }
        state.flights[digest] = Flight(client: client, user: user, waiters: [completion])
        state.waiting += 1
        return .verify
    }

    /// Refuses what is no credentials at all: it counts like a wrong guess.
    private func refuse(client: ClientAddress) -> AuthenticationVerdict {
        let now = self.clock()
        let (attempt, isNews) = self.state.withLock { state -> (FailureLimit.Attempt, Bool) in
            let attempt = state.limit.take(client, at: now)
            return (attempt, attempt == .granted && state.limit.failed(client))
        }
        if let throttled = self.throttled(attempt, client: client) { return throttled }
        if isNews { self.notice(.refused(client: client, user: "")) }
        return .refused
    }
}
