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

/// A proxy that serves: its sessions, its listeners, its log, its control sockets.
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

    /// A control socket, and what serves it.
    private struct ServedControl {
        let server: ControlServer
        let task: Task<Void, Never>
    }

    let log: Logger
    var loaded: LoadedSettings
    let members: [RunningSession]
    let proxy: ProxyServer
    let access: ConfiguredAccess
    let routes: SessionRoutes
    let authenticators: [AuthenticatedListener]
    let accessLog: ProxyLog?
    let level: DaemonLog.Level
    let readAgain: @Sendable () throws(ConfigurationError) -> LoadedSettings
    let started: Timestamp
    /// Where clients connect to, with the ports that were really taken.
    let listeners: [LarderProxy.ListenAddress]
    private let group: MultiThreadedEventLoopGroup
    /// None, one, or a further one for a path with links.
    private var controls: [ServedControl] = []
    /// Those of sockets that were deleted.
    private var formerControlTasks: [Task<Void, Never>] = []
    private var isStopping = false
    /// The reload that was asked for last.
    var lastReload: Task<Result<ReloadOutcome, ConfigurationError>, Never>?

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
            await proxy.takeUpTransfers()
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

    /// Goes on with what background sessions had under way.
    private func takeUpTransfers() async {
        for member in self.members {
            member.open.askForTransfers { [proxy = self.proxy] requester, uri in
                proxy.leave(for: requester, to: uri)
            }
        }
        for member in self.members { await member.open.takeUpTransfers() }
    }

    static func tell(_ warning: ConfigurationProblem, log: Logger) {
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
        summary.misses = counters.forwarded
        summary.collapsed = counters.collapsed
        let door = self.proxy.statistics()
        summary.tunnels = door.tunnels
        summary.refused = door.ownAnswers[StatusCode(403)] ?? 0
        summary.failures = counters.failed
        summary.bytesSaved = counters.bytesFromStore
        summary.bytesServed = counters.bytesServed
        return summary
    }

    private func openControl(_ loaded: LoadedSettings, options: Options) throws(DaemonError) {
        guard options.hasControl else { return }
        do throws(ControlError) {
            self.controls.append(try self.serveControl(at: loaded.controlSockets))
        } catch {
            // A container may have no place for it, and serves all the same.
            if error.code != .inUse, loaded.settings.controlSocket == nil {
                self.log.warning(
                    "no control socket: no command finds this proxy",
                    metadata: [
                        "cause": "\(error)", "remedy": "give control.socket a path",
                    ])
                return
            }
            throw DaemonError(
                error.code == .inUse ? .unavailable : .cannotCreate,
                "\(error); "
                    + (error.code == .inUse ? "stop the other proxy, or " : "")
                    + "give control.socket another path")
        }
        self.openFurtherControl(at: loaded.furtherControlSockets)
    }

    /// Has commands find the proxy also when the links in the path of its configuration lead elsewhere.
    private func openFurtherControl(at paths: [String]) {
        guard !paths.isEmpty else { return }
        do throws(ControlError) {
            self.controls.append(try self.serveControl(at: paths))
        } catch {
            // One that was started by the same path before its links changed may still run: both may.
            self.log.warning(
                "no further control socket: commands may not find this proxy once links change",
                metadata: ["cause": "\(error)", "remedy": "give control.socket a path"])
        }
    }

    private func serveControl(at paths: [String]) throws(ControlError) -> ServedControl {
        let server = try ControlServer(paths: paths, group: self.group, responder: self)
        return ServedControl(server: server, task: Task { try? await server.run() })
    }

    /// Makes control sockets whose files somebody has deleted anew, where they were.
    func restoreControl() {
        guard !self.isStopping else { return }
        for (index, former) in self.controls.enumerated() where !former.server.isFound {
            let path = former.server.path
            do throws(ControlError) {
                self.controls[index] = try self.serveControl(at: [path])
                former.task.cancel()
                self.formerControlTasks.append(former.task)
                self.log.notice(
                    "the control socket was gone, and was made anew", metadata: ["path": "\(path)"])
            } catch {
                self.log.error(
                    "the control socket is gone: no command finds this proxy there",
                    metadata: ["path": "\(path)", "cause": "\(error)"])
            }
        }
    }

    /// Stops listening, lets exchanges end until the deadline, and closes everything.
    ///
    /// May be called again meanwhile with a nearer deadline, which then counts.
    func stop(within deadline: Duration) async {
        self.isStopping = true
        let begin = ContinuousClock.now
        await self.proxy.drain(within: deadline)
        for control in self.controls { control.task.cancel() }
        for member in self.members { await member.open.close() }
        // Not before: a command may wait for a cache, which answers it at the latest when it closes.
        for task in self.formerControlTasks { await task.value }
        for control in self.controls { await control.task.value }
        for listener in self.authenticators { await listener.authenticator.close() }
        await self.accessLog?.close(within: deadline - (ContinuousClock.now - begin))
        try? await self.group.shutdownGracefully()
    }

    /// Ends running exchanges at once: for the second signal.
    nonisolated func hurry() async {
        await self.proxy.drain(within: .zero)
    }

    /// How long exchanges may go on after the end has been asked for.
    var drainTime: Duration { self.loaded.settings.timeouts.drain.duration }
}
