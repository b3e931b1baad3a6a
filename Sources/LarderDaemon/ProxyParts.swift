import Glibc
import LarderConfig
import LarderControl
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderProxy
import LarderSession
import LarderState
import LarderTransfer
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// What a running proxy is made of, while it is being put together.
struct ProxyParts {
    let group: MultiThreadedEventLoopGroup
    var members: [RunningProxy.RunningSession] = []
    var access: ConfiguredAccess?
    var routes: SessionRoutes?
    var authenticators: [RunningProxy.AuthenticatedListener] = []
    var accessLog: ProxyLog?
    var proxy: ProxyServer?
    var listeners: [LarderProxy.ListenAddress] = []

    init(group: MultiThreadedEventLoopGroup) {
        self.group = group
    }

    mutating func open(
        _ loaded: LoadedSettings, options: RunningProxy.Options, log: Logger
    ) async throws(DaemonError) {
        var settings = loaded.settings
        if let listeners = options.listeners {
            // A proxy for one command has one session, wherever routes lead others.
            settings.listeners = listeners
            settings.routes = []
        }
        let listeners = settings.listeners
        try self.openSessions(loaded, reachableBy: settings, options: options, log: log)
        let routes = SessionRoutes(self.members.map(\.place), routes: settings.routes)
        self.routes = routes
        let access = ConfiguredAccess(loaded.settings)
        self.access = access
        let proxy = ProxyServer(
            group: self.group, configuration: Self.configuration(loaded, options, log: log),
            access: access, log: try self.openLog(loaded.settings, options: options, log: log),
            report: { event in
                event.record(to: log)
                Self.prepareAgain(listeners, after: event, log: log)
            },
            clock: { SystemClock().now() })
        self.proxy = proxy
        for listener in listeners {
            try await self.listen(
                listener, inherited: options.inherited, proxy: proxy, routes: routes, log: log)
        }
        options.inherited.warn(
            unlessAmong: listeners.map { LarderProxy.ListenAddress($0.address) }, to: log)
    }

    /// With no more connections than there can be descriptors for.
    private static func configuration(
        _ loaded: LoadedSettings, _ options: RunningProxy.Options, log: Logger
    ) -> ProxyConfiguration {
        var configuration = loaded.proxyConfiguration
        // One command has it all to itself.
        if !options.hasControl { configuration.maximumConnectionsPerClient = nil }
        guard let limit = DescriptorLimit.current else { return configuration }
        let wanted = configuration.maximumConnections
        configuration.maximumConnections = DescriptorLimit.connections(
            wanted, within: limit, besides: DescriptorLimit.open)
        guard configuration.maximumConnections < wanted else { return configuration }
        // One command has hardly that many.
        log.log(
            level: options.hasControl ? .warning : .debug,
            "fewer clients than limits.connections can be connected",
            metadata: [
                "remedy": "raise the limit of open files, or lower limits.connections",
                "limits.connections": "\(wanted)",
                "connections": "\(configuration.maximumConnections)", "open-files": "\(limit)",
            ])
        return configuration
    }

    /// Gives a Unix socket that was made anew its permissions.
    private static func prepareAgain(
        _ listeners: [ListenerSettings], after event: ProxyEvent, log: Logger
    ) {
        guard case .listenerReopened(let address) = event,
            let listener = listeners.first(where: { .init($0.address) == address })
        else { return }
        do throws(DaemonError) {
            try Self.setMode(of: listener)
        } catch {
            log.error("\(error)")
        }
    }

    private mutating func openSessions(
        _ loaded: LoadedSettings, reachableBy reach: Settings, options: RunningProxy.Options,
        log: Logger
    ) throws(DaemonError) {
        let clock = SystemClock()
        let timers = DispatchTimers()
        for settings in loaded.settings.sessions where reach.isReachable(settings.name) {
            let name = settings.name.text
            do throws(EngineError) {
                let trouble = DiskTroubleNote()
                let notices = Mutex(SessionNotices())
                var blueprint = loaded.blueprint(of: settings)
                if let parents = options.parents { blueprint.transfer.parents = parents }
                let open = try OpenSession(
                    blueprint, clock: clock, timers: timers,
                    yieldsDisk: options.yieldsDisk, mayGoOn: options.mayGoOn
                ) { event in
                    let now = clock.now()
                    trouble.note(event, at: now)
                    event.record(session: name, to: log, notices: notices, at: now)
                }
                self.members.append(
                    RunningProxy.RunningSession(settings: settings, open: open, trouble: trouble))
            } catch {
                throw Self.error(error, session: name)
            }
        }
    }

    private static func code(of error: StateError) -> DaemonError.Code {
        switch error.code {
        case .inUse: .unavailable
        case .untrusted, .denied: .notPermitted
        case .wrongKey, .badKeyFile, .damaged, .full, .unavailable: .configuration
        }
    }

