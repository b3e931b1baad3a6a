/// The table of settings: the one place that knows what can be configured.
///
/// The reader of the file, its messages, `larder config` and the shipped file come from it. A new
/// setting is a property of `Settings` and a row here.
package enum SettingsTable {
    /// The settings of a listener: `listeners[].…`.
    package static let listener: [Setting<ListenerSettings>] = [
        .one(
            "address", \.address,
            """
            Where clients connect: an address and a port, *:PORT for all addresses of this machine, \
            or unix:PATH. Port 0 takes a free one. Whoever can connect can use the proxy within \
            the access rules, so anything but loopback wants rules of its own.
            """),
        .one(
            "session", \.session,
            "The session that answers this listener's clients."),
        .one(
            "mode", \.mode,
            "The permissions of a Unix socket: who on this machine may connect to it."),
        .optional(
            "cache-policy", \.cachePolicy, absent: "session",
            """
            How this listener's requests use the cache, in place of what their session says. \
            return-cache-dont-load is the offline mode: such a listener opens no tunnels either.
            """),
        .list(
            "trusted-clients", \.trustedClients,
            """
            Clients that may say for one request how it uses the cache, in the field \
            Larder-Cache-Policy with one of the words of cache-policy, and which session answers it, \
            in the field Larder-Session (named-sessions). Of others the fields are ignored, and they \
            never go to origins.
            """),
        .list(
            "named-sessions", \.namedSessions,
            """
            The sessions that trusted clients may name in Larder-Session. Beside these a client may \
            name the listener's own, and those of all routes that fit it. Any other is answered with \
            403, and a name that no session has with 400.
            """),
        .optional(
            "authentication.password-file", \.authentication.passwordFile, absent: "none",
            live: true,
            """
            The users that may use this listener, with their passwords: lines of NAME:HASH, by \
            bcrypt or yescrypt (htpasswd -B, mkpasswd). A reload reads it anew; to begin or to cease \
            asking needs a restart, for which access rules of the same reload and other files wait, \
            too. Whoever has not proved to be one of them is answered with 407, and who is wrong too \
            often with 429. A name is the same user at all listeners, whatever files they have.
            """),
        .optional(
            "authentication.token-file", \.authentication.tokenFile, absent: "none", live: true,
            """
            The same by Bearer tokens: lines of NAME:TOKEN. The file must be readable for nobody \
            else.
            """),
        .one(
            "authentication.realm", \.authentication.realm, live: true,
            "What clients are told they are to give a password for."),
        .one(
            "authentication.unix-peers", \.authentication.includesUnixPeers,
            """
            Whether programs that come through a Unix socket have to give a password or token, too. \
            The kernel says whose they are, so that rules can speak of them without.
            """),
    ]

    /// The settings of a session: `sessions.NAME.…`.
    package static let session: [Setting<SessionSettings>] = Self.caching + Self.holdings

    private static let caching: [Setting<SessionSettings>] = [
        .one(
            "kind", \.kind,
            """
            default keeps its cache in memory and on disk, and its cookies and credentials encrypted on \
            disk: they survive a restart. ephemeral keeps all in memory only, and nothing of it ever \
            reaches a disk. background is like default, but what a GET over http or https has begun to \
            store becomes a transfer of the proxy's own: it goes on when its client leaves, is asked \
            for again where it broke off, and is taken up again after a restart, for 7 days at most. \
            "larder transfers" lists and cancels them. Tunnels, uploads, ranges that clients ask for \
            and what may not be stored remain their clients' business.
            """),
        .one(
            "cache.memory", \.cache.memory, .kibibytes(0)...(.tebibytes(1)),
            "How much the memory tier of the cache may hold, heads and bodies together."),
        .one(
            "cache.memory-object", \.cache.memoryObject, .kibibytes(0)...(.gibibytes(1)),
            "The largest body that the memory tier holds. Larger ones are read from the disk."),
        .one(
            "cache.disk", \.cache.disk, .kibibytes(0)...(.tebibytes(16)),
            """
            How large the cache's file may grow: 1 MiB at least, or 0, which keeps nothing on disk. \
            An ephemeral session has no disk tier, whatever this says, and a background session must have \
            one. The file is mapped whole, so that this counts against a limit of address space \
            (ulimit -v), twice while it is compacted.
            """),
        .one(
            "cache.maximum-object", \.cache.maximumObject, .kibibytes(0)...(.tebibytes(64)),
            """
            The largest body that is stored at all. Larger ones are passed on and not kept, nor what would \
            take more than half of disk.
            """),
        .one(
            "cache.admission.once-seen", \.cache.admission.onceSeen,
            """
            Whether a response is stored on disk when it is asked for the first time. false waits for \
            a second request within what the cache remembers of what it did not store or let go of: \
            about as much as it holds. It spares the disk what is never asked for again, at the price \
            of one more fetch of what is. Memory takes what it can hold either way.
            """),
        .optional(
            "cache.admission.large-from", \.cache.admission.largeFrom,
            .kibibytes(1)...(.tebibytes(64)), absent: "off",
            """
            Bodies of this size and above are stored on disk only at their second request, in the \
            same way; smaller ones go by cache.admission.once-seen. off makes no difference by size. \
            A body that does not say its length is given up when it has grown so large.
            """),
        .optional(
            "cache.directory", \.cache.directory, absent: "automatic",
            """
            Where the cache lies. automatic is $XDG_CACHE_HOME/larder/SESSION (that is \
            ~/.cache/larder/SESSION where the variable is not set), and for a system service \
            /var/cache/larder/SESSION. Larder is a system service when its configuration lies in \
            /etc/larder or LARDER_SYSTEM is 1. No two sessions may share a directory.
            """),
        .one(
            "cache.finish-fetch", \.cache.finishFetch, .kibibytes(0)...(.tebibytes(64)),
            """
            When the last client of a response has left before its end, the fetch goes on to store \
            it if no more than this is missing. 0 gives it up at once. In a background session a \
            transfer goes on whatever is missing.
            """),
        .one(
            "cache.shared", \.cache.isShared,
            """
            Whether the cache is a shared one (RFC 9111 §1). false makes it a private one, which \
            keeps responses marked private, those to requests with credentials, and more: right \
            where one person alone uses the session. A cache that was private should be purged \
            before it is shared.
            """),
        .one(
            "cache.variants", \.cache.variants, 1...4096, live: true,
            "How many responses to one URL are kept that differ by Vary. The oldest give way."),
        .one(
            "cache.semantic-vary", \.cache.semanticVary, live: true,
            """
            Whether Accept-Encoding and Accept-Language are compared by what they mean instead of \
            byte by byte, where a response varies by them (RFC 9111 §4.1).
            """),
        .one(
            "cache.store-set-cookie", \.cache.storesSetCookie, live: true,
            """
            Whether responses that set cookies are stored like any other, as RFC 9111 §7.3 has it. \
            false passes them on and keeps none, and uses none that were stored before.
            """),
        .one(
            "cache.store-post", \.cache.storesPost, live: true,
            """
            Whether the answer to a POST is stored for later GETs where it says so explicitly, by its \
            freshness and a Content-Location that is the URL itself (RFC 9110 §9.3.3).
            """),
        .one(
            "cache.remember", \.cache.remember, 0...1_000_000,
            """
            How many of the last requests are remembered in memory, for "larder explain": when they \
            came, and how and why they were answered so. No field of a request is remembered. 0 \
            remembers nothing.
            """),
        .one(
            "cache.show-key", \.cache.showKey,
            """
            Whether Cache-Status tells clients the key under which a response is stored (RFC 9211 \
            §2.7).
            """),
        .one(
            "cache.no-vary-search", \.cache.noVarySearch, live: true,
            """
            Whether a response with No-Vary-Search also answers requests whose query differs only as \
            that field allows.
            """),
        .one(
            "freshness.heuristic-fraction", \.freshness.heuristicFraction,
            Fraction(0)...Fraction(1), live: true,
            """
            A response that does not say how long it is fresh is taken for fresh for this share \
            of the time since it was last modified (RFC 9111 §4.2.2). 0 turns the heuristic off.
            """),
        .one(
            "freshness.heuristic-maximum", \.freshness.heuristicMaximum,
            .seconds(0)...(.days(365)), live: true,
            "The longest that the heuristic takes a response for fresh."),
        .one(
            "freshness.stale-if-error", \.freshness.staleIfError, .seconds(0)...(.days(365)),
            live: true,
            """
            How long after its freshness ended a stored response may still answer when the origin \
            cannot be reached or fails (RFC 5861 §4), where the response itself does not say. \
            Responses that forbid it, by must-revalidate for example, are never used so.
            """),
        .one(
            "freshness.stale-if-unreachable", \.freshness.staleIfUnreachable,
            .seconds(0)...(.days(365)), live: true,
            """
            The same where the origin gives no answer at all: it cannot be reached, or is silent \
            for too long. Then a cache may use what is stale of its own accord (RFC 9111 §4.2.4), \
            and says so in Cache-Status, also for requests that would prefer something newer \
            (max-age, min-fresh); not for those with no-cache. A cache rule's stale-if-error takes \
            the place of both.
            """),
        .one(
            "freshness.stale-while-revalidate", \.freshness.staleWhileRevalidate, live: true,
            """
            Whether stale responses that allow it, by stale-while-revalidate (RFC 5861 §3), are \
            used at once and validated behind the client's back.
            """),
        .pairs(
            "freshness.negative", \.freshness.negative, such: "{404: 30 s}", live: true,
            """
            How long errors are fresh that do not say so themselves, by status: {404: 30 s, 5xx: \
            5 s}. The first that fits counts; where none does, errors are kept only as RFC 9111 \
            allows. 4xx leaves out what is about the request and not its target, which one client \
            could have kept for all: 400, 406, 411, 413, 414, 415, 417, 422, 425 and 426 must be \
            named each; 401, 407, 408, 412, 416, 421, 428, 429 and 431 are never kept so. A 5xx \
            kept so never takes the place of a stored response.
            """),
        .list(
            "freshness.targeted-fields", \.freshness.targetedFields, live: true,
            """
            Response fields that take the place of Cache-Control and Expires for this cache (RFC \
            9213), the first that a response has: [Larder-Cache-Control, CDN-Cache-Control], say.
            """),
        .one(
            "freshness.ftp", \.freshness.ftp, .seconds(0)...(.days(365)), live: true,
            """
            How long a file fetched by ftp is fresh: the protocol cannot say. 0 goes by the \
            heuristic where the server tells the time of modification, and stores nothing else.
            """),
        .one(
            "cache-policy", \.cachePolicy, live: true,
            """
            How requests that say nothing themselves use the cache. use-protocol is HTTP; \
            reload-ignoring-local reads nothing that is stored, and reload-ignoring-all tells the \
            caches further on so; return-cache-else-load uses whatever is stored, however old, and \
            else the origin; return-cache-dont-load asks no origin at all: what is missing is \
            answered with 504, and listed by "larder cache missing"; reload-revalidating uses what \
            is stored only once the origin has confirmed it.
            """),
        .one(
            "connections-per-host", \.connectionsPerHost, 1...1024,
            """
            How many connections to one origin may be open at a time; further requests wait. Over \
            HTTP/2 requests share few, and there may be some more where one has no room for them. All \
            clients of the session share them: of 8 or more, one client (an address; of IPv6, a /64) \
            has at most three quarters, and the others are left the rest.
            """),
        .one(
            "http2", \.http2,
            "Whether https origins that know HTTP/2 are spoken to in it."),
        .optional(
            "ca-file", \.caFile, absent: "system",
            """
            A file of certificates in PEM form that https origins are checked against, in place \
            of those that the system trusts.
            """),
    ]

    /// The settings of an access rule: `access[].…`.
    package static let access: [Setting<AccessRule>] = [
        .one(
            "action", \.action, live: true,
            "What the rule does with a request that fits it. The first rule that fits decides."),
        .list(
            "clients", \.clients, live: true,
            """
            Whom the rule is about: addresses, blocks of them, unix for clients of Unix sockets, \
            user:NAME for who proved to be that user to the listener, user:* for who proved to be \
            any, uid:NUMBER for the programs of a user of this machine behind a Unix socket. An \
            empty list is everyone.
            """),
        .list(
            "destinations", \.destinations, live: true,
            """
            What the rule is about: example.com is that host, .example.com that and all below it, \
            *.example.com only what is below; a block of addresses fits requests that name an \
            address, and those to names that lead to one, which is found out when a connection \
            is made (but for what goes through a parent, or is stored already); a port or a range \
            of ports may follow after a colon. An empty list is everything; but clients of other \
            machines reach addresses of the proxy's own machine (loopback, link-local, what serves \
            credentials in a cloud) only by a rule that names destinations, be it with *. A rule \
            that denies an IPv4 block denies the IPv6 addresses that embed one of its addresses.
            """),
        .list(
            "methods", \.methods, live: true,
            "The request methods that the rule is about. An empty list is all of them."),
    ]
}
