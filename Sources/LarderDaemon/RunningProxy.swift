import LarderConfig
import LarderControl
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderProxy
import LarderSession
import LarderStore
import LarderTransfer
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// A proxy that serves: its sessions, its listeners, its log, its control socket.
///
/// ```
/// start ─▶ running ─▶ stop (drain, close sessions, end threads)
/// ```
actor RunningProxy {
    /// What differs between a service and a proxy for one command.
    struct Options: Sendable {
        /// In place of the configured listeners.
        var listeners: [ListenerSettings]?
        /// Sockets that listen already, at addresses that listeners have.
        var inherited = InheritedSockets.none
        /// Do without the disk tier where another process owns it.
        var yieldsDisk = false
        /// Answer commands on the control socket.
        var hasControl = true
        /// Write the access log that the configuration asks for.
        var hasAccessLog = true
        /// In place of the configured parents.
        var parents: ParentRules?
        /// Asked now and then while a cache file is looked at whole, which may take long.
        var mayGoOn: @Sendable () -> Bool = { true }

        init() {}
    }

    /// A session that is in use.
    struct RunningSession: Sendable {
        let settings: SessionSettings
        let open: OpenSession
        let trouble: DiskTroubleNote

        var session: Session { self.open.session }
        /// The sessions of all principals in memory; one where the session is not split.
        var sessions: [Session] { self.open.residentPrincipals.map(\.session) }
        /// Whether there may be principals beside those in memory.
        var isSplit: Bool { self.settings.principals != .none }
    }

    /// A listener that asks its clients who they are.
    struct AuthenticatedListener: Sendable {
        let address: LarderConfig.ListenAddress
        let authenticator: FileAuthenticator
    }

    let log: Logger
    var loaded: LoadedSettings
    let members: [RunningSession]
    let proxy: ProxyServer
    let access: ConfiguredAccess
    let routes: SessionRoutes
    private let authenticators: [AuthenticatedListener]
    let accessLog: ProxyLog?
    private let level: DaemonLog.Level
    private let readAgain: @Sendable () throws(ConfigurationError) -> LoadedSettings
    let started: Timestamp
    /// Where clients connect to, with the ports that were really taken.
    let listeners: [LarderProxy.ListenAddress]
    private let group: MultiThreadedEventLoopGroup
    private var control: ControlServer?
    private var controlTask: Task<Void, Never>?
    /// The reload that was asked for last.
    private var lastReload: Task<Result<[String], ConfigurationError>, Never>?

    /// Opens everything; clients are served when this returns.
    ///
    /// - Throws: `DaemonError`, with everything closed that was opened until then.
    static func start(
        _ loaded: LoadedSettings, options: Options = Options(), log: Logger,
        level: DaemonLog.Level,
        reload: @escaping @Sendable () throws(ConfigurationError) -> LoadedSettings
    ) async throws(DaemonError) -> RunningProxy {
        let group = MultiThreadedEventLoopGroup(
            numberOfThreads: loaded.settings.eventLoops ?? UsableProcessors.count)
        for warning in loaded.warnings { Self.tell(warning, log: log) }
        var parts = ProxyParts(group: group)
        do throws(DaemonError) {
            try await parts.open(loaded, options: options, log: log)
            let proxy = try RunningProxy(
                loaded, parts: parts, log: log, level: level, reload: reload)
            try await proxy.openControl(loaded, options: options)
            return proxy
        } catch {
            await parts.close()
            throw error
        }
    }

    private init(
        _ loaded: LoadedSettings, parts: ProxyParts, log: Logger,
        level: DaemonLog.Level,
        reload: @escaping @Sendable () throws(ConfigurationError) -> LoadedSettings
    ) throws(DaemonError) {
        guard let proxy = parts.proxy, let access = parts.access, let routes = parts.routes else {
            throw DaemonError(.software, "the proxy was not put together; report this")
        }
        self.log = log
        self.loaded = loaded
        self.members = parts.members
        self.proxy = proxy
        self.access = access
        self.routes = routes
        self.authenticators = parts.authenticators
        self.accessLog = parts.accessLog
        self.readAgain = reload
        self.level = level
        self.listeners = parts.listeners
        self.group = parts.group
        self.started = SystemClock().now()
    }

    private static func tell(_ warning: ConfigurationProblem, log: Logger) {
        log.warning("configuration warning", metadata: ["cause": "\(warning)"])
    }

    /// Clients connected now.
    nonisolated var openConnections: Int { self.proxy.openConnections }

    /// Where clients connect and where the caches lie, in a line.
    var announcement: String {
        let addresses = self.listeners.map { "\($0)" }.joined(separator: ", ")
        let caches = self.members.map { member in
            let name = member.settings.name.text
            guard let directory = member.open.directory else { return "\(name) in memory" }
            return "\(name) in \(directory)"
        }
        return "listening on \(addresses); cache: \(caches.joined(separator: ", "))"
    }

    /// The first listener, as the environment variables of clients name it.
    var url: String {
        self.listeners.first.map { "http://\($0)" } ?? ""
    }

    /// What was done since the start, for a person.
    func summary() -> ProxySummary {
        let counters = self.counters()
        var summary = ProxySummary()
        summary.requests = counters.requests
        summary.hits = counters.hits &+ counters.validated
        summary.misses = counters.forwarded &+ counters.collapsed
        let door = self.proxy.statistics()
        summary.tunnels = door.tunnels
        summary.refused = door.ownAnswers[StatusCode(403)] ?? 0
        summary.failures = counters.failed
        summary.bytesSaved = counters.bytesFromStore
        summary.bytesServed = counters.bytesFromStore &+ counters.bytesFromOrigins
        return summary
    }

    private func openControl(_ loaded: LoadedSettings, options: Options) throws(DaemonError) {
        guard options.hasControl else { return }
        do throws(ControlError) {
            let control = try ControlServer(
                paths: loaded.controlSockets, group: self.group, responder: self)
            self.control = control
            self.controlTask = Task { try? await control.run() }
        } catch {
            throw DaemonError(
                error.code == .inUse ? .unavailable : .cannotCreate,
                "\(error); "
                    + (error.code == .inUse ? "stop the other proxy, or " : "")
                    + "give control.socket another path")
        }
    }

    /// Stops listening, lets exchanges end until the deadline, and closes everything.
    ///
    /// May be called again meanwhile with a nearer deadline, which then counts.
    func stop(within deadline: Duration) async {
        let begin = ContinuousClock.now
        await self.proxy.drain(within: deadline)
        self.controlTask?.cancel()
        for member in self.members { await member.open.close() }
        // Not before: a command may wait for a cache, which answers it at the latest when it closes.
        await self.controlTask?.value
        for listener in self.authenticators { await listener.authenticator.close() }
        await self.accessLog?.close(within: deadline - (ContinuousClock.now - begin))
        try? await self.group.shutdownGracefully()
    }

    /// Ends running exchanges at once: for the second signal.
    nonisolated func hurry() async {
        await self.proxy.drain(within: .zero)
    }

    /// Reads the configuration again, and opens log files anew; one reload after the other.
    ///
    /// - Returns: the settings that changed but wait for a restart.
    /// - Throws: the file's problems, or those of a file that says who clients are; then every
    ///   setting stays as it was.
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
        var waiting = SettingsTable.needingRestart(from: old, to: fresh)
        do throws(LogError) {
            try await self.accessLog?.change(from: old.log, to: fresh.log)
            self.loaded.settings.log = fresh.log
        } catch {
            self.log.error("access log stays as it was", metadata: ["cause": "\(error)"])
        }
        self.followAccess(of: loaded)
        self.level.set(fresh.log.level)
        self.loaded.settings.timeouts.drain = fresh.timeouts.drain
        let share = fresh.limits.connectionsPerClient
        self.loaded.settings.limits.connectionsPerClient = share
        self.proxy.follow(maximumConnectionsPerClient: share)
        waiting += self.followRoutes(of: fresh)
        self.followPolicies(of: loaded)
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

    /// Has every session follow the rules that may change while it runs.
    private func followPolicies(of fresh: LoadedSettings) {
        self.loaded.settings.cacheRules = fresh.settings.cacheRules
        self.loaded.settings.presets = fresh.settings.presets
        self.loaded.settings.presetDirectory = fresh.settings.presetDirectory
        self.loaded.settings.injections = fresh.settings.injections
        self.loaded.cacheRules = fresh.cacheRules
        self.loaded.origins = fresh.origins
        let now = SystemClock().now()
        for index in self.loaded.settings.sessions.indices {
            let old = self.loaded.settings.sessions[index]
            guard let new = fresh.settings.session(named: old.name) else { continue }
            let changed = old.followingLive(new)
            self.loaded.settings.sessions[index] = changed
            let member = self.members.first { $0.settings.name == old.name }
            member?.open.follow(self.loaded.blueprint(of: changed), at: now)
        }
    }

    /// Puts other access rules into force, unless they could open what the same file closes.
    private func followAccess(of fresh: LoadedSettings) {
        if let warning = self.loaded.waitingAccessWarning(for: fresh) {
            return Self.tell(warning, log: self.log)
        }
        self.access.replace(by: fresh.settings)
        self.loaded.settings.access = fresh.settings.access
        self.loaded.settings.connectPorts = fresh.settings.connectPorts
    }

    /// Puts other routes into force.
    ///
    /// - Returns: what waits for a restart, because it leads to a session that is not open; then the
    ///   routes stay as they were.
    private func followRoutes(of fresh: Settings) -> [String] {
        let missing = self.routes.replace(by: fresh.routes)
        guard missing.isEmpty else { return ["routes"] }
        self.loaded.settings.routes = fresh.routes
        return []
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

    /// How long exchanges may go on after the end has been asked for.
    var drainTime: Duration { self.loaded.settings.timeouts.drain.duration }
}
