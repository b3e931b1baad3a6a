// Rules about who may do what in which session are meant for the listeners and sessions of their own
// file. Where that closes one in force further, by what only a restart brings, its rules could open
// it until then to clients who were not to reach it. So they wait for the restart, too: all of them,
// as they belong together. With them wait cache rules and what shares cookies, as they may be right
// where each client has a cache of its own and there alone, and other files of clients, as the old
// rules would judge whoever is newly listed. And so they do where routes lead to a session that only
// a restart opens: who is let in on their account would be in another one.
extension Settings {
    /// The listeners in force that newer settings close further, which only a restart does.
    package func listenersClosed(by newer: Settings) -> [ListenAddress] {
        self.listeners.enumerated().filter { index, listener in
            // An address that was given up stays open until the restart.
            guard let other = newer.listener(at: listener.address, likely: index) else {
                return true
            }
            return listener.isClosed(by: other)
        }.map(\.element.address)
    }

    /// The sessions in force that newer settings close further, which only a restart does.
    package func sessionsClosed(by newer: Settings) -> [SessionName] {
        self.sessions.filter { session in
            // One that nothing leads to any more is nobody's, whatever becomes of it.
            guard self.isReachable(session.name) || newer.isReachable(session.name),
                let other = newer.session(named: session.name)
            else { return false }
            return session.isClosed(by: other)
        }.map(\.name)
    }

    /// The rules that change together with such listeners and sessions, and wait with them.
    ///
    /// - Parameters:
    ///   - unopened: sessions that the newer routes lead to and that only a restart opens.
    ///   - otherPresets: files of presets say something else by now.
    package func accessWaiting(
        for newer: Settings, unopened: [SessionName] = [], otherPresets: Bool = false
    ) -> [String] {
        let paths = self.accessChanged(by: newer, otherPresets: otherPresets)
        guard !paths.isEmpty, unopened.isEmpty else { return paths }
        let closesNone =
            self.listenersClosed(by: newer).isEmpty && self.sessionsClosed(by: newer).isEmpty
        return closesNone ? [] : paths
    }

    private func accessChanged(by newer: Settings, otherPresets: Bool) -> [String] {
        var paths: [String] = []
        if self.access != newer.access { paths.append("access") }
        if self.connectPorts != newer.connectPorts { paths.append("connect-ports") }
        if self.routes != newer.routes { paths.append("routes") }
        if self.injections != newer.injections { paths.append("injections") }
        if self.cacheRules != newer.cacheRules { paths.append("cache-rules") }
        if otherPresets || self.presets != newer.presets
            || self.presetDirectory != newer.presetDirectory
        {
            paths.append("presets")
        }
        for session in self.sessions {
            guard let other = newer.session(named: session.name) else { continue }
            paths += session.accessChanged(by: other)
                .map { "sessions.\(session.name.text).\($0)" }
        }
        for (index, listener) in newer.listeners.enumerated() {
            guard let older = self.listener(at: listener.address, likely: index) else { continue }
            paths += older.authentication.filesChanged(by: listener.authentication)
                .map { "listeners[\(index)].authentication.\($0)" }
        }
        return paths
    }

    /// Several may have one address, where each takes a free port.
    private func listener(at address: ListenAddress, likely index: Int) -> ListenerSettings? {
        if self.listeners.indices.contains(index), self.listeners[index].address == address {
            return self.listeners[index]
        }
        return self.listeners.first { $0.address == address }
    }
}

extension ListenerSettings {
    /// Whether newer settings of it turn clients away whom these let in, or keep from them what these
    /// let them have.
    fileprivate func isClosed(by newer: ListenerSettings) -> Bool {
        newer.asksEverybody && !self.asksEverybody
            || self.address.isUnix && self.mode.bits & ~newer.mode.bits != 0
            // Who comes for the other session would be in this one.
            || self.session != newer.session
            || self.isOnline && !newer.isOnline
            || self.trustsMore(than: newer)
    }

    private var asksEverybody: Bool {
        self.authentication.isDemanded
            && (!self.address.isUnix || self.authentication.includesUnixPeers)
    }

    private var isOnline: Bool { self.cachePolicy != .returnCacheDontLoad }

    /// Whether somebody may name a session here who may not there.
    private func trustsMore(than newer: ListenerSettings) -> Bool {
        guard !self.trustedClients.isEmpty else { return false }
        return self.trustedClients.contains { !newer.trustedClients.contains($0) }
            || self.namedSessions.contains { !newer.namedSessions.contains($0) }
    }
}

