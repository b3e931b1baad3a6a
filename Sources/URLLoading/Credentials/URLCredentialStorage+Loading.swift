import Dispatch
import Foundation
import LarderCredentials
import LarderSession
import Synchronization

/// What the loads of a session need of its storage.
extension URLCredentialStorage {
    /// Where a program's own storage is told what was accepted: it may take its time.
    private static let telling = DispatchQueue(label: "url-loading.credentials")

    /// The credential with this login that is held for a space, or for its host's default method.
    func held(_ login: Credential, for space: URLProtectionSpace) -> URLCredential? {
        for place in [space, space.ofDefaultMethod] {
            if let found = self.credentials(for: place)?[login.user],
                found.asLogin?.isSameLogin(as: login) == true
            {
                return found
            }
        }
        return nil
    }

    /// Keeps a credential that was accepted.
    ///
    /// May be called under a lock: nobody else's code runs before it returns. It is in force then,
    /// unless the storage is a subclass, which is told a moment later.
    func keepAccepted(
        _ credential: URLCredential, for space: URLProtectionSpace, asDefault: Bool
    ) {
        guard type(of: self) == URLCredentialStorage.self else {
            return Self.telling.async {
                if asDefault {
                    self.setDefaultCredential(credential, for: space)
                } else {
                    self.set(credential, for: space)
                }
            }
        }
        if self.keep(credential, for: space, asDefault: asDefault) {
            Self.telling.async { self.tellOfChange() }
        }
    }

    // MARK: Proxies

    /// What a proxy has accepted before, to be sent at once; nil: nothing that is still held.
    ///
    /// For the request of a load that was given no login for the proxy itself.
    func login(for proxy: ProxyParty) -> ProxyLogin? {
        guard let (login, space) = self.proxyLogins.withLock({ $0[proxy] }) else { return nil }
        let credential = Credential(
            user: login.user, password: login.password, persistence: .forSession)
        return self.held(credential, for: space) == nil ? nil : login
    }

    func remember(_ login: ProxyLogin, for space: URLProtectionSpace) {
        self.proxyLogins.withLock { $0.remember(login, space) }
    }

    func forgetLogin(for proxy: ProxyParty) {
        self.proxyLogins.withLock { $0.forget(proxy) }
    }
}

/// What proxies have accepted: a value, bounded, as programs have few proxies.
struct ProxyLogins {
    private static let limit = 64

    private var accepted: [ProxyParty: (login: ProxyLogin, space: URLProtectionSpace)] = [:]

    subscript(proxy: ProxyParty) -> (ProxyLogin, URLProtectionSpace)? {
        self.accepted[proxy].map { ($0.login, $0.space) }
    }

    mutating func remember(_ login: ProxyLogin, _ space: URLProtectionSpace) {
        if self.accepted.count >= Self.limit, self.accepted[login.proxy] == nil {
            self.accepted = [:]
        }
        self.accepted[login.proxy] = (login, space)
    }

    mutating func forget(_ proxy: ProxyParty) { self.accepted[proxy] = nil }

    /// Forgets what was accepted for a space, but for one user's.
    mutating func forget(_ space: ProtectionSpace, except user: String?) {
        self.accepted = self.accepted.filter { entry in
            entry.value.space.asEngineSpace != space || entry.value.login.user == user
        }
    }
}

extension Credential {
    /// Whether it has the same name and password, however long it is kept.
    func isSameLogin(as other: Credential) -> Bool {
        self.user == other.user && self.password == other.password
    }
}
