/// Where a credential answers challenges, as commands speak of it (RFC 9110 §11.5).
package struct SpaceRecord: Codable, Sendable, Equatable {
    /// The methods that a user and a password answer, as commands name them.
    package static let methods = ["default", "basic", "digest", "ntlm", "negotiate"]

    package var host: String
    package var port: UInt16
    /// `http` or `https`; of a proxy `http`, `https`, `ftp` or `socks`.
    package var scheme: String
    package var isProxy: Bool
    /// nil for methods that have none.
    package var realm: String?
    /// One of `methods`.
    package var method: String

    package init(
        host: String, port: UInt16, scheme: String, isProxy: Bool = false, realm: String?,
        method: String
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.isProxy = isProxy
        self.realm = realm
        self.method = method
    }
}

/// Which credential is meant: one by name, or one of a protection space by its user.
package enum CredentialReference: Codable, Sendable, Equatable {
    case named(String)
    case space(SpaceRecord, user: String)
}

/// A credential without its secret.
package struct CredentialRecord: Codable, Sendable, Equatable {
    package var name: CredentialReference
    /// `password`, `bearer` or `field`.
    package var kind: String
    /// The name that goes with a password; nil for other kinds.
    package var user: String?
    /// The name of the field, for the kind of that name.
    package var field: String?
    /// `for-session` or `permanent`, as it is really kept.
    package var persistence: String
    /// The one of its space that is offered first.
    package var isDefault: Bool

    package init(
        name: CredentialReference, kind: String, user: String? = nil, field: String? = nil,
        persistence: String, isDefault: Bool = false
    ) {
        self.name = name
        self.kind = kind
        self.user = user
        self.field = field
        self.persistence = persistence
        self.isDefault = isDefault
    }
}

/// What is to be done with the credentials of a session.
package enum CredentialCommand: Codable, Sendable, Equatable {
    /// `.credentials`, never their secrets.
    case list
    /// In place of the one of that name or user: `.credentials` with the one as it is kept.
    case put(CredentialRecord, secret: ControlSecret)
    /// `.removed`.
    case remove(CredentialReference)
    /// Asks for `url` once as a client would, with this credential and no other: `.credentialTrial`.
    ///
    /// - Parameter isInsecure: show it over plain http, too.
    case test(CredentialReference, url: String, isInsecure: Bool)
    /// Seals everything at rest anew under a new key: any number of `.progress`, then
    /// `.keyRotated`.
    case rotateKey
}

/// What came of a request with a credential.
package struct CredentialTrial: Codable, Sendable, Equatable {
    package enum Verdict: String, Codable, Sendable, CaseIterable {
        /// The origin had the secret, and did not ask for another.
        case accepted
        /// The origin had it, and asked again (401) or forbade (403).
        case refused
        /// The origin answered without having asked for any, so nothing was shown to it.
        case unasked
        /// A challenge came that this credential does not answer, or that must not be answered here.
        case unanswered
        /// No answer came.
        case failed
    }

    package var verdict: Verdict
    /// The status of the last response.
    package var status: Int?
    /// The scheme under which it was sent: `basic`, `digest`, `bearer`; `field` for a field.
    package var scheme: String?
    /// Why, in a line for people.
    package var detail: String?

    package init(
        verdict: Verdict, status: Int? = nil, scheme: String? = nil, detail: String? = nil
    ) {
        self.verdict = verdict
        self.status = status
        self.scheme = scheme
        self.detail = detail
    }
}

/// What a change of the key came to.
package struct KeyRotation: Codable, Sendable, Equatable {
    /// Records that were sealed anew.
    package var records: UInt64
    /// The file of the new key.
    package var keyFile: String

    package init(records: UInt64, keyFile: String) {
        self.records = records
        self.keyFile = keyFile
    }
}
