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
    }

    /// Something that a session sends of its own, because somebody has configured it.
    struct Secret: Sendable, Equatable {
        let session: SessionName
        let what: String
        let place: SettingPlace
    }

    /// In the order of the file.
    var listeners: [Listener] = []
    var secrets: [Secret] = []
}

extension LoadedSettings {
    /// What can have no effect, or another than was meant, with the listeners in force.
    package var warnings: [ConfigurationProblem] {
        self.fileWarnings + self.secretWarnings + self.closedListenerWarnings
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
