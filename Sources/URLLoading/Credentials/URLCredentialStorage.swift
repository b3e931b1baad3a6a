public import Foundation
import LarderCredentials
import LarderEngine
import LarderSession
import LarderState
import Synchronization

/// The credentials of one or more sessions, by protection space and user.
///
/// Safe to use on any thread. What a method changes is in force when it returns, and a change of a
/// permanent credential is on its way to the disk then; a program that ends waits for it. Those lie
/// sealed in a file of the user's own, in the program's directory below `$XDG_DATA_HOME`, which all
/// processes of the program share. A program's subclass is heard: sessions read
/// and store by the methods that can be overridden.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
    // Invariant of `@unchecked`: what changes is behind locks.

    private static let common = URLCredentialStorage(
        keeping: KeptPlace.shared(named: ".credentials.shared", keeping: .credentials))

    /// The one that default sessions share; permanent credentials in it outlive the process.
    ///
    /// Where the disk cannot be used, everything goes on in memory, and a line on standard error says
    /// so, once.
    open class var shared: URLCredentialStorage { self.common }

    /// Logins for spaces that the engine knows, and where they were accepted.
    let servers: SessionCredentials
    /// All the rest.
    private let others = Mutex(OtherCredentials())
    /// What proxies have accepted.
    let proxyLogins = Mutex(ProxyLogins())

    /// What outlives the process; nil: nothing.
    private let kept: KeptCredentials?

    /// Makes an empty storage in memory, for a session of its own.
    public override init() {
        self.servers = SessionCredentials(
            CredentialStore(keepsPermanent: false), hasher: CryptoHasher())
        self.kept = nil
        super.init()
    }

    /// One whose permanent credentials lie in a state, together with those of other processes.
    init(keeping state: SharedState) {
        self.servers = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: state.credentials,
            hasher: CryptoHasher(),
            report: DiskNotices.credentials(state.configuration.directory))
        self.kept = KeptCredentials(state, of: self.servers)
        super.init()
    }

    /// One that is in memory alone.
    static func ephemeral() -> URLCredentialStorage { URLCredentialStorage() }

    // MARK: Reading

    /// The credentials for a space, by user; nil where there are none.
    open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        guard let known = space.asEngineSpace else {
            return self.others.withLock { $0.logins(for: space) }
        }
        self.kept?.refresh()
        let found = self.servers.store.credentials(for: known)
        return found.isEmpty ? nil : found.mapValues { URLCredential($0) }
    }

    /// All credentials, by space and user.
    open var allCredentials: [URLProtectionSpace: [String: URLCredential]] {
        self.kept?.refresh()
        var all = self.others.withLock { $0.allLogins }
        for (space, credential) in self.servers.store.all {
            all[URLProtectionSpace(space), default: [:]][credential.user] =
                URLCredential(credential)
        }
        return all
    }

    /// The credential that challenges of a space are answered with where nobody says otherwise; nil:
    /// none.
    open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        if let other = self.others.withLock({ $0.defaultCredential(for: space) }) { return other }
        self.kept?.refresh()
        return space.asEngineSpace.flatMap { self.servers.store.defaultCredential(for: $0) }
            .map { URLCredential($0) }
    }

    // MARK: Changing

    /// Adds a credential, or replaces the one of the same user; the first one of a space becomes its
    /// default.
    ///
    /// One whose persistence is `.none` or `.synchronizable` is not kept.
    open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        if self.keep(credential, for: space, asDefault: false) { self.tellOfChange() }
    }

    /// Makes a credential the default of a space, and adds it where it is new.
    ///
    /// One whose persistence is `.none` or `.synchronizable` is not kept.
    open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard self.keep(credential, for: space, asDefault: true) else { return }
        if let known = space.asEngineSpace {
            // What was accepted before is not what is wanted now.
            self.servers.forget(known, except: credential.user)
            self.proxyLogins.withLock { $0.forget(known, except: credential.user) }
        }
        self.tellOfChange()
    }

    /// Removes a credential, if the storage has this very one.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.remove(credential, for: space, options: nil)
    }

    /// Removes a credential, if the storage has this very one.
    ///
    /// - Parameter options: a synchronizable credential is only removed where
    ///   `NSURLCredentialStorageRemoveSynchronizableCredentials` is true in them.
    open func remove(
        _ credential: URLCredential, for space: URLProtectionSpace,
        options: [String: AnyObject]? = [:]
    ) {
        if credential.persistence == .synchronizable {
            let key = NSURLCredentialStorageRemoveSynchronizableCredentials
            guard (options?[key] as? NSNumber)?.boolValue == true else { return }
        }
        var hasChanged = self.others.withLock { $0.remove(credential, for: space) }
        if let login = credential.asLogin, let known = space.asEngineSpace {
            self.kept?.refresh()
            let isRemoved = self.servers.change { store in
                guard store.credentials(for: known)[login.user] == login else {
                    return ([], false)
                }
                return (store.remove(user: login.user, for: known), true)
            }
            if isRemoved {
                self.servers.forget(known)
                self.proxyLogins.withLock { $0.forget(known, except: nil) }
            }
            hasChanged = hasChanged || isRemoved
        }
        if hasChanged { self.tellOfChange() }
    }

    // MARK: Inside

    /// Keeps a credential without a word to anybody.
    ///
    /// - Returns: whether that changed anything.
    func keep(
        _ credential: URLCredential, for space: URLProtectionSpace, asDefault: Bool
    ) -> Bool {
        switch credential.persistence {
        case .none, .synchronizable: return false
        case .forSession, .permanent: break
        }
        guard let login = credential.asLogin, let known = space.asEngineSpace else {
            return self.others.withLock { $0.set(credential, for: space, asDefault: asDefault) }
        }
        self.kept?.refresh()
        let hadOther = asDefault && self.others.withLock { $0.dropDefault(of: space) }
        let hasChanged = self.servers.change { store in
            let (before, first) = (
                store.credentials(for: known), store.defaultCredential(for: known)
            )
            let changes =
                asDefault ? store.setDefault(login, for: known) : store.set(login, for: known)
            let isNew = before[login.user] != login
            return (changes, isNew || first != store.defaultCredential(for: known))
        }
        return hasChanged || hadOther
    }

    /// Forgets all credentials and where they were accepted: a session is reset.
    func removeAll() {
        let hadOthers = self.others.withLock { others in
            defer { others = OtherCredentials() }
            return !others.isEmpty
        }
        self.kept?.refresh()
        let hadLogins = self.servers.change { store in
            let all = store.all
            let changes = all.flatMap { store.remove(user: $0.credential.user, for: $0.space) }
            return (changes, !all.isEmpty)
        }
        self.servers.forgetAll()
        self.proxyLogins.withLock { $0 = ProxyLogins() }
        if hadOthers || hadLogins { self.tellOfChange() }
    }

    /// Returns when all changes so far outlive the process, or cannot be kept.
    func flush() async { await self.servers.save() }

    /// Reads what is kept while a request is on its way, so that nobody has to wait for it later.
    func beginSoon() { self.kept?.beginSoon() }

    /// Posts the notification of a change, on this thread.
    func tellOfChange() {
        NotificationCenter.default.post(name: .NSURLCredentialStorageChanged, object: self)
    }
}
