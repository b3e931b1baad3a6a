package import LarderControl
package import LarderCredentials
import LarderHTTP

// What a command asks of a session's credentials, done on the value.

/// What a store answers to a command that needs no network and no key.
package enum CredentialAnswer: Sendable, Equatable {
    case credentials([CredentialRecord])
    case removed(Int)
}

extension CredentialStore {
    /// Lists, keeps or removes.
    ///
    /// - Parameter isLasting: false in an ephemeral session, of whose credentials none outlives it.
    /// - Returns: nil for what a store cannot do by itself: `.test` and `.rotateKey`.
    /// - Throws: `ControlRefusal`, with what is wrong with a credential. It names no secret.
    package mutating func obey(
        _ command: CredentialCommand, isLasting: Bool
    ) throws(ControlRefusal) -> (answer: CredentialAnswer, changes: [CredentialChange])? {
        switch command {
        case .list:
            return (.credentials(self.records(isLasting: isLasting)), [])
        case .put(let record, let secret):
            let changes = try self.put(record, Secret(secret.revealed))
            let kept = self.records(isLasting: isLasting).filter { $0.name == record.name }
            return (.credentials(kept), changes)
        case .remove(let name):
            return try self.remove(name)
        case .test, .rotateKey:
            return nil
        }
    }

    private mutating func put(
        _ record: CredentialRecord, _ secret: Secret
    ) throws(ControlRefusal) -> [CredentialChange] {
        guard let persistence = CredentialPersistence(rawValue: record.persistence),
            persistence != .none
        else {
            throw ControlRefusal(invalid: "a credential is kept for-session or permanent")
        }
        switch record.name {
        case .named(let name):
            guard NamedCredential.isName(name) else {
                throw ControlRefusal(
                    invalid: "a name has 1 to 64 letters, digits, dots, dashes and underscores")
            }
            let kind = try record.checkedKind(secret)
            return self.set(
                NamedCredential(name: name, kind: kind, persistence: persistence))
        case .space(let space, let user):
            try CredentialRecord.check(user: user, secret)
            let credential = Credential(user: user, password: secret, persistence: persistence)
            let space = try ProtectionSpace(checking: space)
            return record.isDefault
                ? self.setDefault(credential, for: space) : self.set(credential, for: space)
        }
    }

    private mutating func remove(
        _ name: CredentialReference
    ) throws(ControlRefusal) -> (answer: CredentialAnswer, changes: [CredentialChange]) {
        switch name {
        case .named(let name):
            guard self.named(name) != nil else { return (.removed(0), []) }
            return (.removed(1), self.remove(named: name))
        case .space(let space, let user):
            let space = try ProtectionSpace(checking: space)
            guard self.credentials(for: space)[user] != nil else { return (.removed(0), []) }
            return (.removed(1), self.remove(user: user, for: space))
        }
    }

    /// All, by name, then by host and user.
    private func records(isLasting: Bool) -> [CredentialRecord] {
        func kept(_ persistence: CredentialPersistence) -> String {
            (isLasting ? persistence : .forSession).rawValue
        }
        let named = self.allNamed.map { CredentialRecord($0, kept: kept($0.persistence)) }
        let spaces = self.all
            .sorted { Self.order($0.space, $0.credential) < Self.order($1.space, $1.credential) }
            .map { space, credential in
                CredentialRecord(
                    name: .space(SpaceRecord(space), user: credential.user), kind: "password",
                    user: credential.user, persistence: kept(credential.persistence),
                    isDefault: self.offered(for: space)?.user == credential.user)
            }
        return named + spaces
    }

    private static func order(
        _ space: ProtectionSpace, _ credential: Credential
    ) -> (String, UInt16, String, String) {
        (space.host, space.port, space.realm ?? "", credential.user)
    }
}

extension CredentialRecord {
    init(_ credential: NamedCredential, kept persistence: String) {
        self.init(
            name: .named(credential.name), kind: credential.kind.word, persistence: persistence)
        switch credential.kind {
        case .password(let user, _): self.user = user
        case .bearer: break
        case .field(let name, _): self.field = name
        }
    }

