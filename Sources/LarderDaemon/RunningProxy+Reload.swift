import LarderConfig
import LarderControl
import LarderEngine
import LarderProxy
import Logging

// What of a newer file a proxy takes over while it runs.
extension RunningProxy {
    /// Reads the configuration again, and opens log files anew.
    ///
    /// One reload after the other. A control socket that was deleted is made anew first.
    ///
    /// - Returns: the settings that changed but wait for a restart, and what the file is warned of.
    /// - Throws: the file's problems, or those of the files that it names, or that the access log
    ///   cannot be opened; then every setting stays as it was.
    @discardableResult
    func reload() async throws(ConfigurationError) -> ReloadOutcome {
        self.restoreControl()
        let former = self.lastReload
        let reload = Task { () async -> Result<ReloadOutcome, ConfigurationError> in
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

    private func reloadAlone() async throws(ConfigurationError) -> ReloadOutcome {
        let loaded: LoadedSettings
        let files: NamedFiles
        let unopened: [SessionName]
        let held: ConfigurationProblem?
        let clients: [PreparedClients]
        do throws(ConfigurationError) {
            loaded = try self.readSameFile()
            // Also for what waits for a restart, which would be refused for them.
            files = NamedFiles(trying: loaded, isProxy: true)
            guard files.problems.isEmpty else {
                throw ConfigurationError(problems: files.problems)
            }
            unopened = self.routes.missing(loaded.settings.routes)
            held = self.loaded.waitingAccessWarning(for: loaded, unopened: unopened)
            // Before anything follows: new access rules would judge the old users.
            clients = try self.readClients(of: loaded, holds: held != nil)
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
        let warnings = loaded.warnings + files.warnings
        for warning in warnings { Self.tell(warning, log: self.log) }
        // Before there is another secret in memory.
        if !CoreDumps.tighten(fresh) { self.log.warning(CoreDumps.notForbidden) }
        let waiting = SettingsTable.needingRestart(
            from: old, to: fresh, unopened: unopened,
            otherPresets: self.loaded.hasOtherPresets(than: loaded))
        if let held { Self.tell(held, log: self.log) } else { self.followAccess(of: fresh) }
        self.level.set(fresh.log.level)
        self.loaded.settings.timeouts.drain = fresh.timeouts.drain
        let share = fresh.limits.connectionsPerClient
        self.loaded.settings.limits.connectionsPerClient = share
        self.proxy.follow(maximumConnectionsPerClient: share)
        self.followPolicies(of: loaded, holds: held != nil)
        for client in clients {
            client.listener.authenticator.follow(client.prepared)
            guard let settings = client.settings else { continue }
            self.loaded.settings.follow(settings, at: client.listener.address)
        }
        self.log.notice(
            "configuration reloaded",
            metadata: waiting.isEmpty
                ? [:] : ["waiting-for-restart": "\(waiting.joined(separator: ", "))"])
        return ReloadOutcome(
            needingRestart: waiting, warnings: warnings.map(\.description))
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
    /// - Parameter holds: who gets which of the session's credentials, and of what others have left
    ///   there, stays as it was.
    private func followPolicies(of fresh: LoadedSettings, holds: Bool) {
        if !holds {
            self.loaded.settings.cacheRules = fresh.settings.cacheRules
            self.loaded.settings.presets = fresh.settings.presets
            self.loaded.settings.presetDirectory = fresh.settings.presetDirectory
            self.loaded.settings.injections = fresh.settings.injections
            self.loaded.cacheRules = fresh.cacheRules
        }
        self.loaded.followOrigins(of: fresh, holdsRules: holds)
        let now = SystemClock().now()
        for index in self.loaded.settings.sessions.indices {
            let old = self.loaded.settings.sessions[index]
            guard let new = fresh.settings.session(named: old.name) else { continue }
            var changed = old.followingLive(new)
            if holds { changed = changed.keepingAccess(of: old) }
            self.loaded.settings.sessions[index] = changed
            let member = self.members.first { $0.settings.name == old.name }
            member?.open.follow(self.loaded.blueprint(of: changed), at: now)
        }
    }

    /// Puts other rules about clients and routes into force.
    private func followAccess(of fresh: Settings) {
        // Before the rules: whom those let in is to find its session.
        self.routes.replace(by: fresh.routes)
        self.access.replace(by: fresh)
        self.loaded.settings.routes = fresh.routes
        self.loaded.settings.access = fresh.access
        self.loaded.settings.connectPorts = fresh.connectPorts
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
    ///
    /// - Parameter holds: the old access rules stay, and with them the places of the files.
    private func readClients(
        of fresh: LoadedSettings, holds: Bool
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
                if holds, asks, let settings, let older = self.demand(of: listener),
                    !older.hasFiles(of: settings)
                {
                    // The others were read all the same: what is wrong with them is told now.
                    let kept = self.readHeldFiles(of: listener, settings.keepingFiles(of: older))
                    if let kept { clients.append(kept) }
                    continue
                }
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

    /// What a listener that asks its clients goes by until now.
    private func demand(of listener: AuthenticatedListener) -> AuthenticationSettings? {
        self.loaded.settings.listeners.first {
            $0.address == listener.address && $0.authentication.isDemanded
        }?.authentication
    }

    /// Reads anew the files that a listener keeps as access rules stay: who was taken out of them is
    /// let in no more.
    ///
    /// - Returns: nil where they cannot be had any more; the clients stay as they were.
    private func readHeldFiles(
        of listener: AuthenticatedListener, _ settings: AuthenticationSettings
    ) -> PreparedClients? {
        do throws(CredentialFileError) {
            let files = FileAuthenticator.Files(settings)
            return PreparedClients(
                listener: listener, prepared: try listener.authenticator.prepare(from: files),
                settings: settings)
        } catch {
            self.log.error("clients stay as they were", metadata: ["cause": "\(error)"])
            return nil
        }
    }
}
