import Glibc
package import LarderConfig
import LarderEngine
import LarderHTTP
import Logging

/// The proxy as a whole: settings in, a running proxy out.
package enum Daemon {
    /// Serves until told to stop by SIGTERM or SIGINT, and then drains; a second signal ends it at
    /// once.
    ///
    /// Once all listeners are open standard error gets one line for people: where clients connect and where
    /// the caches lie.
    ///
    /// - Parameter reload: reads the configuration again, for SIGHUP and `ControlRequest.reload`.
    /// - Throws: what keeps it from starting: a port in use, a log that cannot be opened.
    @concurrent
    package static func serve(
        _ loaded: LoadedSettings,
        reload: @escaping @Sendable () throws(ConfigurationError) -> LoadedSettings
    ) async throws(DaemonError) {
        let level = DaemonLog.Level(loaded.settings.log.level)
        let messages = DaemonLog(level)
        try await messages.closing { () async throws(DaemonError) in
            try await Self.serve(loaded, messages, level, reload: reload)
        }
    }

    private static func serve(
        _ loaded: LoadedSettings, _ messages: DaemonLog, _ level: DaemonLog.Level,
        reload: @escaping @Sendable () throws(ConfigurationError) -> LoadedSettings
    ) async throws(DaemonError) {
        let log = messages.logger
        Self.guardMemory(loaded.settings, log)
        DescriptorLimit.raise()
        // Before anything is opened: a signal that comes while it starts is not lost.
        let start = StartWatch()
        SignalThread.bound(Self.lastTime)
        let signals = SignalSource.signals([SIGTERM, SIGINT, SIGHUP]) { signal in
            if signal != SIGHUP { start.end() }
        }
        var options = RunningProxy.Options()
        options.mayGoOn = { start.mayGoOn(at: .now) }
        options.inherited = InheritedSockets.taken()
        let proxy: RunningProxy
        do throws(DaemonError) {
            proxy = try await RunningProxy.start(
                loaded, options: options, log: log, level: level, reload: reload)
        } catch {
            guard start.isEnded else { throw error }
            return log.notice("stopped before it served", metadata: ["cause": "\(error)"])
        }
        messages.say(await proxy.announcement)
        ServiceManager.tell("READY=1")
        await Self.run(proxy, until: signals, log)
    }

    /// Before there is a secret in it.
    private static func guardMemory(_ settings: Settings, _ log: Logger) {
        guard !CoreDumps.settle(settings) else { return }
        log.warning(CoreDumps.notForbidden)
    }

    /// Serves until a signal ends it, and then drains; another signal cuts that short.
    private static func run(
        _ proxy: RunningProxy, until signals: AsyncStream<CInt>, _ log: Logger
    ) async {
        for await signal in signals {
            guard signal == SIGHUP else { break }
            ServiceManager.tell(ServiceManager.reloading())
            await Self.reload(proxy, log)
            ServiceManager.tell("READY=1")
        }
        ServiceManager.tell("STOPPING=1")
        log.notice("stopping", metadata: ["connections": "\(proxy.openConnections)"])
        let stopping = Task { await proxy.stop(within: await proxy.drainTime) }
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        Task {
            await stopping.value
            end.yield(true)
        }
        let hearing = Task {
            for await signal in signals where signal != SIGHUP {
                Task { await proxy.hurry() }
                end.yield(await BoundedWait.ended(stopping, within: Self.closingTime))
            }
        }
        let isClosed = await ends.first { _ in true } ?? true
        hearing.cancel()
        if !isClosed { log.warning("ended before everything was closed") }
    }

    /// In seconds; then SIGALRM ends the process (alarm(2)), whatever keeps it from ending by itself.
    private static let lastTime: UInt32 = 5

    /// What is left for closing files after the second signal; what is committed needs none.
    private static let closingTime = Duration.seconds(1)

    private static func reload(_ proxy: RunningProxy, _ log: Logger) async {
        do throws(ConfigurationError) {
            try await proxy.reload()
        } catch {
            log.error("configuration not reloaded", metadata: ["cause": "\(error)"])
        }
    }

    /// Runs a proxy on a free port of loopback for as long as `body` takes.
    ///
    /// It listens to no signal, opens no control socket, and writes no access log. Whoever can
    /// connect to loopback can use it: where the access rules, which are for other listeners, let no
    /// client of loopback in, it does, but to what they deny to everybody.
    ///
    /// - Parameters:
    ///   - session: one of the configuration's.
    ///   - entries: of the caller's environment, `NAME=VALUE`, whose proxies are the parents where
    ///     the configuration names none.
    /// - Returns: what `body` returned, and what the proxy did meanwhile, once it has drained.
    @concurrent
    package static func withProxy<Result: Sendable>(
        _ loaded: LoadedSettings, session: SessionName, entries: [[UInt8]],
        _ body: @Sendable (TemporaryProxy) async throws -> Result
    ) async throws -> (result: Result, summary: ProxySummary) {
        try Self.checkPrincipals(of: session, loaded)
        var loaded = loaded
        loaded.settings.access = loaded.settings.access.admitting(
            ClientFacts(address: Self.loopback))
        let level = DaemonLog.Level(.warning)
        let messages = DaemonLog(level)
        return try await messages.closing {
            try await Self.withProxy(loaded, messages.logger, level, session, entries, body)
        }
    }

    private static func withProxy<Result: Sendable>(
        _ loaded: LoadedSettings, _ log: Logger, _ level: DaemonLog.Level, _ session: SessionName,
        _ entries: [[UInt8]], _ body: @Sendable (TemporaryProxy) async throws -> Result
    ) async throws -> (result: Result, summary: ProxySummary) {
        Self.guardMemory(loaded.settings, log)
        var options = RunningProxy.Options()
        options.listeners = [
            ListenerSettings(address: .ip(Self.loopback, port: 0))
        ]
        options.listeners?[0].session = session
        options.yieldsDisk = true
        options.hasControl = false
        options.hasAccessLog = false
        let environment = ProxyEnvironment(entries: entries)
        if loaded.settings.parents.isEmpty {
            try Self.check(environment)
            // Programs send what is https by tunnels, and hardly anything else.
            options.parents = environment.rules(tunnels: .https)
        }
        let proxy = try await RunningProxy.start(loaded, options: options, log: log, level: level) {
            () throws(ConfigurationError) in loaded
        }
        let result: Swift.Result<Result, any Error>
        do {
            var temporary = TemporaryProxy(url: await proxy.url)
            temporary.exceptions = environment.remoteExceptions
            result = .success(try await body(temporary))
        } catch {
            result = .failure(error)
        }
        let summary = await proxy.summary()
        await proxy.stop(within: loaded.settings.timeouts.drain.duration)
        return (try result.get(), summary)
    }

    /// Who is not told now would be told with each answer, and not which variable it is.
    private static func check(_ environment: ProxyEnvironment) throws(DaemonError) {
        let names = environment.unusable
        guard !names.isEmpty else { return }
        // Not what it says: that may have a password in it.
        throw DaemonError(
            .configuration,
            "the environment's \(names.joined(separator: ", ")) names no proxy that can be used; write "
                + "it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, or unset it")
    }

    private static let loopback = IPAddress(.v4, 0x7F00_0001)

    /// Whether a command can have a part of a session: who else connects to its proxy, which asks
    /// nobody who they are, would have that part, too.
    private static func checkPrincipals(
        of name: SessionName, _ loaded: LoadedSettings
    ) throws(DaemonError) {
        guard let session = loaded.settings.session(named: name) else { return }
        switch session.principals {
        case .none, .address: break
        case .user, .uid:
            throw DaemonError(
                .configuration,
                "session \(name.text) is split by \(session.principals.rawValue), and the proxy for "
                    + "one command cannot tell who its clients are; name another session, or lead "
                    + "the command to \"larder serve\"")
        }
    }
}

