package import LarderHTTP

/// What happened in a store, in order: what a storage must do to hold the same.
///
/// It speaks of permanent credentials only; no other ever reaches a storage.
package enum CredentialChange: Sendable, Equatable {
    /// New, or in place of the one of that user.
    case stored(Credential, ProtectionSpace)
    case removed(user: String, ProtectionSpace)
    /// Nil where the space has none any more.
    case defaultChanged(user: String?, ProtectionSpace)
    /// New, or in place of the one of that name.
    case named(NamedCredential)
    case namedRemoved(String)
}

/// The credentials of a session: a value.
///
/// By protection space and user, as challenges ask for them, and by name, as rules speak of them. The
/// first credential of a space is its default until another is made so, or it is removed. A default that
/// is kept for the session hides the one that lasts, and takes its place from it no longer than it is there.
package struct CredentialStore: Sendable {
    private struct Space: Sendable {
        var byUser: [String: Credential] = [:]
        /// The default among those that last, which is what a storage knows of.
        var lastingDefault: String?
        /// One kept for the session that is the default as long as it is there.
        var passingDefault: String?

        var defaultUser: String? { self.passingDefault ?? self.lastingDefault }

        /// Makes one of its own the default.
        mutating func prefer(_ user: String, lasts: Bool) {
            if lasts {
                (self.lastingDefault, self.passingDefault) = (user, nil)
            } else {
                self.passingDefault = user
            }
        }

        /// Has no default that has gone, or has become one of the other kind.
        mutating func settle(lasts: (Credential?) -> Bool) {
            if let user = self.lastingDefault, !lasts(self.byUser[user]) {
                self.lastingDefault = nil
            }
            if let user = self.passingDefault, self.byUser[user].map(lasts) != false {
                self.passingDefault = nil
            }
        }
    }

    /// No space is without credentials.
    private var spaces: [ProtectionSpace: Space] = [:]
    private var byName: [String: NamedCredential] = [:]
    /// False in an ephemeral session: what is meant to be permanent then lives with the session.
    private let keepsPermanent: Bool

    package init(keepsPermanent: Bool) {
        self.keepsPermanent = keepsPermanent
    }

    // MARK: Reading

    /// The credentials for a space, by user.
    package func credentials(for space: ProtectionSpace) -> [String: Credential] {
        self.spaces[space]?.byUser ?? [:]
    }

    package func defaultCredential(for space: ProtectionSpace) -> Credential? {
        guard let found = self.spaces[space], let user = found.defaultUser else { return nil }
        return found.byUser[user]
    }

    /// What a challenge is answered with where nobody is asked: the default, or else another.
    ///
    /// The first by user, where the default was removed: nobody would see why there is none.
    package func offered(for space: ProtectionSpace) -> Credential? {
        self.defaultCredential(for: space)
            ?? self.spaces[space]?.byUser.values.min { $0.user < $1.user }
    }

    /// Every credential with its space, in no order.
    package var all: [(space: ProtectionSpace, credential: Credential)] {
        self.spaces.flatMap { space, held in held.byUser.values.map { (space, $0) } }
    }

    /// Whether there is a credential for the origin of a URI, in whatever realm.
    package func holdsAny(for uri: TargetURI) -> Bool {
        self.spaces.keys.contains {
            $0.party == .server(uri.scheme) && $0.host == uri.host && $0.port == uri.port
        }
    }

    package var isEmpty: Bool { self.spaces.isEmpty && self.byName.isEmpty }

    /// Whether all that it holds outlives the process.
    package var isPermanent: Bool {
        self.spaces.values.allSatisfy { space in
            space.byUser.values.allSatisfy { self.lasts($0.persistence) }
        } && self.byName.values.allSatisfy { self.lasts($0.persistence) }
    }

    package func named(_ name: String) -> NamedCredential? { self.byName[name] }

    /// Every named credential, by name.
    package var allNamed: [NamedCredential] {
        self.byName.values.sorted { $0.name < $1.name }
    }

    // MARK: Changing

    /// Keeps a credential in place of the one of that name, unless it is meant for one use.
    @discardableResult
    package mutating func set(_ credential: NamedCredential) -> [CredentialChange] {
        guard credential.persistence != .none else { return [] }
        let before = self.byName.updateValue(credential, forKey: credential.name)
        guard credential != before else { return [] }
        if self.lasts(credential.persistence) { return [.named(credential)] }
        return self.lasts(before?.persistence) ? [.namedRemoved(credential.name)] : []
    }

    @discardableResult
    package mutating func remove(named name: String) -> [CredentialChange] {
        guard let removed = self.byName.removeValue(forKey: name) else { return [] }
        return self.lasts(removed.persistence) ? [.namedRemoved(name)] : []
    }

    /// Keeps a credential in place of the one of that user, unless it is meant for one use.
    @discardableResult
    package mutating func set(
        _ credential: Credential, for space: ProtectionSpace
    ) -> [CredentialChange] {
        self.set(credential, for: space, asDefault: false)
    }

    /// Keeps a credential and makes it the space's default.
    @discardableResult
    package mutating func setDefault(
        _ credential: Credential, for space: ProtectionSpace
    ) -> [CredentialChange] {
        self.set(credential, for: space, asDefault: true)
    }

    private mutating func set(
        _ credential: Credential, for space: ProtectionSpace, asDefault: Bool
    ) -> [CredentialChange] {
        guard credential.persistence != .none else { return [] }
        var held = self.spaces[space] ?? Space()
        let before = held
        held.byUser[credential.user] = credential
        if asDefault || before.defaultUser == nil || before.defaultUser == credential.user {
            held.prefer(credential.user, lasts: self.lasts(credential))
        }
        self.spaces[space] = held
        self.settle(space)
        var changes: [CredentialChange] = []
        if credential != before.byUser[credential.user] {
            if self.lasts(credential) {
                changes.append(.stored(credential, space))
            } else if self.lasts(before.byUser[credential.user]) {
                changes.append(.removed(user: credential.user, space))
            }
        }
        return changes + self.defaultChange(in: space, from: before)
    }

    @discardableResult
    package mutating func remove(
        user: String, for space: ProtectionSpace
    ) -> [CredentialChange] {
        guard let before = self.spaces[space], let credential = before.byUser[user] else {
            return []
        }
        var held = before
        held.byUser[user] = nil
        self.spaces[space] = held
        self.settle(space)
        let removal: [CredentialChange] =
            self.lasts(credential) ? [.removed(user: user, space)] : []
        return removal + self.defaultChange(in: space, from: before)
    }

    /// Forgets what was kept for the session, at its end.
    package mutating func endSession() {
        for (space, held) in self.spaces {
            for (user, credential) in held.byUser where !self.lasts(credential) {
                self.remove(user: user, for: space)
            }
        }
        self.byName = self.byName.filter { self.lasts($0.value.persistence) }
    }

    /// Puts back what a storage held; see `CredentialStorage.load`.
    package mutating func restore(_ changes: [CredentialChange]) {
        for change in changes {
            switch change {
            case .stored(let credential, let space):
                guard self.lasts(credential) else { continue }
                self.spaces[space, default: Space()].byUser[credential.user] = credential
                self.settle(space)
            case .removed(let user, let space):
                self.remove(user: user, for: space)
            case .defaultChanged(let user, let space):
                if let user, !self.lasts(self.spaces[space]?.byUser[user]) { continue }
                self.spaces[space]?.lastingDefault = user
            case .named(let credential):
                guard self.lasts(credential.persistence) else { continue }
                self.byName[credential.name] = credential
            case .namedRemoved(let name):
                self.byName[name] = nil
            }
        }
    }

    /// Holds what a storage holds now, in the place of all permanent credentials; what is kept for the
    /// session stays, and so does a default among it.
    package mutating func reread(_ changes: [CredentialChange]) {
        for (space, held) in self.spaces {
            let passing = held.byUser.filter { !self.lasts($0.value) }
            self.spaces[space] =
                passing.isEmpty
                ? nil : Space(byUser: passing, passingDefault: held.passingDefault)
        }
        self.byName = self.byName.filter { !self.lasts($0.value.persistence) }
        self.restore(changes)
    }

    /// After a change of what a space holds.
    private mutating func settle(_ space: ProtectionSpace) {
        guard var held = self.spaces[space] else { return }
        held.settle { self.lasts($0) }
        self.spaces[space] = held.byUser.isEmpty ? nil : held
    }

    private func lasts(_ credential: Credential?) -> Bool {
        self.lasts(credential?.persistence)
    }

    private func lasts(_ persistence: CredentialPersistence?) -> Bool {
        self.keepsPermanent && persistence == .permanent
    }

    /// The change of the default, as far as a storage can know of it.
    private func defaultChange(
        in space: ProtectionSpace, from before: Space
    ) -> [CredentialChange] {
        let now = self.spaces[space]?.lastingDefault
        return now == before.lastingDefault ? [] : [.defaultChanged(user: now, space)]
    }
}
