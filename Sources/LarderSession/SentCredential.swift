package import LarderCredentials
package import LarderHTTP

/// A credential as it went out with one request.
package struct SentCredential: Sendable {
    package enum Form: Sendable {
        /// The value of `Authorization`.
        case field(Secret)
        /// The upstream does it.
        case connection(ConnectionAuthentication)
    }

    package let form: Form
    package let space: ProtectionSpace
    package let scheme: AuthenticationScheme
    package let credential: Credential
    /// The name of the credential, where a rule named it; nil: the one kept for the space.
    package let owner: String?
    /// Sent before anyone asked for it.
    package let isPreemptive: Bool
    /// The use of the nonce, after this answer.
    package internal(set) var digest: DigestSession?

    /// What stands for it where secrets are digested: the same as long as the credential is.
    var identity: [UInt8] { Self.identity(of: self.credential) }

    /// Whether it says, where it was refused, that the same must not go out in clear for a space.
    ///
    /// What went out before anyone asked may have been meant for another realm of the origin, which
    /// says nothing of this one; over plain http anybody on the way may have named that realm.
    package func forbidsClear(_ request: ChallengedRequest, _ space: ProtectionSpace) -> Bool {
        !self.isPreemptive || self.space.realm == space.realm || request.uri.scheme != .https
    }

    static func identity(of credential: Credential) -> [UInt8] {
        Array(credential.user.utf8) + [0] + credential.password.revealed
    }
}

/// A request that a credential is to be sent with.
package struct ChallengedRequest: Sendable {
    package var method: Method
    package var uri: TargetURI
    /// All of its content; nil where that is not known.
    package var content: [UInt8]?
    /// The credential that a rule has for it; nil: the one that is kept for the space.
    package var named: NamedCredential?

    package init(method: Method, uri: TargetURI, content: [UInt8]? = nil) {
        self.method = method
        self.uri = uri
        self.content = content
    }

    var target: DigestSession.Target {
        DigestSession.Target(
            method: self.method, uri: self.uri.pathAndQuery, content: self.content)
    }
}

extension NamedCredential {
    /// As an answer to challenges; nil where it is none.
    var asPassword: Credential? {
        guard case .password(let user, let password) = self.kind else { return nil }
        return Credential(user: user, password: password, persistence: self.persistence)
    }
}
