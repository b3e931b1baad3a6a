public import Foundation
import LarderCredentials
import LarderHTTP

/// A user's name and password, a client certificate, or the decision to trust a server.
///
/// Immutable, and safe to use on any thread. No description shows a password or a key. Unlike
/// Foundation's, the password's memory is cleared with the last credential that has it; what the
/// getter hands out is a copy that is not.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Invariant of `@unchecked`: nothing is changed after `init`.

    /// How long a credential is kept once a server has accepted it.
    public enum Persistence: UInt, Sendable {
        /// It is used for the challenge that it answers, and never stored.
        case none = 0
        /// In memory, until the process ends or the storage is emptied.
        case forSession = 1
        /// On the disk too, where the storage is persistent; a storage in memory keeps it there.
        case permanent = 2
        /// Like Foundation, storages refuse to keep it: there is nothing to synchronise with.
        case synchronizable = 3
    }

    /// What the credential is made of.
    enum Kind: Sendable {
        case login(user: String?, password: Secret?)
        case identity(URLClientIdentity)
        case trust(ServerTrust)
    }

    let kind: Kind
    private let persistenceOfIt: Persistence
    private let chain: [Data]

    /// Makes a credential of a user's name and password.
    public init(user: String, password: String, persistence: Persistence) {
        self.kind = .login(user: user, password: Secret(password))
        self.persistenceOfIt = persistence
        self.chain = []
        super.init()
    }

    /// Makes a credential of a client certificate with its key.
    ///
    /// - Parameters:
    ///   - certificates: intermediate certificates, DER (`Data`), that the identity does not bring
    ///     along; whatever is not `Data` is ignored.
    ///   - persistence: `.none`: for the request that asked for it; others: for the session, once a
    ///     server has accepted it. An identity is never stored on the disk.
    public init(
        identity: URLClientIdentity, certificates: [Any]?, persistence: Persistence
    ) {
        let chain = (certificates ?? []).compactMap { $0 as? Data }
        self.kind = .identity(identity.adding(chain))
        self.persistenceOfIt = persistence
        self.chain = chain
        super.init()
    }

    /// Makes a credential that says: this server is trusted, whatever the system's rules say.
    ///
    /// It counts for the connection whose challenge the trust came with, and for no other chain of
    /// certificates. Its persistence is `.none`.
    public init(trust: ServerTrust) {
        self.kind = .trust(trust)
        self.persistenceOfIt = .none
        self.chain = []
        super.init()
    }

    /// Makes a credential of a private key and its certificate, both DER.
    ///
    /// There to be compatible with Foundation; where they do not fit together, `identity` is nil and
    /// servers are shown nothing.
    public init(clientKey: Data, clientCertificate: Data, persistence: Persistence) {
        if let identity = try? URLClientIdentity(certificate: clientCertificate, key: clientKey) {
            self.kind = .identity(identity)
        } else {
            self.kind = .login(user: nil, password: nil)
        }
        self.persistenceOfIt = persistence
        self.chain = []
        super.init()
    }

    /// Makes one from a URL's user information, where the password may be missing.
    init(user: String, password: Secret?, persistence: Persistence) {
        self.kind = .login(user: user, password: password)
        self.persistenceOfIt = persistence
        self.chain = []
        super.init()
    }

    // MARK: What it says

    /// How long it is kept.
    open var persistence: Persistence { self.persistenceOfIt }

    /// The user's name; nil for a certificate or trust.
    open var user: String? {
        guard case .login(let user, _) = self.kind else { return nil }
        return user
    }

    /// The password, copied out; nil where there is none.
    open var password: String? {
        guard case .login(_, let password) = self.kind else { return nil }
        return password.map { String(decoding: $0.revealed, as: UTF8.self) }
    }

    /// Whether there is a password, without copying it out.
    open var hasPassword: Bool {
        guard case .login(_, let password) = self.kind else { return false }
        return password != nil
    }

    /// The client certificate with its key; nil for any other kind.
    open var identity: URLClientIdentity? {
        guard case .identity(let identity) = self.kind else { return nil }
        return identity
    }

    /// The intermediate certificates that it was made with, DER.
    open var certificates: [Any] { self.chain }

    /// The server that is trusted; nil for any other kind.
    ///
    /// Not in Apple's interface, where it cannot be asked for.
    open var serverTrust: ServerTrust? {
        guard case .trust(let trust) = self.kind else { return nil }
        return trust
    }

    /// The private key of the client certificate, DER (PKCS #8); nil for any other kind.
    open var privateClientKey: Data? { self.identity?.privateKey }

    /// The client certificate, DER; nil for any other kind.
    open var privateClientCertificate: Data? { self.identity?.certificates.first?.der }

    // MARK: Coding

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    private enum Key {
        static let user = "NS._user"
        static let password = "NS._password"
        static let persistence = "NS._persistence"
    }

    /// Reads a name and a password from a keyed archive; nil where it is not keyed or damaged.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return nil }
        var number: NSNumber?
        if coder.containsValue(forKey: Key.persistence) {
            number = coder.decodeObject(of: NSNumber.self, forKey: Key.persistence)
        }
        guard let persistence = Persistence(rawValue: number?.uintValue ?? 0) else { return nil }
        self.kind = .login(
            user: coder.text(forKey: Key.user),
            password: coder.text(forKey: Key.password).map { Secret($0) })
        self.persistenceOfIt = persistence
        self.chain = []
        super.init()
    }

    /// Writes the name, the password in clear, and the persistence to a keyed archive; of an
    /// identity or a trust nothing but the persistence.
    open func encode(with coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        if let user = self.user { coder.encode(NSString(string: user), forKey: Key.user) }
        if let password = self.password {
            coder.encode(NSString(string: password), forKey: Key.password)
        }
        coder.encode(NSNumber(value: self.persistence.rawValue), forKey: Key.persistence)
    }

    open override func copy() -> Any { self.copy(with: nil) }

    /// Itself: it cannot be changed.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Comparing

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLCredential else { return false }
        if other === self { return true }
        guard self.persistence == other.persistence, self.chain == other.chain else {
            return false
        }
        return switch (self.kind, other.kind) {
        case (.login(let user, let password), .login(let others, let secret)):
            user == others && password == secret
        case (.identity(let mine), .identity(let its)): mine == its
        case (.trust(let mine), .trust(let its)): mine == its
        default: false
        }
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.user)
        hasher.combine(self.persistence)
        return hasher.finalize()
    }

    /// The user and the persistence; never the password.
    open override var description: String {
        let what =
            switch self.kind {
            case .login(let user, let password):
                "user: \(user ?? "(none)"), password: \(password == nil ? "none" : "(secret)")"
            case .identity: "client certificate"
            case .trust(let trust): "trust in \(trust.host)"
            }
        return "<\(type(of: self)): \(what), persistence: \(self.persistence)>"
    }

    open override var debugDescription: String { self.description }
}

