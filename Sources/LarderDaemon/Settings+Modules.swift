package import LarderConfig
import LarderDisk
package import LarderEngine
import LarderHTTP
import LarderPolicy
package import LarderProxy
import LarderSession
import LarderStore
import LarderTransfer

// Only here do the settings of the file become the configurations of the modules.

extension LoadedSettings {
    /// What the door to clients is told.
    package var proxyConfiguration: ProxyConfiguration {
        let settings = self.settings
        var proxy = ProxyConfiguration()
        proxy.name = settings.name.text
        proxy.pseudonym = ProxyConfiguration.drawnPseudonym(for: settings.name.text)
        proxy.headLimits = HeadLimits(
            startLine: ByteCount(settings.limits.requestLine).clamped,
            head: ByteCount(settings.limits.head).clamped,
            fieldCount: settings.limits.fieldCount)
        proxy.chunkLimits.extensions = ByteCount(settings.limits.chunkExtension).clamped
        proxy.chunkLimits.trailers = proxy.headLimits.head
        proxy.chunkLimits.trailerCount = proxy.headLimits.fieldCount
        proxy.maximumRequestBody = settings.limits.requestBody.map { ByteCount($0) }
        proxy.maximumConnections = settings.limits.connections
        proxy.maximumConnectionsPerClient = settings.limits.connectionsPerClient
        proxy.headTimeout = settings.timeouts.head.duration
        proxy.idleTimeout = settings.timeouts.idle.duration
        proxy.requestBodyTimeout = settings.timeouts.stall.duration
        proxy.sendTimeout = settings.timeouts.idle.duration
        proxy.resolveTimeout = settings.timeouts.resolve.duration
        proxy.connectTimeout = settings.timeouts.connect.duration
        proxy.upgradeTimeout = settings.timeouts.response.duration
        proxy.tunnelIdleTimeout = settings.timeouts.tunnelIdle.duration
        // With the access rules: they may change while the proxy runs.
        proxy.connectPorts = nil
        proxy.addsForwarded = settings.forwarded
        return proxy
    }

    /// What a session is put together from.
    package func blueprint(of session: SessionSettings) -> SessionBlueprint {
        SessionBlueprint(
            kind: SessionBlueprint.Kind(session.kind),
            session: self.sessionConfiguration(session),
            memory: MemoryConfiguration(
                capacity: ByteCount(session.cache.memory),
                maximumObject: min(
                    ByteCount(session.cache.memoryObject), ByteCount(session.cache.maximumObject))),
            disk: self.cacheDirectory(of: session).map { directory in
                DiskConfiguration(
                    directory: directory, capacity: ByteCount(session.cache.disk),
                    maximumObject: ByteCount(session.cache.maximumObject),
                    maximumReaders: DiskConfiguration.readers(
                        eventLoops: self.settings.eventLoops ?? UsableProcessors.count),
                    admission: AdmissionRules(
                        largeFrom: session.cache.admission.largeFrom.map { ByteCount($0) },
                        takesOnceSeen: session.cache.admission.onceSeen))
            },
            transfer: self.transferConfiguration(session),
            cookies: session.cookies.mode == .jar ? CookieHandling(session.cookies) : nil,
            state: self.stateConfiguration(of: session))
    }

    private func sessionConfiguration(_ session: SessionSettings) -> SessionConfiguration {
        var configuration = SessionConfiguration(
            name: session.name.text, cacheName: self.settings.name.text,
            policy: self.policy(of: session),
            cachePolicy: RequestCachePolicy(session.cachePolicy),
            finishAfterClientLeft: ByteCount(session.cache.finishFetch),
            showsCacheKey: session.cache.showKey, remembersExchanges: session.cache.remember)
        configuration.clientPatience = self.settings.timeouts.idle.duration
        configuration.additionalFields = Fields(session.fields)
        configuration.injections = self.injections(of: session)
        configuration.answersChallenges = session.credentials.answersChallenges
        configuration.followsRedirects = session.followsRedirects
        return configuration
    }

    private func transferConfiguration(_ session: SessionSettings) -> TransferConfiguration {
        let timeouts = self.settings.timeouts
        var transfer = TransferConfiguration()
        transfer.threads = self.settings.transferThreads
        transfer.connectionsPerHost = session.connectionsPerHost
        transfer.maximumConnections = self.settings.limits.originConnections
        transfer.http2 = session.http2
        transfer.certificateFile = session.caFile?.text
        transfer.resolveTimeout = timeouts.resolve.duration
        transfer.connectTimeout = timeouts.connect.duration
        transfer.responseTimeout = timeouts.response.duration
        // For the connection to the parent, its answer to CONNECT, and TLS with the origin behind it.
        transfer.tunnelTimeout =
            timeouts.connect.duration + min(timeouts.response.duration, .seconds(30))
        transfer.stallTimeout = timeouts.stall.duration
        transfer.idleTimeout = session.timeouts.idle?.duration
        transfer.resourceTimeout = session.timeouts.resource.duration
        transfer.tlsVersions = TLSVersions(session.tls)
        transfer.parents = self.parents(of: session)
        transfer.maximumHead = ByteCount(self.settings.limits.head)
        transfer.maximumFieldCount = self.settings.limits.fieldCount
        return transfer
    }
}

extension SessionBlueprint.Kind {
    init(_ kind: SessionSettings.Kind) {
        self =
            switch kind {
            case .default: .default
            case .ephemeral: .ephemeral
            case .background: .background
            }
    }
}

extension LarderProxy.ListenerOptions {
    init(_ listener: ListenerSettings, authentication: (any ProxyAuthenticator)? = nil) {
        let clients = listener.trustedClients
        self.init(
            cachePolicy: listener.cachePolicy.map { RequestCachePolicy($0) },
            authentication: authentication,
            authenticatesUnixPeers: listener.authentication.includesUnixPeers
        ) { client in
            clients.contains { $0.matches(client.facts) }
        }
        self.socketMode = UInt32(listener.mode.bits)
    }
}

extension FileAuthenticator.Files {
    init(_ settings: AuthenticationSettings) {
        self.init(
            passwordFile: settings.passwordFile?.text, tokenFile: settings.tokenFile?.text)
        self.realm = settings.realm.text
    }
}

extension ByteCount {
    init(_ size: ByteSize) {
        self.init(size.bytes)
    }
}

extension LarderProxy.ListenAddress {
    init(_ address: LarderConfig.ListenAddress) {
        switch address {
        case .ip(let ip, let port): self = .tcp(host: ip.description, port: port)
        case .everywhere(let port): self = .tcp(host: "::", port: port)
        case .localhost(let port): self = .tcp(host: "localhost", port: port)
        case .unix(let path): self = .unix(path: path)
        }
    }
}
