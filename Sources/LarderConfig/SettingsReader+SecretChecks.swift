/// Whether others than its owner can use what a session holds.
extension SettingsReader {
    /// Warns where whoever can connect, as every user of this machine can to loopback, has a session
    /// send credentials or cookies of its own.
    ///
    /// Said of what somebody has configured for that: what a session holds without it is not known here.
    mutating func checkSecrets(of session: SessionSettings) {
        guard let (path, what) = self.secret(of: session) else { return }
        let open = self.settings.listeners.filter { self.isOpen($0, leadingTo: session.name) }
        guard !open.isEmpty, self.settings.access.contains(where: \.letsAddressesIn) else { return }
        let names = open.map(\.address.settingText).joined(separator: ", ")
        self.warn(
            path,
            "whoever can connect to \(names), be it another user of this machine, uses \(what) of the "
                + "session \(session.name.text); let it listen on unix:PATH (mode 0600), or give the "
                + "listener an authentication.password-file or token-file")
    }

    /// Where it is said that a session has secrets to send, and which.
    private func secret(of session: SessionSettings) -> (path: String, what: String)? {
        let rule = self.settings.injections.firstIndex {
            $0.sessions.isEmpty || $0.sessions.contains(session.name)
        }
        if let rule { return ("injections[\(rule)]", "the credentials") }
        let path = "sessions.\(session.name.text)"
        let credentials = "\(path).credentials.answer"
        if session.credentials.answersChallenges, self.isGiven(credentials) {
            return (credentials, "the credentials")
        }
        let cookies = "\(path).cookies.mode"
        return session.cookies.mode == .jar && self.isGiven(cookies)
            ? (cookies, "the cookies") : nil
    }

    private func isGiven(_ path: String) -> Bool { self.origins[path] != nil }

    /// Whether clients get there by TCP without saying who they are.
    private func isOpen(_ listener: ListenerSettings, leadingTo session: SessionName) -> Bool {
        guard !listener.address.isUnix, !listener.authentication.isDemanded else { return false }
        return listener.session == session || listener.mayName(session)
            || self.settings.routes.contains {
                $0.session == session && $0.users.isEmpty && $0.uids.isEmpty
                    && ($0.listeners.isEmpty || $0.listeners.contains(listener.address))
            }
    }
}

extension AccessRule {
    /// Whether clients are let in by their address alone.
    fileprivate var letsAddressesIn: Bool {
        guard self.action == .allow else { return false }
        return self.clients.isEmpty
            || self.clients.contains { client in
                switch client {
                case .anyone, .block: true
                case .unix, .user, .uid: false
                }
            }
    }
}
