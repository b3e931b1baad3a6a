import Yams

/// What no row of the table can check by itself: whether settings fit together.
extension SettingsReader {
    mutating func checkTogether() {
        self.checkListeners()
        for session in self.settings.sessions {
            self.checkPlaces(of: session)
            self.checkWays(of: session)
            self.checkFields(of: session)
            self.checkPrincipals(of: session)
        }
        self.checkRoutes()
        self.checkAccess()
        self.checkInjections()
        self.checkParents()
        for (index, rule) in self.settings.cacheRules.enumerated() {
            self.checkSessions(rule.sessions, "cache-rules[\(index)]", at: self.ruleMarks[index])
            self.warnIfShadowed(self.settings.cacheRules, index, "cache-rules")
        }
        self.checkCacheRules()
    }

    private mutating func checkListeners() {
        for (index, listener) in self.settings.listeners.enumerated() {
            let label = "listeners[\(index)]"
            self.checkSession(listener.session, "\(label).session")
            for session in listener.namedSessions {
                self.checkSession(session, "\(label).named-sessions")
            }
            if !listener.namedSessions.isEmpty, listener.trustedClients.isEmpty {
                self.warn(
                    "\(label).named-sessions", "has no effect without trusted-clients")
            }
            let address = listener.address
            if self.settings.listeners[..<index].contains(where: { $0.address == address }),
                !address.takesFreePort
            {
                self.report(
                    at: self.mark("\(label).session"),
                    "\(label).address: \(address.settingText) is given to another listener already")
            } else if let other = self.settings.listeners[..<index].firstIndex(where: {
                $0.address.covers(address) || address.covers($0.address)
            }) {
                self.report(
                    at: self.mark("\(label).session"),
                    "\(label).address: \(address.settingText) and "
                        + "\(self.settings.listeners[other].address.settingText) of "
                        + "listeners[\(other)] are one place in part; give one of them another port"
                )
            }
        }
    }

    /// Whether there is a session of this name.
    mutating func checkSession(_ name: SessionName, _ path: String) {
        let names = self.settings.sessions.map(\.name.text)
        guard !names.contains(name.text) else { return }
        let hint =
            NearestName.of(name.text, among: names).map { "did you mean \"\($0)\"?" }
            ?? "there are: \(names.joined(separator: ", "))"
        self.report(
            at: self.mark(path), "\(path): there is no session \"\(name.text)\"; \(hint)")
    }

    /// Whether there are sessions of these names, by which a rule is restricted.
    mutating func checkSessions(_ sessions: [SessionName], _ label: String, at mark: Mark?) {
        let names = self.settings.sessions.map(\.name.text)
        for session in sessions where !names.contains(session.text) {
            let nearest = NearestName.of(session.text, among: names)
            let remedy = nearest.map { "; did you mean \"\($0)\"?" } ?? ""
            self.report(
                at: mark, "\(label).sessions: there is no session \"\(session.text)\"\(remedy)")
        }
    }

    /// Whether what a session keeps lies where nothing else does.
    private mutating func checkPlaces(of session: SessionSettings) {
        let label = "sessions.\(session.name.text)"
        let disk = "\(label).cache.disk"
        if session.kind == .ephemeral, session.cache.disk.bytes > 0, self.origins[disk] != nil {
            self.report(
                at: self.mark(label),
                "\(disk): an ephemeral session keeps nothing on disk; remove this or its kind")
        }
        if session.kind == .background, session.cache.disk.bytes == 0 {
            self.report(
                at: self.mark(disk),
                "\(disk): 0 keeps nothing on disk, and nothing of a background session would outlive "
                    + "the process; give it a size, or the session kind: default")
        }
        self.checkDisk(of: session, disk)
        if session.kind == .ephemeral {
            let given = [
                ("state-directory", session.stateDirectory), ("key-file", session.keyFile),
            ]
            for (name, path) in given where path != nil {
                self.report(
                    at: self.mark("\(label).\(name)"),
                    "\(label).\(name): an ephemeral session keeps nothing on disk; remove this or "
                        + "its kind\(self.line("\(label).kind"))")
            }
        }
        guard session.kind.isPersistent, let places = self.places else { return }
        self.checkUnshared(
            session, "cache.directory", \.cache.directory, "the cache", at: label,
            places.cacheDirectory(of:))
        self.checkUnshared(
            session, "state-directory", \.stateDirectory, "the state directory",
            at: "\(label).state-directory", places.stateDirectory(of:))
        self.checkUnshared(
            session, "key-file", \.keyFile, "the key file", at: "\(label).key-file",
            places.keyFile(of:))
        let directory = ResolvedPath.of(places.stateDirectory(of: session))
        if let key = session.keyFile, ResolvedPath.of(key.text).hasPrefix("\(directory)/") {
            let line =
                session.stateDirectory == nil ? "" : self.line("\(label).state-directory")
            self.report(
                at: self.mark("\(label).key-file"),
                "\(label).key-file: lies in the state-directory\(line) that it is the key to; put it "
                    + "elsewhere")
        }
    }

