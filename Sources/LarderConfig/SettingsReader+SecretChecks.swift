/// What a file says that matters to who can connect.
extension SettingsReader {
    var listenerGrounds: ListenerGrounds {
        ListenerGrounds(
            listeners: self.settings.listeners.indices.map { index in
                ListenerGrounds.Listener(
                    address: self.settings.listeners[index].address,
                    place: self.place("listeners[\(index)].address"))
            },
            secrets: self.settings.sessions.compactMap(self.secret))
    }

    /// What a session sends of its own, and where that is said.
    private func secret(of session: SessionSettings) -> ListenerGrounds.Secret? {
        func secret(_ what: String, _ path: String) -> ListenerGrounds.Secret {
            ListenerGrounds.Secret(session: session.name, what: what, place: self.place(path))
        }
        let rule = self.settings.injections.firstIndex {
            $0.sessions.isEmpty || $0.sessions.contains(session.name)
        }
        if let rule { return secret("the credentials", "injections[\(rule)]") }
        let path = "sessions.\(session.name.text)"
        let credentials = "\(path).credentials.answer"
        if session.credentials.answersChallenges, self.isGiven(credentials) {
            return secret("the credentials", credentials)
        }
        let cookies = "\(path).cookies.mode"
        return session.cookies.mode == .jar && self.isGiven(cookies)
            ? secret("the cookies", cookies) : nil
    }

    private func isGiven(_ path: String) -> Bool { self.origins[path] != nil }
}