extension NSCoder {
    /// A text that may be missing; to decode what is not there would be an error.
    func text(forKey key: String) -> String? {
        guard self.containsValue(forKey: key) else { return nil }
        return self.decodeObject(of: NSString.self, forKey: key).map { String(describing: $0) }
    }
}

extension URLCredential: CustomReflectable {
    /// Nothing: a mirror shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

// MARK: The engine's credentials

extension URLCredential {
    /// As the engine uses it; nil where it is no login with a password.
    ///
    /// `.synchronizable` counts as used once, as it is never stored.
    var asLogin: Credential? {
        guard case .login(let user?, let password?) = self.kind else { return nil }
        let persistence: CredentialPersistence =
            switch self.persistence {
            case .none, .synchronizable: .none
            case .forSession: .forSession
            case .permanent: .permanent
            }
        return Credential(user: user, password: password, persistence: persistence)
    }

    convenience init(_ credential: Credential) {
        let persistence: Persistence =
            switch credential.persistence {
            case .none: .none
            case .forSession: .forSession
            case .permanent: .permanent
            }
        self.init(user: credential.user, password: credential.password, persistence: persistence)
    }

    /// The user information of a URL, which is kept for the session once it was accepted; nil where
    /// it names no user.
    convenience init?(userInformationOf url: URL) {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let user = parts.user, !user.isEmpty
        else { return nil }
        self.init(
            user: user, password: parts.password.map { Secret($0) }, persistence: .forSession)
    }
}
