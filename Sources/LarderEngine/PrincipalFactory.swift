import LarderCookies
import LarderCredentials
import LarderHTTP
import LarderSession
import LarderState
import LarderStore
import LarderTransfer
import Synchronization

/// The rules of a session that may change while it runs, for principals who come later.
final class SessionRules: Sendable {
    struct Rules: Sendable {
        var session: SessionConfiguration
        var cookies: CookieHandling?
    }

    private let current: Mutex<Rules>

    init(_ blueprint: SessionBlueprint) {
        self.current = Mutex(Rules(session: blueprint.session, cookies: blueprint.cookies))
    }

    var now: Rules { self.current.withLock { $0 } }

    func follow(_ blueprint: SessionBlueprint) {
        self.current.withLock { $0 = Rules(session: blueprint.session, cookies: blueprint.cookies) }
    }

    func apply(to principal: PrincipalSession, at now: Timestamp) {
        let rules = self.now
        principal.session.follow(rules.session)
        if let handling = rules.cookies { principal.cookies?.update(handling, at: now) }
    }
}

/// Makes the parts of principals, over what they share.
struct PrincipalFactory: Sendable {
    let rules: SessionRules
    let state: SessionState
    let store: any ObjectStore
    let upstream: any Upstream
    let clock: any WallClock
    let timers: any Timers
    /// nil: the session keeps no transfers.
    let desk: TransferDesk?
    let report: @Sendable (EngineEvent) -> Void

    /// A part that has not read yet what was kept.
    ///
    /// - Parameter common: the part of all, where this is to be the part of one.
    func make(_ principal: String, beside common: PrincipalSession?) -> PrincipalSession {
        let rules = self.rules.now
        let (report, file) = (self.report, self.state.file)
        let cookies = rules.cookies.map { handling in
            SessionCookies(
                handling, storage: file?.cookies(of: principal), suffixes: PublicSuffixList.system
            ) { report(.cookies(principal: principal, $0)) }
        }
        let credentials = SessionCredentials(
            CredentialStore(keepsPermanent: file != nil),
            storage: file?.credentials(of: principal), common: common?.credentials,
            hasher: CryptoHasher(),
            report: { report(.credentialsNotKept(principal: principal, $0)) })
        let digests = self.state.digests
        let session = Session(
            configuration: rules.session, store: self.store, upstream: self.upstream,
            clock: self.clock, timers: self.timers, partition: principal, cookies: cookies,
            credentials: credentials, digest: { digests.digest($0) })
        return PrincipalSession(
            principal: principal, session: session, cookies: cookies, credentials: credentials,
            desk: self.desk)
    }
}

/// Gives parent proxies the logins that a session keeps for all its principals.
///
/// Made before the session is; knows nothing until then.
final class ParentLogins: Sendable {
    private let held = Mutex<SessionCredentials?>(nil)

    var credentials: SessionCredentials? {
        get { self.held.withLock { $0 } }
        set { self.held.withLock { $0 = newValue } }
    }

    /// nil where there is no such credential, or one that is no user name and password.
    func login(_ name: String) -> ParentLogin? {
        guard case .password(let user, let password) = self.credentials?.store.named(name)?.kind
        else { return nil }
        return ParentLogin(user: user, password: password.revealed)
    }
}

extension TransferConfiguration {
    /// The configuration with parents whose logins are looked up when they are needed, where they are
    /// names alone.
    func revealing(by logins: ParentLogins) -> TransferConfiguration {
        var configuration = self
        for index in configuration.parents.rules.indices {
            guard case .parent(var parent) = configuration.parents.rules[index].via,
                let given = parent.credential
            else { continue }
            parent.credential = ParentCredential(name: given.name) {
                given.reveal() ?? logins.login(given.name)
            }
            configuration.parents.rules[index].via = .parent(parent)
        }
        return configuration
    }
}
