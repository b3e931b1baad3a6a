import Glibc
import LarderConfig
import LarderControl
import LarderDisk
import LarderEngine
import LarderPolicy
import LarderProxy
import LarderSession
import Logging
import NIOCore
import NIOPosix

/// What a running proxy is made of, while it is being put together.
struct ProxyParts {
    let group: MultiThreadedEventLoopGroup
    var members: [RunningProxy.Member] = []
    var access: ConfiguredAccess?
    var accessLog: ProxyLog?
    var proxy: ProxyServer?
    var listeners: [LarderProxy.ListenAddress] = []

    init(group: MultiThreadedEventLoopGroup) {
        self.group = group
    }

    mutating func open(
        _ loaded: LoadedSettings, options: RunningProxy.Options, log: Logger
    ) async throws(DaemonError) {
        let listeners = options.listeners ?? loaded.settings.listeners
        try self.openSessions(loaded, named: listeners.map(\.session), options: options, log: log)
        let access = ConfiguredAccess(loaded.settings)
        self.access = access
        let proxy = ProxyServer(
            group: self.group, configuration: loaded.proxyConfiguration, access: access,
            log: try self.openLog(loaded.settings, options: options, log: log),
            clock: { SystemClock().now() })
        self.proxy = proxy
        for listener in listeners {
            try await self.listen(listener, proxy: proxy)
        }
    }

    private mutating func openSessions(
        _ loaded: LoadedSettings, named names: [SessionName], options: RunningProxy.Options,
        log: Logger
    ) throws(DaemonError) {
        let clock = SystemClock()
        let timers = DispatchTimers()
        for settings in loaded.settings.sessions where names.contains(settings.name) {
            let name = settings.name.text
            do throws(EngineError) {
                let open = try OpenSession(
                    loaded.blueprint(of: settings), clock: clock, timers: timers,
                    yieldsDisk: options.yieldsDisk
                ) { event in
                    Self.tell(event, session: name, log: log)
                }
                self.members.append(RunningProxy.Member(settings: settings, open: open))
            } catch {
                throw Self.error(error, session: name)
            }
        }
    }

    private static func error(_ error: EngineError, session: String) -> DaemonError {
        switch error {
        case .store(let store):
            DaemonError(
                .unavailable,
                "session \(session): \(store.path): \(store.cause); \(store.remedy)")
        case .transfer(let transfer):
            DaemonError(
                .cannotCreate,
                "session \(session): \(transfer); check ca-file and the limit of open files")
        }
    }

    private static func tell(_ event: EngineEvent, session: String, log: Logger) {
        switch event {
        case .withoutDisk(let error):
            log.warning(
                "caching in memory only",
                metadata: [
                    "session": "\(session)", "path": "\(error.path)", "cause": "\(error.cause)",
                    "remedy": "\(error.remedy)",
                ])
        case .disk(.setAside(let name, let reason)):
            log.warning(
                "cache file set aside, a new one made",
                metadata: ["session": "\(session)", "name": "\(name)", "reason": "\(reason)"])
        case .disk(.asideRemoved(let name, let bytes)):
            log.notice(
                "older cache file that was set aside removed",
                metadata: ["session": "\(session)", "name": "\(name)", "bytes": "\(bytes)"])
        case .disk(.lost(let reason)):
            log.warning(
                "cache file lost, a new one made",
                metadata: ["session": "\(session)", "reason": "\(reason)"])
        case .disk(.shrunk(let report)):
            log.notice(
                "cache file made smaller, as its capacity was",
                metadata: [
                    "session": "\(session)", "before": "\(report.before)",
                    "after": "\(report.after)",
                ])
        case .disk(.notShrunk(let error)):
            log.warning(
                "cache file stays larger than its capacity for now",
                metadata: [
                    "session": "\(session)", "path": "\(error.path)", "cause": "\(error.cause)",
                    "remedy": "\(error.remedy)",
                ])
        case .disk(.damaged(let key, let reason)):
            log.warning(
                "damaged entry dropped",
                metadata: [
                    "session": "\(session)", "uri": "\(key?.parts.uri ?? "")",
                    "reason": "\(reason)",
                ])
        case .disk(.failed(let error)):
            log.warning(
                "nothing is stored on disk for now",
                metadata: [
                    "session": "\(session)", "path": "\(error.path)", "cause": "\(error.cause)",
                    "remedy": "\(error.remedy)",
                ])
        case .disk(.recovered):
            log.notice("storing on disk again", metadata: ["session": "\(session)"])
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
                .cannotCreate, "\(error); make its directory, or name another file")
        }
    }

    private mutating func listen(_ listener: ListenerSettings, proxy: ProxyServer)
        async throws(DaemonError)
    {
        guard let member = self.members.first(where: { $0.settings.name == listener.session })
        else {
            throw DaemonError(
                .configuration,
                "a listener names the session \(listener.session.text), which is not there; name "
                    + "one of the configured sessions")
        }
        do throws(ListenError) {
            let address = LarderProxy.ListenAddress(listener.address)
            self.listeners.append(
                try await proxy.listen(
                    on: address, session: member.session, options: ListenerOptions(listener)))
        } catch {
            throw DaemonError(
                .unavailable,
                "cannot listen on \(listener.address.settingText): \(error.detail); stop whoever "
                    + "listens there, or give the listener another address")
        }
        try Self.setMode(of: listener)
    }

    /// Gives a Unix socket its permissions: until here it has those that the umask left it.
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
        await self.accessLog?.close()
        try? await self.group.shutdownGracefully()
    }
}
