import LarderCredentials
package import LarderProxy
import NIOPosix
import Synchronization

/// Verifies clients of the proxy by a password file (Basic, RFC 7617), a token file (Bearer, RFC 6750),
/// or both.
///
/// ```
/// init ─▶ check … · reload … ─▶ close
/// ```
///
/// A password's hash takes long to compute, by design: that happens on a few threads of its own, for
/// a bounded number of requests at a time, once for equal credentials that come together, and not
/// again for a while after they were found right. Every address may fail only so often.
package final class FileAuthenticator: ProxyAuthenticator {
    /// Where the clients are listed, and how much is kept and done for them.
    package struct Options: Sendable {
        /// nil: no Basic.
        package var passwordFile: String?
        /// nil: no Bearer.
        package var tokenFile: String?
        package var realm = "larder"
        package var limit = FailureLimit.Rules()
        /// Hashes computed at the same time.
        package var threads = 2
        /// Credentials that wait for a thread or have one; more are told to come again.
        package var queue = 64
        /// Requests that wait for a verdict.
        package var waiting = 4_096
        /// Verified credentials that are remembered, and for how long.
        package var remembered = 4_096
        package var rememberedFor = Duration.seconds(300)

        package init(passwordFile: String? = nil, tokenFile: String? = nil) {
            self.passwordFile = passwordFile
            self.tokenFile = tokenFile
        }
    }

    typealias Completion = @Sendable (AuthenticationVerdict) -> Void

    /// Credentials that are being verified, and who waits for that.
    struct Flight: Sendable {
        let client: ClientAddress
        let user: [UInt8]
        var waiters: [Completion]
    }

    struct State: Sendable {
        var register: ClientRegister
        var limit: FailureLimit
        var verified: VerifiedCredentials
        var flights: [KeyedDigest: Flight] = [:]
        var waiting = 0
        /// Counts the registers there have been.
        var era: UInt64 = 0
    }

    package let challenges: [String]
    let options: Options
    let key = DigestKey()
    let state: Mutex<State>
    private let era = Atomic<UInt64>(0)
    private let pool: NIOThreadPool
    let notice: @Sendable (AuthenticationNotice) -> Void
    let clock: @Sendable () -> ContinuousClock.Instant

    /// Reads the files and starts the threads; `close` ends them.
    ///
    /// - Parameters:
    ///   - notice: called on any thread; must not block.
    /// - Throws: what is wrong with a file, and then there is nothing to close.
    package init(
        _ options: Options,
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock().now },
        notice: @escaping @Sendable (AuthenticationNotice) -> Void
    ) throws(CredentialFileError) {
        self.options = options
        self.challenges = Self.challenges(options)
        self.notice = notice
        self.clock = clock
        let register = try ClientRegister(
            passwordFile: options.passwordFile, tokenFile: options.tokenFile, key: self.key)
        self.state = Mutex(
            State(
                register: register, limit: FailureLimit(options.limit),
                verified: VerifiedCredentials(
                    capacity: options.remembered, time: options.rememberedFor)))
        self.pool = NIOThreadPool(numberOfThreads: max(1, options.threads))
        self.pool.start()
        self.tell(of: register)
    }

    /// Basic first: clients that know both have been given a password.
    private static func challenges(_ options: Options) -> [String] {
        var realm = ""
        for scalar in options.realm.unicodeScalars where scalar.value >= 0x20 && scalar != "\u{7F}"
        {
            if scalar == "\"" || scalar == "\\" { realm += "\\" }
            realm.unicodeScalars.append(scalar)
        }
        var challenges: [String] = []
        if options.passwordFile != nil {
            challenges.append("Basic realm=\"\(realm)\", charset=\"UTF-8\"")
        }
        if options.tokenFile != nil { challenges.append("Bearer realm=\"\(realm)\"") }
        return challenges
    }

    package var generation: UInt64 { self.era.load(ordering: .acquiring) }

    /// Reads the files again, and forgets all that was verified by the old ones.
    ///
    /// - Throws: what is wrong with them; then everything stays as it was.
    package func reload() throws(CredentialFileError) {
        let register = try ClientRegister(
            passwordFile: self.options.passwordFile, tokenFile: self.options.tokenFile,
            key: self.key)
        let era = self.state.withLock { state in
            state.register = register
            state.verified.forgetAll()
            state.era &+= 1
            return state.era
        }
        self.era.store(era, ordering: .releasing)
        self.tell(of: register)
    }

    private func tell(of register: ClientRegister) {
        for path in register.readableByOthers { self.notice(.readableByOthers(path: path)) }
    }

    /// Ends the threads; credentials that wait for one are told that all are busy.
    package func close() async {
        try? await self.pool.shutdownGracefully()
    }

    // MARK: Verifying passwords

    /// Has credentials verified on another thread.
    ///
    /// They are in `flights`, by `digest`.
    func verify(_ user: [UInt8], _ password: Secret, digest: KeyedDigest) {
        let standIn = self.key.digest(user)
        self.pool.submit { [self] state in
            guard case .active = state else {
                self.finish(digest, isRight: nil)
                return
            }
            // The files may have changed meanwhile; if they do so for ever, nobody is let in.
            for _ in 0..<3 {
                let (check, era) = self.state.withLock {
                    ($0.register.check(user, digest: standIn), $0.era)
                }
                let matches = check.map { SystemCrypt.matches(password, $0.hash) } ?? false
                let isRight = matches && check?.isKnown == true
                if self.finish(digest, isRight: isRight, era: era) { return }
            }
            self.finish(digest, isRight: nil)
        }
    }

    /// Takes note of a verdict and tells it.
    ///
    /// - Parameters:
    ///   - isRight: nil where nobody looked.
    ///   - era: of the register that was looked at.
    /// - Returns: false where that is no longer the register.
    @discardableResult
    private func finish(_ digest: KeyedDigest, isRight: Bool?, era: UInt64? = nil) -> Bool {
        let now = self.clock()
        let (flight, isNews) = self.state.withLock { state -> (Flight?, Bool) in
            if let era, era != state.era { return (nil, false) }
            guard let flight = state.flights.removeValue(forKey: digest) else {
                return (nil, false)
            }
            state.waiting -= flight.waiters.count
            guard isRight == false else {
                state.limit.giveBack(flight.client)
                if isRight == true {
                    let user = String(decoding: flight.user, as: UTF8.self)
                    state.verified.remember(digest, user: user, at: now)
                }
                return (flight, false)
            }
            return (flight, state.limit.failed(flight.client))
        }
        guard let flight else { return false }
        let user = String(decoding: flight.user, as: UTF8.self)
        if isNews { self.notice(.refused(client: flight.client, user: user)) }
        let verdict: AuthenticationVerdict =
            switch isRight {
            case true?: .known(user: user)
            case false?: .refused
            case nil: .busy
            }
        for waiter in flight.waiters { waiter(verdict) }
        return true
    }
}
