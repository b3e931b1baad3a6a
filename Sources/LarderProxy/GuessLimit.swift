/// How often clients may be wrong about who they are.
///
/// Three limits, so that one program with an old password, or one that guesses, takes nothing from
/// others at its address:
/// - *guesses* at a user from one source: each costs a hash. When they are used up, that user's
///   credentials are not verified for that source, and nobody else notices;
/// - *guesses from one source*, whoever they are at: far more, as many users may share an address;
/// - *recalls*: credentials that were verified lately are recognised without a hash, also when the
///   guesses are used up. A guess that would hit them would be found right all the same, so that
///   also these are counted where they miss: far more of them, as they cost next to nothing, but not
///   as many as a network carries.
package struct GuessLimit: Sendable {
    package struct Rules: Sendable, Hashable {
        package var user: FailureRules
        package var source: FailureRules
        package var recall: FailureRules

        package init(
            user: FailureRules = FailureRules(),
            source: FailureRules = FailureRules(burst: 200, refill: .seconds(1)),
            recall: FailureRules = FailureRules(burst: 1_000, refill: .milliseconds(100))
        ) {
            self.user = user
            self.source = source
            self.recall = recall
        }
    }

    /// Whose credentials are guessed at, and from where.
    package struct Guess: Hashable, Sendable {
        package let source: ClientSource
        /// A digest of the name: names are long and chosen by strangers.
        fileprivate let user: UInt64

        package init(_ client: ClientAddress, user: UInt64) {
            self.source = ClientSource(client)
            self.user = user
        }
    }

    /// Failures of one source, whoever at, that are told one by one; of more only a few are.
    private static let toldOfSource = 20

    private var users: FailureLimit<Guess>
    private var sources: FailureLimit<ClientSource>
    private var recalls: FailureLimit<Guess>

    package init(_ rules: Rules = Rules()) {
        self.users = FailureLimit(rules.user)
        self.sources = FailureLimit(rules.source)
        self.recalls = FailureLimit(rules.recall)
    }

    /// Buckets of all kinds.
    package var count: Int { self.users.count + self.sources.count + self.recalls.count }

    // MARK: Recognising

    /// Whether credentials may be compared with those that were verified lately; takes nothing.
    package mutating func mayRecall(
        _ guess: Guess, at now: ContinuousClock.Instant
    ) -> LimitedAttempt {
        // So many misses have been told of already, as guesses that were not listened to.
        switch self.recalls.look(guess, at: now) {
        case .granted: .granted
        case .throttled(let time, _): .throttled(retryAfter: time, isNews: false)
        }
    }

    /// They were compared, were none of them, and were not verified either.
    package mutating func missed(_ guess: Guess, at now: ContinuousClock.Instant) {
        _ = self.recalls.take(guess, at: now)
    }

    // MARK: Verifying

    /// Whether credentials would be verified; takes nothing.
    package mutating func look(
        _ guess: Guess, at now: ContinuousClock.Instant
    ) -> LimitedAttempt {
        let attempt = self.users.look(guess, at: now)
        guard attempt == .granted else { return attempt }
        return self.sources.look(guess.source, at: now)
    }

    /// Takes a token of both kinds, or none.
    package mutating func take(
        _ guess: Guess, at now: ContinuousClock.Instant
    ) -> LimitedAttempt {
        let attempt = self.look(guess, at: now)
        guard attempt == .granted else { return attempt }
        _ = self.users.take(guess, at: now)
        _ = self.sources.take(guess.source, at: now)
        return .granted
    }

    /// What was verified is right, or was not verified after all.
    package mutating func giveBack(_ guess: Guess) {
        self.users.giveBack(guess)
        self.sources.giveBack(guess.source)
    }

    /// What was verified is wrong.
    ///
    /// - Returns: whether that is worth a line in the log.
    package mutating func failed(_ guess: Guess) -> Bool {
        let ofSource = self.sources.failed(guess.source)
        return self.users.failed(guess) == 1 && ofSource <= Self.toldOfSource
    }
}
