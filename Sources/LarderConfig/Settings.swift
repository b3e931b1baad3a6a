/// Everything that the configuration says, as values.
///
/// A new one holds the defaults.
///
/// What each setting means stands in `SettingsTable`; these are only its places.
package struct Settings: Sendable, Equatable {
    package var listeners: [ListenerSettings] = [ListenerSettings()]
    /// `default` and `ephemeral`, which always exist, and then those of the file in its order.
    package var sessions: [SessionSettings] = [
        SessionSettings(name: .default, kind: .default),
        SessionSettings(name: .ephemeral, kind: .ephemeral),
    ]
    package var routes: [RouteSettings] = []
    package var access: [AccessRule] = .local
    package var injections: [InjectionSettings] = []
    package var parents: [ParentSettings] = []
    package var cacheRules: [CacheRuleSettings] = []
    package var presets: [PresetName] = []
    /// nil: where they are usually found.
    package var presetDirectory: FilePath?
    package var connectPorts: [PortRange] = [PortRange(443...443)]
    package var name: Token = .larder
    package var forwarded = false
    package var limits = LimitSettings()
    package var timeouts = TimeoutSettings()
    package var log = LogSettings()
    /// nil: one for each core.
    package var eventLoops: Int?
    package var transferThreads = 1
    package var controlSocket: SocketPath?
    package var dumpsCore = false

    package init() {}

    package func session(named name: SessionName) -> SessionSettings? {
        self.sessions.first { $0.name == name }
    }
}

/// A place at which the proxy waits for clients.
package struct ListenerSettings: Sendable, Equatable {
    package var address: ListenAddress
    package var session: SessionName = .default
    package var mode = FileMode(0o600)
    /// nil: that of the session.
    package var cachePolicy: CachePolicyWord?
    package var trustedClients: [ClientPattern] = []
    /// Sessions that trusted clients may ask for, beside what they are led to.
    package var namedSessions: [SessionName] = []
    package var authentication = AuthenticationSettings()

    package init(address: ListenAddress = .ip(IPAddress(.v4, 0x7F00_0001), port: 3128)) {
        self.address = address
    }
}

/// How a listener knows its clients.
package struct AuthenticationSettings: Sendable, Equatable {
    /// nil: nobody proves who they are by a password.
    package var passwordFile: FilePath?
    /// nil: nobody proves who they are by a token.
    package var tokenFile: FilePath?
    package var realm: Realm = .larder
    /// Whether processes of this machine prove who they are, too, of whom the kernel knows it.
    package var includesUnixPeers = false

    package var isDemanded: Bool { self.passwordFile != nil || self.tokenFile != nil }
}

/// One session: what it keeps, and how it asks origins.
package struct SessionSettings: Sendable, Equatable {
    package enum Kind: String, SettingWord {
        case `default`, ephemeral, background

        /// Whether anything of the session outlives the process.
        package var isPersistent: Bool { self != .ephemeral }
    }

    package var name: SessionName
    package var kind: Kind
    package var principals: PrincipalsWord = .none
    package var cookies = CookieSettings()
    package var credentials = CredentialSettings()
    package var fields: [AdditionalField] = []
    package var timeouts = SessionTimeoutSettings()
    package var tls = TLSSettings()
    package var followsRedirects = false
    /// nil: where `Places` says.
    package var stateDirectory: FilePath?
    /// nil: where `Places` says.
    package var keyFile: FilePath?
    package var cache = CacheSettings()
    package var freshness = FreshnessSettings()
    package var cachePolicy: CachePolicyWord = .useProtocol
    package var connectionsPerHost = 96
    package var http2 = true
    /// nil: the system's certificates.
    package var caFile: FilePath?

    package init(name: SessionName, kind: Kind = .default) {
        self.name = name
        self.kind = kind
    }
}

extension SessionSettings {
    /// These settings with what of newer ones may change while a session runs.
    package func followingLive(_ newer: SessionSettings) -> SessionSettings {
        var session = self
        session.freshness = newer.freshness
        session.cachePolicy = newer.cachePolicy
        session.cookies.accept = newer.cookies.accept
        session.cookies.merging = newer.cookies.merging
        session.cookies.showsSetCookie = newer.cookies.showsSetCookie
        session.credentials = newer.credentials
        session.fields = newer.fields
        session.followsRedirects = newer.followsRedirects
        session.cache.variants = newer.cache.variants
        session.cache.semanticVary = newer.cache.semanticVary
        session.cache.storesSetCookie = newer.cache.storesSetCookie
        session.cache.storesPost = newer.cache.storesPost
        session.cache.noVarySearch = newer.cache.noVarySearch
        return session
    }
}

