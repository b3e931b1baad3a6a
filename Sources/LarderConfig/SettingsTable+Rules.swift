extension SettingsTable {
    /// The settings of a route: `routes[].…`.
    package static let route: [Setting<RouteSettings>] = [
        .list(
            "listeners", \.listeners, live: true,
            "The listeners that the route is about, by address. An empty list is all of them."),
        .list(
            "clients", \.clients, live: true,
            """
            The clients that the route is about, as in access rules. An empty list is everyone.
            """),
        .list(
            "users", \.users, live: true,
            """
            The users that the route is about, by the names that they proved to the listener; * is \
            every one of them. An empty list is everyone.
            """),
        .list(
            "uids", \.uids, live: true,
            """
            The users of this machine, by number, whose programs come through a Unix socket. An \
            empty list is everyone.
            """),
        .one(
            "session", \.session, live: true,
            """
            The session that answers them. A session that no listener or route named at the start \
            is opened at the next.
            """),
    ]

    /// The settings of a rule of injection: `injections[].…`.
    package static let injection: [Setting<InjectionSettings>] = [
        .list(
            "sessions", \.sessions, live: true,
            "The sessions that the rule is about. An empty list is all of them."),
        .list(
            "hosts", \.hosts, live: true,
            """
            The origins that get the credential, as in cache rules. It must be said: a secret goes \
            nowhere by itself, and after a redirection to no other origin.
            """),
        .list(
            "paths", \.paths, live: true,
            """
            The paths that get it, without the query, as in cache rules. An empty list is every \
            path.
            """),
        .list(
            "methods", \.methods, live: true,
            """
            The request methods that get it. An empty list is all of them but TRACE, whose answer \
            would show it to the client.
            """),
        .optional(
            "credential", \.credential, absent: "none", live: true,
            """
            What they get, by its name in "larder credentials"; it takes the place of what the \
            client sends there. In a session that is split by principal it is the principal's own \
            (--principal), or else the one that all share, which is kept without naming anyone.
            """),
        .one(
            "preemptive", \.isPreemptive, live: true,
            """
            Whether a user name and password are sent at once, by Basic, for origins that hide what \
            needs a password instead of asking for it. false answers the origin's challenge.
            """),
        .one(
            "insecure", \.allowsInsecure, live: true,
            """
            Whether it may go over plain http, where everyone on the way can read it. false sends \
            such requests on without it.
            """),
    ]

    /// The settings of a way to origins: `parents[].…`.
    package static let parent: [Setting<ParentSettings>] = [
        .list(
            "sessions", \.sessions,
            "The sessions that the rule is about. An empty list is all of them."),
        .list(
            "destinations", \.destinations,
            """
            The origins that are reached this way, as in access rules; names are not resolved for \
            it. An empty list is every origin. The first rule that fits decides.
            """),
        .one(
            "via", \.via,
            """
            direct asks the origin itself; otherwise the proxy further on. Its user name and \
            password are a credential of the session, never part of this. Clients' own tunnels \
            (CONNECT) and upgrades do not go through a proxy that is itself spoken to by https; \
            they are answered with 500.
            """),
        .one(
            "authentication", \.authentication,
            """
            How Larder proves to that proxy who it is: any takes the strongest of Digest, NTLM and \
            Basic that the proxy offers; negotiate has the ticket of the user that runs Larder.
            """),
        .optional(
            "credential", \.credential, absent: "none",
            """
            With what, by its name in "larder credentials" of each session that goes this way. A \
            session that is split by principal goes with what is kept there for all: without \
            --principal.
            """),
    ]

    /// The rules that the shipped file shows.
    ///
    /// They name nothing that exists.
    static let routeExample: RouteSettings = {
        var route = RouteSettings()
        route.users = (try? UserName(settingText: "alice")).map { [$0] } ?? []
        return route
    }()

    static let injectionExample: InjectionSettings = {
        var rule = InjectionSettings()
        rule.hosts = (try? HostPattern(settingText: "api.example.com")).map { [$0] } ?? []
        rule.paths = (try? PathPattern(settingText: "/v1/*")).map { [$0] } ?? []
        rule.credential = try? CredentialName(settingText: "example-api")
        return rule
    }()

    static let parentExample: ParentSettings = {
        var rule = ParentSettings()
        rule.destinations =
            (try? DestinationPattern(settingText: ".example.com")).map { [$0] } ?? []
        return rule
    }()
}
