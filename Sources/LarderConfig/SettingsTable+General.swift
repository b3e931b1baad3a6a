extension SettingsTable {
    /// The settings outside listeners, sessions and access rules.
    package static let general: [Setting<Settings>] = Self.proxy + Self.bounds + Self.running

    private static let proxy: [Setting<Settings>] = [
        .list(
            "presets", \.presets, live: true,
            """
            Sets of cache rules that ship with Larder, one for each kind of origin: debian, pypi, npm, \
            crates, go, oci. They come after the rules of this file, in this order.
            """),
        .optional(
            "preset-directory", \.presetDirectory, absent: "automatic", live: true,
            """
            Where the files of presets lie, NAME.yaml each. automatic looks into presets beside this \
            file, then into $XDG_CONFIG_HOME/larder/presets, /etc/larder/presets and \
            share/larder/presets of the places of installation, or conf/presets of the source tree.
            """),
        .list(
            "connect-ports", \.connectPorts, live: true,
            """
            The ports that clients may open tunnels to (CONNECT). Others are refused: a tunnel to a \
            mail server, say, is how proxies are abused.
            """),
        .one(
            "name", \.name,
            """
            What this proxy calls itself in Cache-Status and Proxy-Status, and in Via with a number \
            that is drawn at each start, by which it knows its own requests when they come back.
            """),
        .one(
            "forwarded", \.forwarded,
            "Whether origins are told each client's address, in Forwarded (RFC 7239)."),
    ]

    private static let bounds: [Setting<Settings>] = [
        .one(
            "limits.request-line", \.limits.requestLine, .kibibytes(1)...(.mebibytes(1)),
            "The longest request line. A longer one is answered with 414."),
        .one(
            "limits.head", \.limits.head, .kibibytes(1)...(.mebibytes(8)),
            """
            The largest head of a request or response, all its lines together. A larger request is \
            answered with 431, a larger response with 502.
            """),
        .one(
            "limits.field-count", \.limits.fieldCount, 8...10_000,
            "How many field lines a head may have; trailers likewise."),
        .one(
            "limits.chunk-extension", \.limits.chunkExtension, .kibibytes(0)...(.kibibytes(64)),
            """
            The longest chunk extensions of one chunk of a request, and how many bytes of them there \
            may be beyond those of content. They are read over, never passed on.
            """),
        .optional(
            "limits.request-body", \.limits.requestBody, .kibibytes(0)...(.tebibytes(64)),
            absent: "unlimited",
            "The largest request body. A larger one is answered with 413."),
        .one(
            "limits.connections", \.limits.connections, 1...1_000_000,
            """
            How many clients may be connected at a time. Further ones wait to be accepted. There are \
            fewer where the limit of open files leaves less than two for each, which the log says.
            """),
        .optional(
            "limits.connections-per-client", \.limits.connectionsPerClient, 1...1_000_000,
            absent: "unlimited", live: true,
            """
            How many connections one client may have open at a time. Further ones are closed at \
            once, which the log says. A client is an IPv4 address, also where it comes as IPv6, or a \
            /64 of IPv6; all who share an address by translation (NAT) are one. Those of Unix sockets \
            have no bound.
            """),
        .one(
            "limits.origin-connections", \.limits.originConnections, 1...1_000_000,
            """
            How many connections to origins and parents each session may have at a time, divided \
            among transfer-threads; tunnels and upgrades of clients are outside it. Further requests \
            wait for one, up to a minute (else 503), and the log says that they do.
            """),
        .one(
            "timeouts.head", \.timeouts.head, .seconds(1)...(.hours(1)),
            "How long a client may take from the first byte of a head to its end (else 408)."),
        .one(
            "timeouts.idle", \.timeouts.idle, .seconds(1)...(.days(1)),
            """
            How long a client's connection stays open between two requests, or while the client \
            takes nothing of its answer.
            """),
        .one(
            "timeouts.resolve", \.timeouts.resolve, .seconds(1)...(.hours(1)),
            "How long the look-up of an origin's name may take."),
        .one(
            "timeouts.connect", \.timeouts.connect, .seconds(1)...(.hours(1)),
            "How long it may take to connect to an origin, TLS included."),
        .one(
            "timeouts.response", \.timeouts.response, .seconds(1)...(.days(1)),
            "How long an origin may take to begin its answer once it has the whole request, or a "
                + "parent to lay a tunnel; that 30 s at most, beside the time of connect."),
        .one(
            "timeouts.stall", \.timeouts.stall, .seconds(1)...(.days(1)),
            """
            How long an origin may stay silent in the middle of an answer, or a client in the middle \
            of a request's content.
            """),
        .one(
            "timeouts.tunnel-idle", \.timeouts.tunnelIdle, .seconds(1)...(.days(7)),
            "How long a tunnel may stay silent in both directions."),
        .one(
            "timeouts.drain", \.timeouts.drain, .seconds(0)...(.hours(1)), live: true,
            """
            How long exchanges under way may go on after the proxy was told to stop. A second signal \
            ends them at once.
            """),
    ]

    private static let running: [Setting<Settings>] = [
        .one(
            "log.level", \.log.level, live: true,
            "The least severe messages that are logged, to standard error."),
        .one(
            "log.access.format", \.log.accessFormat, live: true,
            """
            The form of the access log: squid is Squid's native one, combined is that of web \
            servers, json is one object a line with everything that is known.
            """),
        .one(
            "log.access.to", \.log.accessDestination, live: true,
            """
            Where the access log goes: none, stdout, journal, or the path of a file, which is opened \
            anew on SIGHUP so that it can be rotated. A log that cannot keep up loses lines, \
            which are counted, and never slows a client.
            """),
        .optional(
            "workers", \.eventLoops, 1...256, absent: "automatic",
            """
            How many event loops serve clients. automatic is one for each core that the proxy may \
            run on.
            """),
        .one(
            "transfer-threads", \.transferThreads, 1...64,
            "How many threads of each session speak to origins."),
        .one(
            "core-dumps", \.dumpsCore,
            """
            Whether the system may write the proxy's memory to disk when it ends by a fault. false \
            forbids it, and debuggers, while a session in use has a jar or may get credentials.
            """),
        .optional(
            "control.socket", \.controlSocket, absent: "automatic",
            """
            The Unix socket through which larder cache and others reach the running proxy. automatic \
            is a name of its own for each configuration file, in $XDG_RUNTIME_DIR/larder, or \
            beside the cache where there is no such variable; for a system service in /run/larder.
            """),
    ]
}
