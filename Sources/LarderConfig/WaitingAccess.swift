// Rules about who may do what in which session are meant for the listeners and sessions of their own
// file. Where that closes one in force further, by what only a restart brings, its rules could open
// it until then to clients who were not to reach it. So they wait for the restart, too: all of them,
// as they belong together. And so they do where routes lead to a session that only a restart opens:
// who is let in on their account would be in another one.
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
    /// - Parameter unopened: sessions that the newer routes lead to and that only a restart opens.
    package func accessWaiting(
        for newer: Settings, unopened: [SessionName] = []
    ) -> [String] {
        var paths: [String] = []
        if self.access != newer.access { paths.append("access") }
        if self.connectPorts != newer.connectPorts { paths.append("connect-ports") }
        if self.routes != newer.routes { paths.append("routes") }
        if self.injections != newer.injections { paths.append("injections") }
        for session in self.sessions {
            guard let other = newer.session(named: session.name),
                session.credentials != other.credentials
            else { continue }
            paths.append("sessions.\(session.name.text).credentials.answer")
        }
        guard !paths.isEmpty, unopened.isEmpty else { return paths }
        let closesNone =
            self.listenersClosed(by: newer).isEmpty && self.sessionsClosed(by: newer).isEmpty
        return closesNone ? [] : paths
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

extension SessionSettings {
    /// Whether newer settings of it keep from its clients what these let them have: what others of
    /// them have left there, or what it holds itself.
    fileprivate func isClosed(by newer: SessionSettings) -> Bool {
        newer.principals != .none && newer.principals != self.principals
            || self.cookies.mode == .jar && newer.cookies.mode == .pass
            || !self.cache.isShared
                && (newer.cache.isShared || newer.cache.directory != self.cache.directory)
            || self.kind == .default
                && (newer.kind == .ephemeral || newer.stateDirectory != self.stateDirectory)
    }
}

extension LoadedSettings {
    /// Warns that newer rules wait for a restart, and why; nil where they need not.
    ///
    /// - Parameter unopened: sessions that the newer routes lead to and that only a restart opens.
    package func waitingAccessWarning(
        for newer: LoadedSettings, unopened: [SessionName] = []
    ) -> ConfigurationProblem? {
        let waiting = self.settings.accessWaiting(for: newer.settings, unopened: unopened)
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

    /// Takes over where newer settings were given.
    ///
    /// - Parameter holdsInjections: the rules of injection stay as they are, which are known by their
    ///   places.
    package mutating func followOrigins(of newer: LoadedSettings, holdsInjections: Bool) {
        guard holdsInjections else {
            self.origins = newer.origins
            return
        }
        func isInjection(_ path: String) -> Bool { path.hasPrefix("injections") }
        let kept = self.origins.filter { isInjection($0.key) }
        self.origins = newer.origins.filter { !isInjection($0.key) }
            .merging(kept) { _, kept in kept }
    }
}
