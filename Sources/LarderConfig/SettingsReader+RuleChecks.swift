/// Whether rules speak of what there is, and can ever fit.
extension SettingsReader {
    /// Whether the clients that a listener or a route leads to a session have what it splits by.
    mutating func checkPrincipals(of session: SessionSettings) {
        let path = "sessions.\(session.name.text).principals"
        let leading = self.listeners(leadingTo: session.name)
        guard !leading.isEmpty else { return }
        switch session.principals {
        case .none, .address: break
        case .user:
            if leading.contains(where: \.authentication.isDemanded) { return }
            self.report(
                at: self.mark(path),
                "\(path): user, but no listener that leads to the session asks its clients who they "
                    + "are (\(Self.names(leading))); give one an authentication.password-file or "
                    + "token-file, or split by address")
        case .uid:
            if leading.contains(where: \.address.isUnix) { return }
            self.report(
                at: self.mark(path),
                "\(path): uid, but no listener that leads to the session is a Unix socket "
                    + "(\(Self.names(leading))); add one, or split by user or address")
        }
    }

    private func listeners(leadingTo session: SessionName) -> [ListenerSettings] {
        self.settings.listeners.filter { listener in
            listener.session == session || listener.mayName(session)
                || self.settings.routes.contains {
                    $0.session == session
                        && ($0.listeners.isEmpty || $0.listeners.contains(listener.address))
                }
        }
    }

    private static func names(_ listeners: [ListenerSettings]) -> String {
        listeners.map(\.address.settingText).joined(separator: ", ")
    }

    mutating func checkRoutes() {
        let known = self.settings.listeners.map(\.address.settingText)
        for (index, route) in self.settings.routes.enumerated() {
            let label = "routes[\(index)]"
            self.checkSession(route.session, "\(label).session")
            for listener in route.listeners where !known.contains(listener.settingText) {
                let hint =
                    NearestName.of(listener.settingText, among: known)
                    .map { "did you mean \($0)?" } ?? "there are: \(known.joined(separator: ", "))"
                self.report(
                    at: self.mark("\(label).listeners"),
                    "\(label).listeners: there is no listener at \(listener.settingText); \(hint)")
            }
            self.warnIfShadowed(self.settings.routes, index, "routes")
        }
    }

    mutating func checkAccess() {
        for index in self.settings.access.indices {
            self.warnIfShadowed(self.settings.access, index, "access")
        }
        if self.settings.access.isEmpty {
            self.warn(
                "access",
                "is empty, and everybody is denied; add rules, or remove it, and clients of this "
                    + "machine are allowed")
        }
    }

    mutating func checkInjections() {
        for (index, rule) in self.settings.injections.enumerated() {
            let label = "injections[\(index)]"
            self.checkSessions(rule.sessions, label, at: self.mark("\(label).sessions"))
            if rule.hosts.isEmpty {
                self.report(
                    at: self.mark(label),
                    "\(label): needs hosts, such as api.example.com; without any the credential "
                        + "would go to every origin")
            }
            let credential = self.mark("\(label).credential")
            // One that is no name at all was told already.
            if rule.credential == nil, self.origins["\(label).credential"] != nil,
                !self.hasProblem(at: credential)
            {
                self.report(
                    at: credential,
                    "\(label).credential: none injects nothing; name a credential, or remove the "
                        + "rule")
            }
            if rule.methods.contains(where: { $0.name == "TRACE" }) {
                self.report(
                    at: self.mark("\(label).methods"),
                    "\(label).methods: TRACE gets no credential, as its answer would show it to the "
                        + "client; remove it")
            }
            self.warnIfShadowed(self.settings.injections, index, "injections")
        }
    }

    mutating func checkParents() {
        for (index, rule) in self.settings.parents.enumerated() {
            let label = "parents[\(index)]"
            self.checkSessions(rule.sessions, label, at: self.mark("\(label).sessions"))
            if let problem = rule.credentialProblem {
                let path = "\(label).\(problem.setting)"
                self.report(at: self.mark(path), "\(path): \(problem.message)")
            }
            self.warnIfShadowed(self.settings.parents, index, "parents")
        }
    }

    /// Tells of a rule that never comes to speak, because an earlier one fits all that it fits.
    ///
    /// Each is compared with all before it: not in lists so long that the start would take a while.
    mutating func warnIfShadowed<Rule: CoveringRule>(
        _ rules: [Rule], _ index: Int, _ list: String
    ) {
        guard index < 1_000 else { return }
        guard let earlier = rules[..<index].firstIndex(where: { $0.covers(rules[index]) }) else {
            return
        }
        let path = "\(list)[\(index)]"
        self.warn(
            path,
            "is never reached: \(list)[\(earlier)]\(self.line("\(list)[\(earlier)]")) fits "
                + "everything that it fits, and comes first")
    }
}

extension ParentSettings {
    /// What is wrong with how Larder would prove who it is, and with which setting; nil: nothing.
    fileprivate var credentialProblem: (setting: String, message: String)? {
        switch self.via {
        case .direct:
            if let name = self.credential {
                return (
                    "credential",
                    "\(name.text) is for a proxy, and via is direct; remove it, or name the proxy. "
                        + "Credentials for origins belong into injections"
                )
            }
            guard self.authentication != .any else { return nil }
            return (
                "authentication",
                "is for a proxy, and via is direct; remove it, or name the proxy"
            )
        case .proxy(.socks5, _, _):
            guard self.authentication == .digest || self.authentication == .ntlm else { return nil }
            return (
                "authentication",
                "SOCKS5 knows no \(self.authentication.rawValue), only user name and password, or "
                    + "negotiate; set any"
            )
        case .proxy:
            guard self.credential == nil else { return nil }
            switch self.authentication {
            // Negotiate has the ticket of whoever runs the proxy.
            case .any, .negotiate: return nil
            case .basic, .digest, .ntlm:
                return (
                    "credential",
                    "is missing, and authentication is \(self.authentication.rawValue); add one by "
                        + "\"larder credentials add\" and name it here"
                )
            }
        }
    }
}
