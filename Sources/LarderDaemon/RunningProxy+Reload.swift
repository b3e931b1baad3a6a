import LarderConfig
import LarderEngine
import LarderProxy
import Logging

// What of a newer file a proxy takes over while it runs.
extension RunningProxy {
    /// Reads the configuration again, and opens log files anew; one reload after the other.
    ///
    /// - Returns: the settings that changed but wait for a restart.
    /// - Throws: the file's problems, or those of a file that says who clients are, or that the access
    ///   log cannot be opened; then every setting stays as it was.
    @discardableResult
    func reload() async throws(ConfigurationError) -> [String] {
        let former = self.lastReload
        let reload = Task { () async -> Result<[String], ConfigurationError> in
            // Each waits for the log: what an older file says would come into force last.
            _ = await former?.value
            do throws(ConfigurationError) {
                return .success(try await self.reloadAlone())
            } catch {
                return .failure(error)
            }
        }
        self.lastReload = reload
        return try await reload.value.get()
    }

    /// Reads the configuration again, from the file that it was read from before.
    private func readSameFile() throws(ConfigurationError) -> LoadedSettings {
        let loaded = try self.readAgain()
        // Without it the defaults, or another file, would open what its rules close.
        guard let file = self.loaded.file, loaded.file != file else { return loaded }
        let other = loaded.file.map { "the file \($0)" } ?? "the defaults"
        throw ConfigurationError(problems: [
            ConfigurationProblem(
                file: file,
                message: "not where it was, so that \(other) would apply; put it back, or restart "
                    + "to use \(other)")
        ])
    }

    private func reloadAlone() async throws(ConfigurationError) -> [String] {
        let loaded: LoadedSettings
        let clients: [PreparedClients]
        do throws(ConfigurationError) {
            loaded = try self.readSameFile()
            // Before anything follows: new access rules would judge the old users.
            clients = try self.readClients(of: loaded)
            // Of what takes force, this alone may fail.
            try await self.followLog(of: loaded)
        } catch {
            // A rotation has moved the log away, whatever the file says.
            try? await self.accessLog?.change(
                from: self.loaded.settings.log, to: self.loaded.settings.log)
            throw error
        }
        self.loaded.file = loaded.file
        let fresh = loaded.settings
        let old = self.loaded.settings
        for warning in loaded.warnings { Self.tell(warning, log: self.log) }
        // Before there is another secret in memory.
        if !CoreDumps.tighten(fresh) { self.log.warning(CoreDumps.notForbidden) }
        let unopened = self.routes.missing(fresh.routes)
        let waiting = SettingsTable.needingRestart(from: old, to: fresh, unopened: unopened)
        let holds = !self.followAccess(of: loaded, unopened: unopened)
        self.level.set(fresh.log.level)
        self.loaded.settings.timeouts.drain = fresh.timeouts.drain
        let share = fresh.limits.connectionsPerClient
        self.loaded.settings.limits.connectionsPerClient = share
        self.proxy.follow(maximumConnectionsPerClient: share)
        self.followPolicies(of: loaded, holdsCredentials: holds)
        for client in clients {
            client.listener.authenticator.follow(client.prepared)
            guard let settings = client.settings else { continue }
            self.loaded.settings.follow(settings, at: client.listener.address)
        }
        self.log.notice(
            "configuration reloaded",
            metadata: waiting.isEmpty
                ? [:] : ["waiting-for-restart": "\(waiting.joined(separator: ", "))"])
        return waiting
    }

    /// Writes the access log as a newer file has it, to a file that is opened anew.
    private func followLog(of fresh: LoadedSettings) async throws(ConfigurationError) {
        do throws(LogError) {
            try await self.accessLog?.change(
                from: self.loaded.settings.log, to: fresh.settings.log)
            self.loaded.settings.log = fresh.settings.log
        } catch {
            throw ConfigurationError(problems: [fresh.problem(at: "log.access.to", "\(error)")])
        }
    }

    /// Has every session follow the rules that may change while it runs.
    ///
    /// - Parameter holdsCredentials: who gets which of the session's credentials stays as it was.
    private func followPolicies(of fresh: LoadedSettings, holdsCredentials: Bool) {
        self.loaded.settings.cacheRules = fresh.settings.cacheRules
        self.loaded.settings.presets = fresh.settings.presets
        self.loaded.settings.presetDirectory = fresh.settings.presetDirectory
        if !holdsCredentials { self.loaded.settings.injections = fresh.settings.injections }
        self.loaded.cacheRules = fresh.cacheRules
        self.loaded.followOrigins(of: fresh, holdsInjections: holdsCredentials)
        let now = SystemClock().now()
        for index in self.loaded.settings.sessions.indices {
            let old = self.loaded.settings.sessions[index]
            guard let new = fresh.settings.session(named: old.name) else { continue }
            var changed = old.followingLive(new)
            if holdsCredentials { changed.credentials = old.credentials }
            self.loaded.settings.sessions[index] = changed
            let member = self.members.first { $0.settings.name == old.name }
            member?.open.follow(self.loaded.blueprint(of: changed), at: now)
        }
    }

    /// Puts other rules about clients and routes into force, unless they could open what the same
    /// file closes, or lead to what is not open.
    ///
    /// - Returns: whether it has.
    private func followAccess(of fresh: LoadedSettings, unopened: [SessionName]) -> Bool {
        if let warning = self.loaded.waitingAccessWarning(for: fresh, unopened: unopened) {
            Self.tell(warning, log: self.log)
            return false
        }
        // Before the rules: whom those let in is to find its session.
        self.routes.replace(by: fresh.settings.routes)
        self.access.replace(by: fresh.settings)
        self.loaded.settings.routes = fresh.settings.routes
        self.loaded.settings.access = fresh.settings.access
        self.loaded.settings.connectPorts = fresh.settings.connectPorts
        return true
    }

    /// What a listener is to know its clients by.
    private struct PreparedClients {
        let listener: AuthenticatedListener
        let prepared: FileAuthenticator.Prepared
        /// nil: those that are in force already.
        let settings: AuthenticationSettings?
    }

    /// Reads anew the files that say who the clients are.
    ///
    /// A listener that asks nobody any more, which waits for a restart, keeps the files that it has;
    /// what is wrong with one of those is no reason to refuse the rest.
    private func readClients(
        of fresh: LoadedSettings
    ) throws(ConfigurationError) -> [PreparedClients] {
        var clients: [PreparedClients] = []
        var problems: [ConfigurationProblem] = []
        for listener in self.authenticators {
            let index = fresh.settings.listeners.firstIndex { $0.address == listener.address }
            let settings = index.map { fresh.settings.listeners[$0].authentication }
            let asks = settings?.isDemanded == true
            do throws(CredentialFileError) {
                let prepared = try listener.authenticator.prepare(
                    from: asks ? settings.map { FileAuthenticator.Files($0) } : nil)
                clients.append(
                    PreparedClients(
                        listener: listener, prepared: prepared, settings: asks ? settings : nil))
            } catch {
                if asks, let index {
                    problems.append(fresh.problem(with: error, ofListener: index))
                } else {
                    self.log.error("clients stay as they were", metadata: ["cause": "\(error)"])
                }
            }
        }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
        return clients
    }
}
