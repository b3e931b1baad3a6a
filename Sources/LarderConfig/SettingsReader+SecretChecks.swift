/// What a file says that matters to who can connect.
extension SettingsReader {
    var listenerGrounds: ListenerGrounds {
        ListenerGrounds(
            listeners: self.settings.listeners.indices.map { index in
                ListenerGrounds.Listener(
                    address: self.settings.listeners[index].address,
                    place: self.place("listeners[\(index)].address"),
                    unixPeers: self.place("listeners[\(index)].authentication.unix-peers"))
            },
            secrets: self.settings.sessions.compactMap(self.secret),
            claims: self.claims.filter { $0.speaksOfUsers || $0.speaksOfUIDs },
            openRules: self.settings.access.enumerated().compactMap { index, rule in
                rule.action == .allow && rule.clients.isEmpty
                    ? self.place("access[\(index)]") : nil
            })
    }

    /// What rules ask clients to be.
    private var claims: [ListenerGrounds.Claim] {
        let routes = self.settings.routes.enumerated().flatMap { index, route in
            let label = "routes[\(index)]"
            return [
                ListenerGrounds.Claim(
                    route: index, speaksOfUsers: !route.users.isEmpty, speaksOfUIDs: false,
                    place: self.place("\(label).users")),
                ListenerGrounds.Claim(
                    route: index, speaksOfUsers: false, speaksOfUIDs: !route.uids.isEmpty,
                    place: self.place("\(label).uids")),
                self.claim(of: route.clients, route: index, at: "\(label).clients"),
            ]
        }
        return routes
            + self.settings.access.enumerated().map { index, rule in
                self.claim(of: rule.clients, route: nil, at: "access[\(index)].clients")
            }
    }

    private func claim(
        of clients: [ClientPattern], route: Int?, at path: String
    ) -> ListenerGrounds.Claim {
        ListenerGrounds.Claim(
            route: route,
            speaksOfUsers: clients.contains { if case .user = $0 { true } else { false } },
            speaksOfUIDs: clients.contains { if case .uid = $0 { true } else { false } },
            place: self.place(path))
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
