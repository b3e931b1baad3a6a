import LarderCookies
import LarderCredentials
import LarderHTTP

/// A principal's cookies in a state file.
struct PrincipalCookies: CookieStorage {
    let state: StateFile
    let principal: String

    func load() async throws(CookieStorageError) -> [Cookie] {
        do throws(StateError) {
            return try await self.state.records([.cookie], of: self.principal).compactMap {
                guard case .cookie(let cookie) = $0 else { return nil }
                return cookie
            }
        } catch {
            throw CookieStorageError(error)
        }
    }

    func apply(_ changes: [CookieChange]) async throws(CookieStorageError) {
        let edits = changes.map { change -> StateFile.Change in
            switch change {
            case .stored(let cookie):
                // One of the session takes the place of a persistent one, which must not come back.
                cookie.isPersistent ? .put(.cookie(cookie)) : .remove(.cookie(cookie))
            case .removed(let identity):
                .remove(.cookie(Cookie(placeholderFor: identity)))
            }
        }
        do throws(StateError) {
            try await self.state.apply(edits, of: self.principal)
        } catch {
            throw CookieStorageError(error)
        }
    }
}

/// A principal's permanent credentials in a state file.
struct PrincipalCredentials: CredentialStorage {
    let state: StateFile
    let principal: String

    func load() async throws(CredentialStorageError) -> [CredentialChange] {
        do throws(StateError) {
            return try await self.state.credentialRecords(of: self.principal)
        } catch {
            throw CredentialStorageError(error)
        }
    }

    func apply(_ changes: [CredentialChange]) async throws(CredentialStorageError) {
        do throws(StateError) {
            try await self.state.apply(changes.map(Self.edit), of: self.principal)
        } catch {
            throw CredentialStorageError(error)
        }
    }

    private static func edit(_ change: CredentialChange) -> StateFile.Change {
        switch change {
        case .stored(let credential, let space): .put(.credential(credential, space))
        case .removed(let user, let space):
            .remove(.credential(Self.nothing(user), space))
        case .defaultChanged(let user?, let space): .put(.defaultUser(user, space))
        case .defaultChanged(nil, let space): .remove(.defaultUser("", space))
        case .named(let credential): .put(.named(credential))
        case .namedRemoved(let name):
            .remove(
                .named(
                    NamedCredential(
                        name: name, kind: .bearer(Secret("")), persistence: .permanent)))
        }
    }

    private static func nothing(_ user: String) -> Credential {
        Credential(user: user, password: Secret(""), persistence: .permanent)
    }
}

extension StateFile {
    /// A principal's credentials, as the changes that lead to them.
    func credentialRecords(of principal: String) throws(StateError) -> [CredentialChange] {
        let kinds: [StateRecord.Kind] = [.credential, .defaultUser, .named]
        return try self.records(kinds, of: principal).compactMap {
            switch $0 {
            case .credential(let credential, let space): .stored(credential, space)
            case .defaultUser(let user, let space): .defaultChanged(user: user, space)
            case .named(let credential): .named(credential)
            case .principal, .cookie, .transfer: nil
            }
        }
    }
}

extension Cookie {
    /// A cookie of this identity and nothing else, to name the record of.
    fileprivate init(placeholderFor identity: Identity) {
        self.init(
            name: identity.name, value: [], domain: identity.domain,
            isHostOnly: identity.isHostOnly, path: identity.path,
            creation: Timestamp(microseconds: 0))
    }
}

extension CookieStorageError {
    init(_ error: StateError) {
        let code: Code =
            switch error.code {
            case .full: .full
            case .damaged: .damaged
            case .inUse, .wrongKey, .badKeyFile, .unavailable, .denied, .untrusted: .unavailable
            }
        self.init(code, "\(error)")
    }
}

extension CredentialStorageError {
    init(_ error: StateError) {
        let code: Code =
            switch error.code {
            case .full: .full
            case .damaged: .damaged
            case .wrongKey, .badKeyFile: .wrongKey
            case .inUse, .unavailable, .denied, .untrusted: .unavailable
            }
        self.init(code, "\(error)")
    }
}
