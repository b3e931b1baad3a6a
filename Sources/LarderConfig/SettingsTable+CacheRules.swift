extension SettingsTable {
    /// The settings of a cache rule: `cache-rules[].…`.
    package static let cacheRule: [Setting<CacheRuleSettings>] = Self.scope + Self.overrides

    private static let scope: [Setting<CacheRuleSettings>] = [
        .optional(
            "name", \.name, absent: "none", live: true,
            "What explanations and logs call the rule; none calls it by its place in the list."),
        .list(
            "sessions", \.sessions, live: true,
            "The sessions that the rule is about. An empty list is all of them."),
        .list(
            "hosts", \.hosts, live: true,
            """
            The hosts that the rule is about: example.com is that host, .example.com that and all \
            below it, *.example.com only what is below; * and ? are wildcards, and a port or a \
            range of ports may follow after a colon. An empty list is every host.
            """),
        .list(
            "paths", \.paths, live: true,
            """
            The paths that the rule is about, without the query: * stands for any characters, also /, \
            and ? for one. An empty list is every path. The first rule that fits host and path \
            speaks, alone; those of presets come after those of this file.
            """),
    ]

    private static let overrides: [Setting<CacheRuleSettings>] = [
        .optional(
            "minimum", \.minimum, .seconds(0)...(.days(3650)), absent: "none", live: true,
            """
            Responses are fresh for at least this long, whatever they say themselves. It holds for \
            lasting answers (200, 203, 204, 206, 300, 301, 308) that set no cookie, and makes nothing \
            stored that forbids it. It is about freshness alone: such a response is evicted like any \
            other, and validated where a request wants that.
            """),
        .optional(
            "maximum", \.maximum, .seconds(0)...(.days(3650)), absent: "none", live: true,
            "Responses are fresh for at most this long. It wins over the minimum."),
        .optional(
            "lifetime", \.lifetime, .seconds(0)...(.days(3650)), absent: "none", live: true,
            """
            How long lasting answers are fresh that do not say so themselves, in place of the \
            heuristic.
            """),
        .list(
            "ignore", \.ignore, live: true,
            """
            What of responses and requests is set aside. no-store, private, no-cache, must-revalidate \
            (and proxy-revalidate), max-age, s-maxage, expires and vary are the response's. reload \
            is the request's no-cache, max-age and min-fresh. set-cookie stores responses that set \
            cookies, without these fields; what is stored only because no-store or private is \
            ignored must not set any otherwise. authorization stores answers to requests with \
            credentials for everybody: only for what is public anyway. Each breaks RFC 9111.
            """),
        .pairs(
            "negative", \.negative, such: "{404: 30 s}", live: true,
            """
            How long errors are fresh that do not say so themselves, by status: {404: 30 s, 5xx: \
            5 s}. The first that fits counts; where none does, freshness.negative of the session, \
            which also says what 4xx leaves out.
            """),
        .optional(
            "stale-if-error", \.staleIfError, .seconds(0)...(.days(365)), absent: "none",
            live: true,
            "In place of freshness.stale-if-error of the session."),
        .one(
            "store", \.store, live: true,
            """
            never stores nothing of it, and uses nothing that was stored; default does as the \
            responses say.
            """),
    ]

    /// The rule that the shipped file shows: it fits something and changes nothing.
    static let cacheRuleExample: CacheRuleSettings = {
        var rule = CacheRuleSettings()
        rule.hosts = (try? HostPattern(settingText: ".example.com")).map { [$0] } ?? []
        rule.paths = (try? PathPattern(settingText: "/releases/*")).map { [$0] } ?? []
        return rule
    }()
}
