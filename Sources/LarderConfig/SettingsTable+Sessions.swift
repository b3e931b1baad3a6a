extension SettingsTable {
    /// What a session does for its clients beside caching: `sessions.NAME.…`.
    static let holdings: [Setting<SessionSettings>] =
        Self.cookies
        + [
            .one(
                "credentials.answer", \.credentials.answersChallenges, live: true,
                """
                Whether a request that the origin answers with 401 is sent once more with what the \
                session holds for it ("larder credentials"), instead of passing the 401 on. What \
                is kept for an https origin goes over https alone.
                """),
            .pairs(
                "fields", \.fields, such: "{X-Build: 1}", live: true,
                """
                Fields that requests get which have none of their name: {X-Build: 1}. Nothing that is \
                secret, and nothing about the connection or the cache: those names are refused.
                """),
            .optional(
                "timeouts.idle", \.timeouts.idle, .seconds(1)...(.days(1)), absent: "automatic",
                """
                How long an origin may be silent, before its answer or in it. automatic is what \
                timeouts.response and timeouts.stall of the whole proxy say.
                """),
            .one(
                "timeouts.resource", \.timeouts.resource, .seconds(1)...(.days(365)),
                "How long a fetch may take from its beginning to its end, whatever arrives."),
            .one(
                "tls.minimum", \.tls.minimum,
                """
                The oldest version of TLS in which the session speaks to origins. With one below 1.2 \
                short keys and old signatures are taken, too, without which those versions do not work \
                (OpenSSL's security level 0).
                """),
            .optional(
                "tls.maximum", \.tls.maximum, absent: "automatic",
                "The newest version of TLS; automatic is the newest that both sides know."),
            .one(
                "follow-redirects", \.followsRedirects, live: true,
                """
                Whether the session follows redirections itself and stores the answer under the URL \
                that the client asked for: right for stable URLs that lead to signed ones. Each step is \
                judged by the access rules of the client. A redirection that sets cookies is followed \
                only by a session with a jar: the client gets it otherwise, as it alone can keep \
                them. On another host no kept credential is used, nor a cookie that is Lax or Strict, \
                and what other cookies bring from there is private. For programs, not for browsers: \
                those would take what another site says for the word of the first. Without this \
                setting all redirections are the client's business, as HTTP has it.
                """),
        ] + Self.state

    private static let cookies: [Setting<SessionSettings>] = [
        .one(
            "principals", \.principals,
            """
            By what those are told apart who share the session: each then has a private cache, \
            cookies and credentials of its own. user is the name that the client proves to the \
            listener, uid the user whose process is at the other end of a Unix socket, address the \
            client's. A client that has none of it is refused. none shares all among all. Of more than \
            1024 in memory those that were idle longest go; with them, where all have some, cookies \
            and credentials that are not on disk.
            """),
        .one(
            "cookies.mode", \.cookies.mode,
            """
            pass leaves cookies to the clients. jar keeps those that origins set in the session and \
            sends them for it: right for clients that keep none, of one person. In a default session \
            the answer that sets a lasting cookie begins once that is on the disk, after a second at \
            the latest. "cookies: jar" is short for it.
            """),
        .one(
            "cookies.accept", \.cookies.accept, live: true,
            """
            Which cookies the jar takes. only-from-main-document-domain leaves out those of sites \
            other than the page's on which a request was made (Sec-Fetch-Site and Referer tell).
            """),
        .one(
            "cookies.merging", \.cookies.merging, live: true,
            """
            What is sent where the client has cookies, too. client-first sends both, the client's \
            where names are the same; jar-replaces sends the jar's alone; client-only sends the \
            client's alone where it has any.
            """),
        .one(
            "cookies.show-set-cookie", \.cookies.showsSetCookie, live: true,
            "Whether clients see the Set-Cookie of origins; the jar takes their cookies either way."
        ),
    ]

    private static let state: [Setting<SessionSettings>] = [
        .optional(
            "state-directory", \.stateDirectory, absent: "automatic",
            """
            Where the session's cookies and credentials lie, encrypted. automatic is \
            $XDG_STATE_HOME/larder/SESSION (that is ~/.local/state/larder/SESSION where the variable \
            is not set), and for a system service /var/lib/larder/SESSION. An ephemeral session \
            keeps them in memory.
            """),
        .optional(
            "key-file", \.keyFile, absent: "automatic",
            """
            The key by which they are encrypted; made at the first start, readable for nobody else. \
            automatic is the credential larder.key that systemd hands to the service \
            (LoadCredential=), where it does, and otherwise lies beside the state directory, with \
            .key behind its name, where Larder must be allowed to make it. Who has both has the \
            secrets: back them up apart.
            """),
    ]
}