/// What a session does with cookies.
package struct CookieSettings: Sendable, Equatable {
    package enum Mode: String, SettingWord { case pass, jar }

    package enum Accept: String, SettingWord {
        case onlyFromMainDocumentDomain = "only-from-main-document-domain"
        case always
        case never
    }

    package enum Merging: String, SettingWord {
        case clientFirst = "client-first"
        case jarReplaces = "jar-replaces"
        case clientOnly = "client-only"
    }

    package var mode: Mode = .pass
    package var accept: Accept = .onlyFromMainDocumentDomain
    package var merging: Merging = .clientFirst
    package var showsSetCookie = false
}

/// What a session does with its credentials.
package struct CredentialSettings: Sendable, Equatable {
    package var answersChallenges = true
}

/// How long a session waits for origins.
package struct SessionTimeoutSettings: Sendable, Equatable {
    /// nil: `timeouts.response` and `timeouts.stall` of the whole proxy.
    package var idle: TimeSpan?
    package var resource: TimeSpan = .days(7)
}

/// The versions of TLS in which a session speaks to origins.
package struct TLSSettings: Sendable, Equatable {
    package var minimum: TLSVersionWord = .tls12
    /// nil: the newest that both sides know.
    package var maximum: TLSVersionWord?
}

/// The response cache of a session.
package struct CacheSettings: Sendable, Equatable {
    package var memory: ByteSize = .mebibytes(64)
    package var memoryObject: ByteSize = .mebibytes(1)
    package var disk: ByteSize = .gibibytes(10)
    package var maximumObject: ByteSize = .gibibytes(4)
    /// nil: where `Places` says.
    package var directory: FilePath?
    package var finishFetch: ByteSize = .mebibytes(64)
    package var isShared = true
    package var variants = 64
    package var semanticVary = true
    package var storesSetCookie = true
    package var storesPost = true
    package var remember = 2048
    package var admission = AdmissionSettings()
    package var showKey = false
    package var noVarySearch = true
}

/// What the disk takes in when it is asked for the first time.
package struct AdmissionSettings: Sendable, Equatable {
    package var onceSeen = true
    /// nil: size alone turns nothing away.
    package var largeFrom: ByteSize?
}

/// How long stored responses are taken for fresh where origins leave that open.
package struct FreshnessSettings: Sendable, Equatable {
    package var heuristicFraction = Fraction(0.1)
    package var heuristicMaximum: TimeSpan = .days(1)
    package var staleIfError: TimeSpan = .seconds(0)
    package var staleIfUnreachable: TimeSpan = .days(1)
    package var staleWhileRevalidate = true
    package var negative: [StatusLifetime] = []
    package var targetedFields: [Token] = []
    package var ftp: TimeSpan = .seconds(0)
}

/// Bounds on what a client may send and hold.
package struct LimitSettings: Sendable, Equatable {
    package var requestLine: ByteSize = .kibibytes(16)
    package var head: ByteSize = .kibibytes(64)
    package var fieldCount = 128
    package var chunkExtension: ByteSize = .kibibytes(4)
    /// nil: no bound.
    package var requestBody: ByteSize?
    package var connections = 4096
    /// nil: no bound.
    package var connectionsPerClient: Int?
    /// Of each session.
    package var originConnections = 2048
}

/// How long Larder waits, for what.
package struct TimeoutSettings: Sendable, Equatable {
    package var head: TimeSpan = .seconds(30)
    package var idle: TimeSpan = .minutes(2)
    package var resolve: TimeSpan = .seconds(10)
    package var connect: TimeSpan = .seconds(10)
    package var response: TimeSpan = .minutes(1)
    package var stall: TimeSpan = .minutes(1)
    package var tunnelIdle: TimeSpan = .minutes(10)
    package var drain: TimeSpan = .seconds(10)
}

/// What is logged, and where.
package struct LogSettings: Sendable, Equatable {
    package enum Level: String, SettingWord {
        case trace, debug, info, notice, warning, error, critical
    }

    package enum AccessFormat: String, SettingWord { case squid, combined, json }

    package var level: Level = .info
    package var accessFormat: AccessFormat = .squid
    package var accessDestination: LogDestination = .none
}
