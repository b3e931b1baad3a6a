/// Where a file says something, for a message about it.
struct SettingPlace: Sendable, Equatable {
    /// In full, as messages name it.
    let path: String
    /// From 1; 0 where it is not known.
    let line: Int
    let column: Int

    func problem(in file: String, _ message: String) -> ConfigurationProblem {
        ConfigurationProblem(
            file: file, line: self.line, column: self.column, message: "\(self.path): \(message)")
    }
}

/// What of a file has to do with who can connect.
///
/// Warnings of that are judged by the listeners in force, which need not be those of the file.
struct ListenerGrounds: Sendable, Equatable {
    struct Listener: Sendable, Equatable {
        let address: ListenAddress
        let place: SettingPlace
        let unixPeers: SettingPlace
    }

    /// Something that a session sends of its own, because somebody has configured it.
    struct Secret: Sendable, Equatable {
        let session: SessionName
        let what: String
        let place: SettingPlace
    }

    /// A rule asks clients to be who only listeners of a kind can say.
    struct Claim: Sendable, Equatable {
        /// The route that asks; nil: an access rule, whatever the listener.
        let route: Int?
        /// Known to listeners that ask who their clients are.
        let speaksOfUsers: Bool
        /// Known to Unix sockets.
        let speaksOfUIDs: Bool
        let place: SettingPlace
    }

    /// In the order of the file.
    var listeners: [Listener] = []
    var secrets: [Secret] = []
    var claims: [Claim] = []
    /// Access rules that let everybody in, as they name no clients.
    var openRules: [SettingPlace] = []
}

extension LoadedSettings {
    /// What can have no effect, or another than was meant, with the listeners in force.
    package var warnings: [ConfigurationProblem] {
        self.fileWarnings + self.idlePeerWarnings + self.claimWarnings + self.secretWarnings
            + self.closedListenerWarnings + self.openRuleWarnings
    }

    /// Warns of listeners that are to know their clients by a Unix socket, and are none, or ask nobody.
    private var idlePeerWarnings: [ConfigurationProblem] {
        self.settings.listeners.enumerated().compactMap { index, listener in
            let authentication = listener.authentication
            guard authentication.includesUnixPeers,
                !listener.address.isUnix || !authentication.isDemanded
            else { return nil }
            return self.named(listener.address, index)?.unixPeers.problem(
                in: self.file ?? "",
                "has no effect without a Unix socket and a password-file or token-file")
        }
    }

    /// What the file says of a listener in force that has settings from it.
    ///
    /// One that lies elsewhere now was the only one.
    private func named(_ address: ListenAddress, _ index: Int) -> ListenerGrounds.Listener? {
        let named = self.grounds.listeners
        if named.indices.contains(index), named[index].address == address { return named[index] }
        return named.first { $0.address == address } ?? named.first
    }

    /// Warns of rules that speak of clients whom no listener in question knows.
    private var claimWarnings: [ConfigurationProblem] {
        self.grounds.claims.flatMap { claim in
            let only = claim.route.map { self.settings.routes[$0].listeners } ?? []
            let listeners = self.settings.listeners.filter {
                only.isEmpty || only.contains($0.address)
            }
            var messages: [String] = []
            if claim.speaksOfUsers, !listeners.contains(where: \.authentication.isDemanded) {
                messages.append(
                    "speaks of users, and no listener in question asks who its clients are; it fits "
                        + "nobody")
            }
            if claim.speaksOfUIDs, !listeners.contains(where: \.address.isUnix) {
                messages.append(
                    "speaks of users of this machine, and no listener in question is a Unix socket; "
                        + "it fits nobody")
            }
            return messages.map { claim.place.problem(in: self.file ?? "", $0) }
        }
    }

    /// Warns where whoever can connect, as every user of this machine can to loopback, has a session
    /// send credentials or cookies of its own.
    ///
    /// Said of what somebody has configured for that: what a session holds without it is not known here.
    private var secretWarnings: [ConfigurationProblem] {
        guard self.settings.access.contains(where: \.letsAddressesIn) else { return [] }
        return self.grounds.secrets.compactMap { secret in
            let open = self.settings.listeners.filter {
                self.settings.isOpen($0, leadingTo: secret.session)
            }
            guard !open.isEmpty else { return nil }
            let names = open.map(\.address.settingText).joined(separator: ", ")
            return secret.place.problem(
                in: self.file ?? "",
                "whoever can connect to \(names), be it another user of this machine, uses "
                    + "\(secret.what) of the session \(secret.session.text); let it listen on "
                    + "unix:PATH (mode 0600), or give the listener an authentication.password-file "
                    + "or token-file")
        }
    }

    /// Warns of the listeners that other machines reach while there are no access rules but those which
    /// hold without any: they let in nobody but clients of this machine.
    private var closedListenerWarnings: [ConfigurationProblem] {
        guard !self.origins.haveAccess else { return [] }
        let message =
            "other machines reach this listener, and are all denied: without access rules clients "
            + "of this machine alone are allowed; add access"
        let closed = self.settings.listeners.map(\.address).filter(\.isReachedByOthers)
        let named = self.grounds.listeners
        return named.filter { closed.contains($0.address) }
            .map { $0.place.problem(in: self.file ?? "", message) }
            + closed.filter { address in !named.contains { $0.address == address } }
            .map { address in
                ConfigurationProblem(
                    file: self.listenersNamedBy ?? self.file ?? "",
                    message: "\(address.settingText): \(message)")
            }
    }
}

extension LoadedSettings {
    /// Warns of rules that name no clients, and so let in those of other machines.
    private var openRuleWarnings: [ConfigurationProblem] {
        let open = self.settings.listeners.filter {
            $0.address.isReachedByOthers && !$0.authentication.isDemanded
        }
        guard !open.isEmpty else { return [] }
        let names = open.map(\.address.settingText).joined(separator: ", ")
        return self.grounds.openRules.map {
            $0.problem(
                in: self.file ?? "",
                "names no clients, which is everyone who can connect to \(names), also from other "
                    + "machines; name some, or \"*\" where that is meant")
        }
    }
}

extension Settings {
    /// Whether clients get to a session by TCP without saying who they are.
    fileprivate func isOpen(_ listener: ListenerSettings, leadingTo session: SessionName) -> Bool {
        guard !listener.address.isUnix, !listener.authentication.isDemanded else { return false }
        return listener.session == session
            || listener.mayName(session) && listener.trustedClients.holdAddresses
            || self.routes.contains {
                $0.session == session && $0.users.isEmpty && $0.uids.isEmpty
                    && $0.clients.holdAddresses
                    && ($0.listeners.isEmpty || $0.listeners.contains(listener.address))
            }
    }
}

extension AccessRule {
    /// Whether clients are let in by their address alone.
    fileprivate var letsAddressesIn: Bool { self.action == .allow && self.clients.holdAddresses }
}
