import LarderCredentials
package import LarderProxy
import LarderState
import NIOPosix
import Synchronization

/// Verifies clients of the proxy by a password file (Basic, RFC 7617), a token file (Bearer, RFC 6750),
/// or both.
///
/// ```
/// init ─▶ check … · prepare, follow … ─▶ close
/// ```
///
/// A password's hash takes long to compute, by design: that happens on a few threads of its own, for
/// a bounded number of requests at a time, once for equal credentials that come together, and not
/// again for a while after they were found right or wrong. Clients may guess only so often
/// (`GuessLimit`).
package final class FileAuthenticator: ProxyAuthenticator {
    /// Where the clients are listed, and what they are told.
    package struct Files: Sendable, Equatable {
        /// nil: no Basic.
        package var passwordFile: String?
        /// nil: no Bearer.
        package var tokenFile: String?
        package var realm = "larder"

        package init(passwordFile: String? = nil, tokenFile: String? = nil) {
            self.passwordFile = passwordFile
            self.tokenFile = tokenFile
        }
    }

    /// How much is kept and done for clients.
    package struct Options: Sendable {
        package var files: Files
        package var limit = GuessLimit.Rules()
        /// Hashes computed at the same time.
        package var threads = 2
        /// Credentials that wait for a thread or have one; of more, those of whoever has most waiting are
        /// told to come again.
        package var queue = 64
        /// Requests that wait for a verdict.
        package var waiting = 4_096
        /// Verified credentials that are remembered, and for how long.
        package var remembered = 4_096
        package var rememberedFor = Duration.seconds(300)

        package init(passwordFile: String? = nil, tokenFile: String? = nil) {
            self.files = Files(passwordFile: passwordFile, tokenFile: tokenFile)
        }
    }

    typealias Completion = @Sendable (AuthenticationVerdict) -> Void

    /// Credentials that are being verified, and who waits for that.
    struct Verification: Sendable {
        let client: ClientAddress
        let guess: GuessLimit.Guess
        let user: [UInt8]
        /// Which came when.
        let number: UInt64
        /// A thread has it.
        var isRunning = false
        var waiters: [Completion]
    }

    struct State: Sendable {
        var files: Files
        var challenges: [String]
        var register: ClientRegister
        var limit: GuessLimit
        var verified: RememberedVerdicts
        /// What was found wrong: programs send the same again and again.
        var refused: RememberedVerdicts
        /// What is under way, by the digests of the credentials.
        var verifications: [[UInt8]: Verification] = [:]
        var waiting = 0
        var nextNumber: UInt64 = 0
        /// Counts the registers there have been.
        var generation: UInt64 = 0
    }

    let options: Options
    let key = KeyedDigest()
    let state: Mutex<State>
    /// The state's generation, to be read without its lock.
    private let published = Atomic<UInt64>(0)
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
        self.notice = notice
        self.clock = clock
        let register = try ClientRegister(
            passwordFile: options.files.passwordFile, tokenFile: options.files.tokenFile,
            key: self.key)
        self.state = Mutex(
            State(
                files: options.files, challenges: Self.challenges(options.files),
                register: register, limit: GuessLimit(options.limit),
                verified: RememberedVerdicts(
                    capacity: options.remembered, time: options.rememberedFor),
                refused: RememberedVerdicts(
                    capacity: options.remembered, time: options.rememberedFor)))
        self.pool = NIOThreadPool(numberOfThreads: max(1, options.threads))
        self.pool.start()
        self.tell(of: register)
    }

    /// Basic first: clients that know both have been given a password.
    private static func challenges(_ files: Files) -> [String] {
        var realm = ""
        for scalar in files.realm.unicodeScalars where scalar.value >= 0x20 && scalar != "\u{7F}" {
            if scalar == "\"" || scalar == "\\" { realm += "\\" }
            realm.unicodeScalars.append(scalar)
        }
        var challenges: [String] = []
        if files.passwordFile != nil {
            challenges.append("Basic realm=\"\(realm)\", charset=\"UTF-8\"")
        }
        if files.tokenFile != nil { challenges.append("Bearer realm=\"\(realm)\"") }
        return challenges
    }

    package var challenges: [String] { self.state.withLock { $0.challenges } }

    package var generation: UInt64 { self.published.load(ordering: .acquiring) }

    /// Files that were read and found right, to be put into force.
    struct Prepared {
        fileprivate let files: Files
        fileprivate let register: ClientRegister
    }

    /// Reads files anew without putting them into force.
    ///
    /// - Parameter files: others than until now; nil: the same.
    /// - Throws: what is wrong with them.
    func prepare(from files: Files? = nil) throws(CredentialFileError) -> Prepared {
        let files = files ?? self.state.withLock { $0.files }
        return Prepared(
            files: files,
            register: try ClientRegister(
                passwordFile: files.passwordFile, tokenFile: files.tokenFile, key: self.key))
    }

    /// Puts files into force, and forgets all that was verified by the old ones.
    ///
    /// Not to be called twice at the same time.
    func follow(_ prepared: Prepared) {
        let generation = self.state.withLock { state in
            state.files = prepared.files
            state.challenges = Self.challenges(prepared.files)
            state.register = prepared.register
            state.verified.forgetAll()
            state.refused.forgetAll()
            state.generation &+= 1
            return state.generation
        }
        self.published.store(generation, ordering: .releasing)
        self.tell(of: prepared.register)
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
    /// They are in `verifications`, by `digest`; with their number there, by which those that gave way
    /// are known.
    func verify(_ user: [UInt8], _ password: Secret, digest: [UInt8], turn: UInt64) {
        let number = self.key.number(ofUser: user)
        self.pool.submit { [self] state in
            guard case .active = state else {
                self.finish(digest, isRight: nil)
                return
            }
            let isWanted = self.state.withLock { state in
                guard state.verifications[digest]?.number == turn else { return false }
                state.verifications[digest]?.isRunning = true
                return true
            }
            guard isWanted else { return }
            // The files may have changed meanwhile; if they do so for ever, nobody is let in.
            for _ in 0..<3 {
                let (check, generation) = self.state.withLock {
                    ($0.register.check(user, number: number), $0.generation)
                }
                let matches = check.map { SystemCrypt.matches(password, $0.hash) } ?? false
                let isRight = matches && check?.isKnown == true
                if self.finish(digest, isRight: isRight, generation: generation) { return }
            }
            self.finish(digest, isRight: nil)
        }
    }

    /// Takes note of a verdict and tells it.
    ///
    /// - Parameters:
    ///   - isRight: nil where nobody looked.
    ///   - generation: of the register that was looked at.
    /// - Returns: false where that is no longer the register.
    @discardableResult
    private func finish(
        _ digest: [UInt8], isRight: Bool?, generation: UInt64? = nil
    ) -> Bool {
        let now = self.clock()
        let (ended, isNews) = self.state.withLock { state -> (Verification?, Bool) in
            if let generation, generation != state.generation { return (nil, false) }
            guard let ended = state.verifications.removeValue(forKey: digest) else {
                return (nil, false)
            }
            state.waiting -= ended.waiters.count
            guard isRight == false else {
                state.limit.giveBack(ended.guess)
                if isRight == true {
                    let user = String(decoding: ended.user, as: UTF8.self)
                    state.verified.remember(digest, user: user, at: now)
                }
                return (ended, false)
            }
            let user = String(decoding: ended.user, as: UTF8.self)
            state.refused.remember(digest, user: user, at: now)
            return (ended, state.limit.failed(ended.guess))
        }
        guard let ended else { return false }
        let user = String(decoding: ended.user, as: UTF8.self)
        if isNews { self.notice(.refused(client: ended.client, user: user)) }
        let verdict: AuthenticationVerdict =
            switch isRight {
            case true?: .known(user: user)
            case false?: .refused
            case nil: .busy
            }
        for waiter in ended.waiters { waiter(verdict) }
        return true
    }
}