    /// What is sent, once it is known that it can be.
    fileprivate func checkedKind(
        _ secret: Secret
    ) throws(ControlRefusal) -> NamedCredential.Kind {
        switch self.kind {
        case "password":
            guard let user = self.user else {
                throw ControlRefusal(invalid: "a password needs the name of its user")
            }
            try Self.check(user: user, secret)
            return .password(user: user, password: secret)
        case "bearer":
            guard Self.isToken68(secret.revealed) else {
                throw ControlRefusal(
                    invalid: "a bearer token has letters, digits and -._~+/ only, then = "
                        + "(RFC 6750 §2.1)")
            }
            return .bearer(secret)
        case "field":
            guard let name = self.field, Array(name.utf8)[...].isToken else {
                throw ControlRefusal(invalid: "a field needs a name, which is a token")
            }
            guard !Self.ownFields.contains(name.lowercased()) else {
                throw ControlRefusal(invalid: "the field \(name) belongs to the proxy itself")
            }
            let octets = secret.revealed
            guard !octets.isEmpty, octets.allSatisfy(ASCII.isFieldValue),
                octets.first.map(ASCII.isOWS) == false, octets.last.map(ASCII.isOWS) == false
            else {
                throw ControlRefusal(
                    invalid: "a field's value has no control characters, and no space at its ends")
            }
            return .field(name: name, value: secret)
        default:
            throw ControlRefusal(
                invalid: "there is no kind \"\(self.kind)\"; there are: password, bearer, field")
        }
    }

    /// Fields that frame the message or belong to one hop: a credential in one would change more
    /// than who asks.
    private static let ownFields: Set<String> = [
        "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "via", "proxy-authorization", "expect", "range",
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    ]

    /// What no scheme with user and password can carry (RFC 7617 §2).
    fileprivate static func check(
        user: String, _ secret: Secret
    ) throws(ControlRefusal) {
        let octets = Array(user.utf8)
        guard !octets.isEmpty, !octets.contains(ASCII.colon) else {
            throw ControlRefusal(invalid: "a user's name is not empty and has no colon")
        }
        guard !(octets + secret.revealed).contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw ControlRefusal(invalid: "a control character is in the user's name or password")
        }
    }

    private static func isToken68(_ octets: [UInt8]) -> Bool {
        let body = octets.prefix { $0 != ASCII.equals }
        return !body.isEmpty
            && body.allSatisfy { byte in
                let isLetter = ASCII.lowercased(byte) &- UInt8(ascii: "a") < 26
                return isLetter || ASCII.isDigit(byte) || "-._~+/".utf8.contains(byte)
            } && octets.dropFirst(body.count).allSatisfy { $0 == ASCII.equals }
    }
}

extension SpaceRecord {
    init(_ space: ProtectionSpace) {
        let (scheme, isProxy) =
            switch space.party {
            case .server(let scheme): (scheme.rawValue, false)
            case .proxy(let kind): (kind.rawValue, true)
            }
        self.init(
            host: space.host, port: space.port, scheme: scheme, isProxy: isProxy,
            realm: space.realm, method: space.method.rawValue)
    }
}

extension ProtectionSpace {
    /// - Throws: `ControlRefusal` for a word that is none.
    init(checking record: SpaceRecord) throws(ControlRefusal) {
        guard let method = AuthenticationMethod(rawValue: record.method) else {
            throw ControlRefusal(
                invalid: "there is no method \"\(record.method)\"; there are: "
                    + SpaceRecord.methods.joined(separator: ", "))
        }
        let party: Party? =
            record.isProxy
            ? ProxyKind(rawValue: record.scheme).map { .proxy($0) }
            : Scheme(rawValue: record.scheme).map { .server($0) }
        guard let party else {
            throw ControlRefusal(invalid: "there is no scheme \"\(record.scheme)\" here")
        }
        guard !record.host.isEmpty, record.host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw ControlRefusal(invalid: "the host is no host's name")
        }
        self.init(
            party: party, host: record.host, port: record.port, realm: record.realm,
            method: method)
    }
}