/// A proxy that runs for one command.
package struct TemporaryProxy: Sendable, Equatable {
    /// Where it listens: `http://127.0.0.1:PORT`.
    package var url: String
    /// The hosts that the caller's environment wants to be reached without any proxy, but for this
    /// machine; bytes, as names need not be UTF-8.
    package var exceptions: [[UInt8]] = []

    package init(url: String) {
        self.url = url
    }
}

/// What a proxy did for one command.
package struct ProxySummary: Sendable, Equatable {
    package var requests: UInt64 = 0
    /// Answered from the cache, validated ones included.
    package var hits: UInt64 = 0
    package var misses: UInt64 = 0
    /// Answered by the fetch of another request.
    package var collapsed: UInt64 = 0
    package var tunnels: UInt64 = 0
    package var failures: UInt64 = 0
    /// Denied by the access rules, tunnels among them.
    package var refused: UInt64 = 0
    /// Body bytes that came from the cache instead of an origin.
    package var bytesSaved: UInt64 = 0
    package var bytesServed: UInt64 = 0

    package init() {}
}

/// Why the proxy could not start or go on.
package struct DaemonError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of remedy helps; each becomes an exit status.
    package enum Code: Sendable, Equatable {
        /// An address is taken, or another proxy runs with this configuration.
        case unavailable
        /// A directory, file or port that we may not use.
        case notPermitted
        /// A directory, file or socket could not be made.
        case cannotCreate
        case configuration
        case software
    }

    package var code: Code
    /// One line: the cause, and after a semicolon what to do about it.
    package var description: String

    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