extension AuthenticationSettings {
    /// Which files newer settings name others of, where both ask: to begin or to cease asking waits for
    /// a restart anyway.
    fileprivate func filesChanged(by newer: AuthenticationSettings) -> [String] {
        guard self.isDemanded, newer.isDemanded else { return [] }
        var names: [String] = []
        if self.passwordFile != newer.passwordFile { names.append("password-file") }
        if self.tokenFile != newer.tokenFile { names.append("token-file") }
        return names
    }

    /// Whether clients are listed in the same files, which may say something else by now.
    package func hasFiles(of other: AuthenticationSettings) -> Bool {
        self.passwordFile == other.passwordFile && self.tokenFile == other.tokenFile
    }

    /// These settings with the files of older ones, which stay as access rules do.
    package func keepingFiles(of older: AuthenticationSettings) -> AuthenticationSettings {
        var settings = self
        settings.passwordFile = older.passwordFile
        settings.tokenFile = older.tokenFile
        return settings
    }
}

extension SessionSettings {
    /// What newer settings of it change that waits with access rules.
    fileprivate func accessChanged(by newer: SessionSettings) -> [String] {
        var names: [String] = []
        if self.credentials != newer.credentials { names.append("credentials.answer") }
        if self.cache.storesSetCookie != newer.cache.storesSetCookie {
            names.append("cache.store-set-cookie")
        }
        if self.cookies.showsSetCookie != newer.cookies.showsSetCookie {
            names.append("cookies.show-set-cookie")
        }
        return names
    }

    /// These settings with what of older ones waits with access rules.
    package func keepingAccess(of older: SessionSettings) -> SessionSettings {
        var session = self
        session.credentials = older.credentials
        session.cache.storesSetCookie = older.cache.storesSetCookie
        session.cookies.showsSetCookie = older.cookies.showsSetCookie
        return session
    }

    /// Whether newer settings of it keep from its clients what these let them have: what others of
    /// them have left there, or what it holds itself.
    fileprivate func isClosed(by newer: SessionSettings) -> Bool {
        newer.principals != .none && newer.principals != self.principals
            || self.cookies.mode == .jar && newer.cookies.mode == .pass
            // What one client alone has may follow rules by which many would get each other's.
            || self.cache.isShared != newer.cache.isShared
            || !self.cache.isShared && newer.cache.directory != self.cache.directory
            || self.kind.isPersistent
                && (!newer.kind.isPersistent || newer.stateDirectory != self.stateDirectory)
    }
}

extension LoadedSettings {
    /// Warns that newer rules wait for a restart, and why; nil where they need not.
    ///
    /// - Parameter unopened: sessions that the newer routes lead to and that only a restart opens.
    package func waitingAccessWarning(
        for newer: LoadedSettings, unopened: [SessionName] = []
    ) -> ConfigurationProblem? {
        let waiting = self.settings.accessWaiting(
            for: newer.settings, unopened: unopened,
            otherPresets: self.hasOtherPresets(than: newer))
        guard !waiting.isEmpty else { return nil }
        let closed =
            self.settings.listenersClosed(by: newer.settings).map(\.settingText)
            + self.settings.sessionsClosed(by: newer.settings).map { "session \($0.text)" }
        var deeds: [String] = []
        if !closed.isEmpty {
            deeds.append("closes \(closed.joined(separator: ", ")) as this file has it")
        }
        if !unopened.isEmpty {
            let names = Set(unopened.map { "session \($0.text)" }).sorted()
            deeds.append("opens \(names.joined(separator: ", "))")
        }
        return ConfigurationProblem(
            file: newer.file ?? "",
            message: "\(waiting.joined(separator: ", ")): the old rules hold until a restart, "
                + "which alone \(deeds.joined(separator: " and ")); the new ones could let others "
                + "in until then; restart, or reload without that change")
    }

    /// Whether the presets of newer settings have other rules, be it that their files were written
    /// anew.
    package func hasOtherPresets(than newer: LoadedSettings) -> Bool {
        func rules(_ loaded: LoadedSettings) -> [CacheRuleSettings] {
            loaded.cacheRules.dropFirst(loaded.settings.cacheRules.count).map(\.rule)
        }
        return rules(self) != rules(newer)
    }

    /// Takes over where newer settings were given.
    ///
    /// - Parameter holdsRules: the rules of injection and of caches stay as they are, which are known
    ///   by their places.
    package mutating func followOrigins(of newer: LoadedSettings, holdsRules: Bool) {
        guard holdsRules else {
            self.origins = newer.origins
            return
        }
        func isHeld(_ path: String) -> Bool {
            ["injections", "cache-rules", "preset"].contains { path.hasPrefix($0) }
        }
        let kept = self.origins.filter { isHeld($0.key) }
        self.origins = newer.origins.filter { !isHeld($0.key) }
            .merging(kept) { _, kept in kept }
    }
}