    private static func error(_ error: EngineError, session: String) -> DaemonError {
        switch error {
        case .store(let store):
            DaemonError(
                store.code == .untrusted ? .notPermitted : .unavailable,
                "session \(session): \(store.path): \(store.cause); \(store.remedy)")
        case .state(let state):
            DaemonError(Self.code(of: state), "session \(session): \(state)")
        case .transfer(let transfer) where transfer.code == .certificates:
            DaemonError(.configuration, "session \(session): ca-file: \(transfer.detail)")
        case .transfer(let transfer):
            DaemonError(
                .cannotCreate,
                "session \(session): \(transfer.detail); "
                    + (transfer.code == .thread
                        ? NamedThread.remedy : "check the limit of open files"))
        }
    }

    private mutating func openLog(
        _ settings: Settings, options: RunningProxy.Options, log: Logger
    ) throws(DaemonError) -> any ExchangeLog {
        guard options.hasAccessLog else { return NoExchangeLog() }
        do throws(LogError) {
            let accessLog = try ProxyLog(
                settings.log, name: settings.name.text, log: log)
            self.accessLog = accessLog
            return accessLog
        } catch {
            throw DaemonError(
                .cannotCreate,
                "\(error); "
                    + (error.code == ENXIO
                        ? "start its reader first" : "make its directory")
                    + ", or name another file")
        }
    }

    private mutating func listen(
        _ listener: ListenerSettings, inherited: InheritedSockets, proxy: ProxyServer,
        routes: SessionRoutes, log: Logger
    ) async throws(DaemonError) {
        guard self.members.contains(where: { $0.settings.name == listener.session }) else {
            throw DaemonError(
                .configuration,
                "a listener names the session \(listener.session.text), which is not there; name "
                    + "one of the configured sessions")
        }
        let authenticator = try Self.authenticator(of: listener, log: log)
        if let authenticator {
            self.authenticators.append(
                RunningProxy.AuthenticatedListener(
                    address: listener.address, authenticator: authenticator))
        }
        let address = LarderProxy.ListenAddress(listener.address)
        let socket = inherited.descriptor(for: address)
        do throws(ListenError) {
            self.listeners.append(
                try await proxy.listen(
                    on: address, directory: routes.directory(of: listener),
                    options: ListenerOptions(listener, authentication: authenticator),
                    inherited: socket))
        } catch {
            throw Self.error(error, listener.address)
        }
        // Of a socket that was handed over, whoever made it settles who may connect.
        if socket == nil { try Self.setMode(of: listener) }
    }

    static func error(_ error: ListenError, _ address: LarderConfig.ListenAddress) -> DaemonError {
        let cause = "cannot listen on \(address.settingText): \(error.detail)"
        let other = "give the listener another address"
        switch (error.code, address) {
        case (.permissionDenied, .unix):
            return DaemonError(
                .notPermitted, "\(cause); let this user write to its directory, or \(other)")
        case (.permissionDenied, _):
            // Below net.ipv4.ip_unprivileged_port_start, which is 1024 (ip(7)).
            return DaemonError(
                .notPermitted,
                "\(cause): low ports need the right CAP_NET_BIND_SERVICE; give it (for a service: "
                    + "in AmbientCapabilities= and in CapabilityBoundingSet=, which is empty in "
                    + "larder.service), or \(other)")
        case (.badAddress, _): return DaemonError(.unavailable, "\(cause); \(other)")
        case (.notSocket, _):
            return DaemonError(.cannotCreate, "\(cause); see what it is and remove it, or \(other)")
        default:
            return DaemonError(.unavailable, "\(cause); stop whoever listens there, or \(other)")
        }
    }

    /// What asks a listener's clients who they are; nil where it does not.
    private static func authenticator(
        of listener: ListenerSettings, log: Logger
    ) throws(DaemonError) -> FileAuthenticator? {
        guard listener.authentication.isDemanded else { return nil }
        var options = FileAuthenticator.Options()
        options.files = FileAuthenticator.Files(listener.authentication)
        do throws(CredentialFileError) {
            return try FileAuthenticator(options) { $0.record(to: log) }
        } catch {
            throw DaemonError(.configuration, "\(error)")
        }
    }

    /// Gives a Unix socket its permissions: until here it has those of them that the umask left it.
    private static func setMode(of listener: ListenerSettings) throws(DaemonError) {
        guard case .unix(let path) = listener.address else { return }
        guard unsafe chmod("\(path)", mode_t(listener.mode.bits)) == 0 else {
            throw DaemonError(
                .notPermitted,
                "cannot give \(path) its mode: \(SystemError.text(errno)); name another path")
        }
    }

    /// Closes what was opened, after a failed start.
    func close() async {
        await self.proxy?.drain(within: .zero)
        for member in self.members { await member.open.close() }
        for door in self.authenticators { await door.authenticator.close() }
        await self.accessLog?.close()
        try? await self.group.shutdownGracefully()
    }
}

extension RunningProxy.RunningSession {
    /// Where routes lead to it.
    fileprivate var place: SessionRoutes.Place {
        let open = self.open
        return SessionRoutes.Place(
            name: self.settings.name, principals: self.settings.principals
        ) { open.part(of: $0) }
    }
}