    private static let smallestDisk = ByteSize.mebibytes(1)

    /// A file of the disk tier has a smallest size.
    private mutating func checkDisk(of session: SessionSettings, _ path: String) {
        let size = session.cache.disk
        guard size.bytes > 0, size.bytes < Self.smallestDisk.bytes else { return }
        self.report(
            at: self.mark(path),
            "\(path): \(size.settingText) is too little for a file; expected 0 B for none, or at "
                + "least \(Self.smallestDisk.settingText)")
    }

    /// Whether a place that a session is given is no other's, be it that one's by itself, and however
    /// the two are spelled.
    private mutating func checkUnshared(
        _ session: SessionSettings, _ name: String, _ given: KeyPath<SessionSettings, FilePath?>,
        _ what: String, at path: String, _ place: (SessionSettings) -> String
    ) {
        guard let file = session[keyPath: given] else { return }
        let resolved = ResolvedPath.of(file.text)
        let twin = self.settings.sessions.first { other in
            // Of two that are given one place, the second is told.
            other.kind.isPersistent && other.name != session.name
                && (other[keyPath: given] == nil || other.name.text < session.name.text)
                && ResolvedPath.of(place(other)) == resolved
        }
        guard let twin else { return }
        self.report(
            at: self.mark(path),
            "sessions.\(session.name.text).\(name): \(file.text) is \(what) of session "
                + "\"\(twin.name.text)\" already")
    }

    /// Whether what a session does beside caching can be done.
    private mutating func checkWays(of session: SessionSettings) {
        let label = "sessions.\(session.name.text)"
        if let maximum = session.tls.maximum, maximum < session.tls.minimum {
            self.report(
                at: self.mark("\(label).tls.maximum"),
                "\(label).tls.maximum: \(maximum.rawValue) is below tls.minimum, which is "
                    + "\(session.tls.minimum.rawValue)\(self.line(given: "\(label).tls.minimum")); "
                    + "raise the one or lower the other")
        }
        guard session.cookies.mode == .pass else { return }
        let plain = CookieSettings()
        let idle = [
            ("accept", session.cookies.accept != plain.accept),
            ("merging", session.cookies.merging != plain.merging),
            ("show-set-cookie", session.cookies.showsSetCookie != plain.showsSetCookie),
        ]
        for (name, isChanged) in idle where isChanged {
            self.report(
                at: self.mark("\(label).cookies.\(name)"),
                "\(label).cookies.\(name): says what a jar does, and cookies.mode is pass"
                    + "\(self.line(given: "\(label).cookies.mode")); set mode: jar, or remove this")
        }
    }

    private mutating func checkFields(of session: SessionSettings) {
        let path = "sessions.\(session.name.text).fields"
        var seen: Set<String> = []
        for field in session.fields where !seen.insert(field.name.lowercased()).inserted {
            self.report(
                at: self.mark(path),
                "\(path): \(field.name) is given twice; letter case makes no other field")
        }
    }

    /// ` (line 3)` where this very setting was given.
    func line(given path: String) -> String {
        guard case .file(let line) = self.origins[path] else { return " by default" }
        return " (line \(line))"
    }
}

extension ListenAddress {
    fileprivate var takesFreePort: Bool { self.port == 0 }

    /// Whether a listener here takes what comes to another address, too (bind(2), EADDRINUSE).
    fileprivate func covers(_ other: ListenAddress) -> Bool {
        guard self != other, let port = self.port, port != 0, other.port == port else {
            return false
        }
        switch (self, other) {
        // A socket on [::] takes IPv4, too (ipv6(7)).
        case (.everywhere, _): return true
        case (.ip(let address, _), _) where address.value == 0 && address.family == .v6: return true
        case (.ip(let address, _), .ip(let other, _)):
            return address.value == 0 && other.family == .v4
        case (.ip, _), (.localhost, _), (.unix, _): return false
        }
    }

    private var port: UInt16? {
        switch self {
        case .ip(_, let port), .everywhere(let port), .localhost(let port): port
        case .unix: nil
        }
    }

    /// Whether clients may come from other machines.
    var isReachedByOthers: Bool {
        switch self {
        case .ip(let address, _):
            address.family == .v4 ? address.value >> 24 != 127 : address.value != 1
        case .everywhere: true
        case .localhost, .unix: false
        }
    }

    /// Whether clients come through a Unix socket, so that their uid is known.
    var isUnix: Bool {
        if case .unix = self { return true }
        return false
    }
}
