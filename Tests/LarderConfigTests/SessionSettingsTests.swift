import Foundation
import Testing

@testable import LarderConfig

private func parse(_ text: String) throws(ConfigurationError) -> LoadedSettings {
    try Configuration.parse(
        text, file: "larder.yaml", environment: ProcessEnvironment(["HOME": "/h"]))
}

private func session(_ lines: String) -> String { "sessions:\n  s:\n    \(lines)\n" }

@Suite("Sessions, routes, injections and parents in the configuration")
struct SessionSettingsTests {
    @Test("A key by way of a symbolic link is the same key")
    func linkedKey() throws {
        let directory = NSTemporaryDirectory() + "/larder-keys-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory + "/real", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.createSymbolicLink(
            atPath: directory + "/link", withDestinationPath: "real")
        let error = #expect(throws: ConfigurationError.self) {
            try parse(
                "sessions:\n  a: { key-file: \(directory)/real/k }\n"
                    + "  b: { key-file: \(directory)/link/k }\n")
        }
        #expect(error?.problems.count == 1)
        #expect(error?.description.contains("the key file of session \"a\" already") == true)
    }

    @Test(
        "A disk that can hold a file, or none, is taken",
        arguments: [("0", 0), ("1 MiB", 1 << 20)] as [(String, UInt64)])
    func smallestDisk(_ size: String, _ bytes: UInt64) throws {
        let settings = try parse(session("cache: { disk: \(size) }")).settings
        #expect(settings.sessions.first { $0.name.text == "s" }?.cache.disk.bytes == bytes)
    }

    @Test("A word in the place of cookies is their mode", arguments: ["pass", "jar"])
    func shortCookies(_ word: String) throws {
        let short = try parse(session("cookies: \(word)")).settings
        #expect(short == (try parse(session("cookies: { mode: \(word) }")).settings))
    }

    @Test("The shape that the documents show")
    func shape() throws {
        let loaded = try parse(
            """
            listeners:
              - address: 127.0.0.1:3128
                authentication: { password-file: /etc/larder/users, realm: the team }
              - address: unix:/run/larder/p.sock
            routes:
              - { listeners: "127.0.0.1:3128", users: [alice], session: work }
              - { clients: [unix], uids: [1000], session: ephemeral }
            sessions:
              work:
                principals: user
                cookies: { mode: jar, accept: always, merging: jar-replaces, show-set-cookie: yes }
                credentials: { answer: false }
                fields: { X-Build: 1, User-Agent: "builder/1 (larder)" }
                timeouts: { idle: 20 s, resource: 1 h }
                tls: { minimum: 1.3, maximum: 1.3 }
                follow-redirects: true
                state-directory: /srv/state
                key-file: /srv/keys/work
            injections:
              - { sessions: work, hosts: [api.example.com:443], paths: "/v1/*", methods: [GET],
                  credential: api, preemptive: true, insecure: true }
            parents:
              - { destinations: [.local, 10.0.0.0/8], via: direct }
              - { via: "http://proxy.example.com:3128", authentication: ntlm, credential: corp }
            core-dumps: true
            """)
        let settings = loaded.settings
        #expect(settings.listeners.map(\.authentication.isDemanded) == [true, false])
        #expect(settings.listeners[0].authentication.realm.text == "the team")
        #expect(settings.routes.map(\.session.text) == ["work", "ephemeral"])
        #expect(settings.routes[0].listeners == [settings.listeners[0].address])
        let work = try #require(settings.session(named: SessionName(settingText: "work")))
        #expect(work.principals == .user)
        #expect(
            work.cookies
                == CookieSettings(
                    mode: .jar, accept: .always, merging: .jarReplaces, showsSetCookie: true))
        #expect(!work.credentials.answersChallenges)
        #expect(work.fields.map(\.settingText) == ["X-Build: 1", "User-Agent: builder/1 (larder)"])
        #expect(work.timeouts == SessionTimeoutSettings(idle: .seconds(20), resource: .hours(1)))
        #expect(work.tls == TLSSettings(minimum: .tls13, maximum: .tls13))
        #expect(work.followsRedirects)
        #expect(loaded.stateDirectory(of: work) == "/srv/state")
        #expect(loaded.keyFile(of: work) == "/srv/keys/work")
        #expect(settings.injections(of: work.name).map { $0.credential?.text } == ["api"])
        #expect(settings.injections[0].isPreemptive && settings.injections[0].allowsInsecure)
        #expect(settings.injections(of: .default).isEmpty)
        #expect(
            settings.parents(of: .default).map(\.via.settingText)
                == ["direct", "http://proxy.example.com:3128"])
        #expect(settings.dumpsCore)
        #expect(loaded.warnings.isEmpty)
        #expect(
            SettingsTable.effective(loaded).first { $0.path == "sessions.work.fields" }?.value
                == "{X-Build: 1, User-Agent: builder/1 (larder)}")
    }

    @Test(
        "State lies under the state directory, its key beside it; of an ephemeral session nowhere")
    func places() throws {
        let loaded = try parse("")
        let settings = loaded.settings
        #expect(loaded.stateDirectory(of: settings.sessions[0]) == "/h/.local/state/larder/default")
        #expect(loaded.keyFile(of: settings.sessions[0]) == "/h/.local/state/larder/default.key")
        #expect(loaded.stateDirectory(of: settings.sessions[1]) == nil)
        #expect(loaded.keyFile(of: settings.sessions[1]) == nil)
    }

    @Test("A background session keeps on disk what a default one does")
    func background() throws {
        let loaded = try parse("sessions: { downloads: { kind: background } }")
        let session = try #require(loaded.settings.sessions.last)
        #expect(session.kind == .background)
        #expect(session.cache.disk == .gibibytes(10))
        #expect(loaded.cacheDirectory(of: session) == "/h/.cache/larder/downloads")
        #expect(loaded.stateDirectory(of: session) == "/h/.local/state/larder/downloads")
        #expect(loaded.keyFile(of: session) == "/h/.local/state/larder/downloads.key")
    }

    static let ofSessions: [ProblemCase] = [
        ProblemCase(
            session("principals: users"),
            "3:17: sessions.s.principals: \"users\" is unknown (did you mean \"user\"?); expected none, "
                + "user, uid or address"),
        ProblemCase(
            session("cookies: { mode: jra, acept: always }"),
            "3:22: sessions.s.cookies.mode: \"jra\" is unknown (did you mean \"jar\"?); expected pass "
                + "or jar",
            "3:27: sessions.s.cookies.acept: there is no such setting; did you mean \"accept\"?"),
        ProblemCase(
            session("cookies: jra"),
            "3:14: sessions.s.cookies.mode: \"jra\" is unknown (did you mean \"jar\"?); expected pass "
                + "or jar"),
        ProblemCase(
            session("cookies: { mode: pass, merging: client-only, show-set-cookie: true }"),
            "3:37: sessions.s.cookies.merging: says what a jar does, and cookies.mode is pass (line "
                + "3); set mode: jar, or remove this",
            "3:67: sessions.s.cookies.show-set-cookie: says what a jar does, and cookies.mode is pass "
                + "(line 3); set mode: jar, or remove this"),
        ProblemCase(
            session("cookies: { accept: never }"),
            "3:24: sessions.s.cookies.accept: says what a jar does, and cookies.mode is pass by "
                + "default; set mode: jar, or remove this"),
        ProblemCase(
            session("fields: { Authorization: Basic c2VzYW1l }"),
            "3:15: sessions.s.fields: \"Authorization: …\" would hold a secret: add it by \"larder "
                + "credentials add\" and name it in injections; expected a field such as X-Build: 1"
        ),
        ProblemCase(
            session("fields: { Cookie: a=b, larder-x: 1, Host: h }"),
            "3:15: sessions.s.fields: \"Cookie: …\" is for cookies: give the session \"cookies: {mode: "
                + "jar}\" and set them by \"larder cookies set\"; expected a field such as X-Build: 1",
            "3:28: sessions.s.fields: \"larder-x: …\" is for Larder itself, and never goes to origins; "
                + "expected a field such as X-Build: 1",
            "3:41: sessions.s.fields: \"Host: …\" is about one connection, and Larder's own; expected "
                + "a field such as X-Build: 1"),
        ProblemCase(
            session("fields: [X-Build]"),
            "3:13: sessions.s.fields: takes pairs, such as {X-Build: 1}"),
        ProblemCase(
            session("fields: { X-Build: 1, x-build: 2 }"),
            "3:13: sessions.s.fields: x-build is given twice; letter case makes no other field"),
        ProblemCase(
            session("timeouts: { idle: 0, resource: 366 d }"),
            "3:23: sessions.s.timeouts.idle: 0 s is out of range; allowed: 1 s to 1 d",
            "3:36: sessions.s.timeouts.resource: 366 d is out of range; allowed: 1 s to 365 d"),
        ProblemCase(
            session("tls: { minimum: 1.3, maximum: 1.2 }"),
            "3:35: sessions.s.tls.maximum: 1.2 is below tls.minimum, which is 1.3 (line 3); raise the "
                + "one or lower the other"),
        ProblemCase(
            session("tls: { maximum: 1.1 }"),
            "3:21: sessions.s.tls.maximum: 1.1 is below tls.minimum, which is 1.2 by default; raise "
                + "the one or lower the other"),
        ProblemCase(
            session("tls: { minimum: 1.4 }"),
            "3:21: sessions.s.tls.minimum: \"1.4\" is unknown (did you mean \"1.0\"?); expected 1.0, "
                + "1.1, 1.2 or 1.3"),
        ProblemCase(
            session("{ kind: ephemeral, state-directory: /s, key-file: /k }"),
            "3:41: sessions.s.state-directory: an ephemeral session keeps nothing on disk; remove this "
                + "or its kind (line 3)",
            "3:55: sessions.s.key-file: an ephemeral session keeps nothing on disk; remove this or its "
                + "kind (line 3)"),
        ProblemCase(
            session("{ state-directory: /s, key-file: /s/key }"),
            "3:38: sessions.s.key-file: lies in the state-directory (line 3) that it is the key to; "
                + "put it elsewhere"),
        ProblemCase(
            "sessions:\n  a: { state-directory: /s, key-file: /k }\n"
                + "  b: { state-directory: /s, key-file: /k }\n",
            "3:25: sessions.b.state-directory: /s is the state directory of session \"a\" already",
            "3:39: sessions.b.key-file: /k is the key file of session \"a\" already"),
        ProblemCase(
            "sessions:\n  a: { state-directory: /s, key-file: /x/../k }\n"
                + "  b: { state-directory: /./s/, key-file: //k }\n",
            "3:25: sessions.b.state-directory: /./s/ is the state directory of session \"a\" already",
            "3:42: sessions.b.key-file: //k is the key file of session \"a\" already"),
        ProblemCase(
            "sessions:\n  a: { cache: { directory: /h/.cache/larder/b }, "
                + "key-file: /h/.local/state/larder/b.key }\n  b: {}\n",
            "2:3: sessions.a.cache.directory: /h/.cache/larder/b is the cache of session \"b\" already",
            "2:60: sessions.a.key-file: /h/.local/state/larder/b.key is the key file of session \"b\" "
                + "already"),
        ProblemCase(
            session("key-file: /h/.local/state/../state/larder/s/key"),
            "3:15: sessions.s.key-file: lies in the state-directory that it is the key to; put it "
                + "elsewhere"),
        ProblemCase(
            session("cache: { disk: 16385 GiB }"),
            "3:20: sessions.s.cache.disk: 16385 GiB is out of range; allowed: 0 B to 16 TiB"),
        ProblemCase(
            session("cache: { disk: 1023 KiB }"),
            "3:20: sessions.s.cache.disk: 1023 KiB is too little for a file; expected 0 B for none, "
                + "or at least 1 MiB"),
        ProblemCase(
            "listeners: [ { address: 127.0.0.1:1, session: s } ]\n" + session("principals: user"),
            "4:17: sessions.s.principals: user, but no listener that leads to the session asks its "
                + "clients who they are (127.0.0.1:1); give one an authentication.password-file or "
                + "token-file, or split by address"),
        ProblemCase(
            "routes: [ { session: s } ]\n" + session("principals: uid"),
            "4:17: sessions.s.principals: uid, but no listener that leads to the session is a Unix "
                + "socket (127.0.0.1:3128); add one, or split by user or address"),
    ]

    static let ofRules: [ProblemCase] = [
        ProblemCase(
            "listeners: [ { address: 127.0.0.1:1, authentication: { password-file: users,\n"
                + "  realm: 'a\"b' } } ]\n",
            "1:71: listeners[0].authentication.password-file: \"users\" is not absolute; expected an "
                + "absolute path such as /srv/larder",
            "2:10: listeners[0].authentication.realm: \"a\"b\" is not up to 128 printable ASCII "
                + "characters, without \" and \\"),
        ProblemCase(
            "routes:\n  - { users: [a] }\n  - { session: defualt, listeners: [127.0.0.1:3129] }\n",
            "2:5: routes[0]: needs a session, the one that answers",
            "3:16: routes[1].session: there is no session \"defualt\"; did you mean \"default\"?",
            "3:36: routes[1].listeners: there is no listener at 127.0.0.1:3129; did you mean "
                + "127.0.0.1:3128?"),
        ProblemCase(
            "routes:\n  - { session: default, uids: [root], users: ['a b'] }\n",
            "2:32: routes[0].uids: \"root\" is not the number of a user of this machine, such as 1000 "
                + "(id -u NAME tells)",
            "2:47: routes[0].users: \"a b\" is not a user name of up to 128 characters, without "
                + "spaces, colons and quotes"),
        ProblemCase(
            "injections:\n  - { credential: 'open sesame!', hosts: [a], sessions: [wrok] }\n"
                + "sessions: { work: }\n",
            "2:19: injections[0].credential: \"…\" is no name; expected the name of a credential: up "
                + "to 64 letters, digits, ., _ and -",
            "2:57: injections[0].sessions: there is no session \"wrok\"; did you mean \"work\"?"),
        ProblemCase(
            "injections:\n  - { hosts: [a] }\n  - { credential: x }\n"
                + "  - { credential: none, hosts: [a] }\n",
            "2:5: injections[0]: needs a credential, by its name in \"larder credentials\"",
            "3:5: injections[1]: needs hosts, such as api.example.com; without any the credential "
                + "would go to every origin",
            "4:19: injections[2].credential: none injects nothing; name a credential, or remove the "
                + "rule"),
        ProblemCase(
            "injections:\n  - { credential: x, hosts: [a], methods: [GET, TRACE] }\n",
            "2:43: injections[0].methods: TRACE gets no credential, as its answer would show it to the "
                + "client; remove it"),
        ProblemCase(
            "parents:\n  - { destinations: [a] }\n  - { via: direct, credential: x }\n"
                + "  - { via: direct, authentication: ntlm }\n",
            "2:5: parents[0]: needs a way, such as via: direct or via: http://proxy.example.com:3128",
            "3:32: parents[1].credential: x is for a proxy, and via is direct; remove it, or name the "
                + "proxy. Credentials for origins belong into injections",
            "4:36: parents[2].authentication: is for a proxy, and via is direct; remove it, or name the "
                + "proxy"),
        ProblemCase(
            "parents:\n  - { via: 'http://me:open-sesame@proxy:3128' }\n",
            "2:12: parents[0].via: \"http://…@proxy:3128\" holds a user name or password: add them by "
                + "\"larder credentials add\" and name them in credential; expected direct, or a proxy "
                + "such as http://proxy.example.com:3128, https://… or socks5://…"),
        ProblemCase(
            "parents:\n  - { via: 'socks5://p:1080', authentication: digest }\n"
                + "  - { via: 'http://p:1080', authentication: basic, sessions: x }\n",
            "2:47: parents[0].authentication: SOCKS5 knows no digest, only user name and password, or "
                + "negotiate; set any",
            "3:5: parents[1].credential: is missing, and authentication is basic; add one by \"larder "
                + "credentials add\" and name it here",
            "3:62: parents[1].sessions: there is no session \"x\""),
        ProblemCase(
            "injection: []\nparent: []\nroute: []\ncore-dump: true\n",
            "1:1: injection: there is no such setting; did you mean \"injections\"?",
            "2:1: parent: there is no such setting; did you mean \"parents\"?",
            "3:1: route: there is no such setting; did you mean \"routes\"?",
            "4:1: core-dump: there is no such setting; did you mean \"core-dumps\"?"),
    ]

    @Test("Tell all that is wrong with them, and where", arguments: Self.ofSessions + Self.ofRules)
    func problem(_ c: ProblemCase) {
        do throws(ConfigurationError) {
            _ = try parse(c.text)
            Issue.record("accepted: \(c.text)")
        } catch {
            #expect(error.problems.map(\.description) == c.messages)
            #expect(!error.description.contains("sesame"))
        }
    }

    @Test(
        "A session is split by users where one way to it asks for them",
        arguments: [
            "listeners: [ { address: 127.0.0.1:1, session: s, authentication: { token-file: /t } } ]\n",
            "listeners: [ { address: 127.0.0.1:1, authentication: { token-file: /t } } ]\n"
                + "routes: [ { session: s } ]\n",
            "listeners: [ { address: 127.0.0.1:1, authentication: { token-file: /t }, "
                + "trusted-clients: [127.0.0.1], named-sessions: [s] } ]\n",
            // Nothing leads there at all.
            "",
        ])
    func principals(_ text: String) throws {
        let settings = try parse(text + session("principals: user")).settings
        #expect(settings.sessions.first { $0.name.text == "s" }?.principals == .user)
    }

    static let warnings: [ProblemCase] = [
        ProblemCase(
            "injections:\n  - { hosts: [.example.com], credential: a }\n"
                + "  - { hosts: [api.example.com], methods: [GET], credential: b }\n",
            "3:5: injections[1]: is never reached: injections[0] (line 2) fits everything that it fits, "
                + "and comes first"),
        ProblemCase(
            "injections:\n  - { hosts: [a], paths: ['/x'], credential: a }\n"
                + "  - { hosts: [a], paths: ['/x'], credential: b }\n",
            "3:5: injections[1]: is never reached: injections[0] (line 2) fits everything that it fits, "
                + "and comes first"),
        ProblemCase(
            "injections:\n  - { sessions: default, hosts: [a], credential: a }\n"
                + "  - { hosts: [a], credential: b }\n  - { hosts: ['a:443'], credential: b }\n",
            "4:5: injections[2]: is never reached: injections[1] (line 3) fits everything that it fits, "
                + "and comes first"),
        ProblemCase(
            "parents:\n  - { via: direct, destinations: 10.0.0.0/8 }\n"
                + "  - { via: 'http://p:1', destinations: 10.1.0.0/16 }\n"
                + "  - { via: 'http://p:1', destinations: 10.0.0.0/7 }\n",
            "3:5: parents[1]: is never reached: parents[0] (line 2) fits everything that it fits, and "
                + "comes first"),
        ProblemCase(
            "routes:\n  - { clients: 10.0.0.0/8, session: default }\n"
                + "  - { clients: 10.1.1.1, session: ephemeral }\n",
            "3:5: routes[1]: is never reached: routes[0] (line 2) fits everything that it fits, and "
                + "comes first"),
        ProblemCase(
            "listeners:\n  - { address: 127.0.0.1:1, named-sessions: [ephemeral] }\n",
            "2:45: listeners[0].named-sessions: has no effect without trusted-clients"),
        ProblemCase(
            "listeners:\n  - { address: 127.0.0.1:1, authentication: { unix-peers: true } }\n",
            "2:59: listeners[0].authentication.unix-peers: has no effect without a Unix socket and a "
                + "password-file or token-file"),
        ProblemCase(
            "routes:\n  - { users: [a], session: default }\n  - { uids: [0], session: default }\n",
            "2:14: routes[0].users: speaks of users, and no listener in question asks who its clients "
                + "are; it fits nobody",
            "3:13: routes[1].uids: speaks of users of this machine, and no listener in question is a "
                + "Unix socket; it fits nobody"),
        ProblemCase(
            "access:\n  - { action: deny, clients: [user:mallory, uid:0] }\n  - { action: allow }\n",
            "2:30: access[0].clients: speaks of users, and no listener in question asks who its clients "
                + "are; it fits nobody",
            "2:30: access[0].clients: speaks of users of this machine, and no listener in question is a "
                + "Unix socket; it fits nobody"),
        ProblemCase(
            "injections:\n  - { hosts: ['a:80'], credential: a }\n  - { hosts: [a], credential: b }\n"
                + "  - { hosts: ['b.a'], paths: ['/x'], credential: b }\n"
                + "  - { hosts: ['b.a'], paths: ['/x/*'], credential: b }\n"),
    ]

    @Test("A listener's files and realm need no restart, but whether it asks, and whom")
    func authenticationLive() throws {
        func listener(_ text: String) throws -> Settings {
            try parse("listeners: [ { address: unix:/s, authentication: { \(text) } } ]\n").settings
        }
        let old = try listener("password-file: /p")
        for (text, waiting) in [
            ("token-file: /t, realm: other", []), ("realm: other", ["listeners[0].authentication"]),
            (
                "password-file: /p, unix-peers: true",
                ["listeners[0].authentication.unix-peers"]
            ),
        ] as [(String, [String])] {
            let new = try listener(text)
            #expect(SettingsTable.needingRestart(from: old, to: new) == waiting)
        }
        var followed = old
        let new = try listener("token-file: /t, realm: other, unix-peers: true")
        followed.follow(new.listeners[0].authentication, at: new.listeners[0].address)
        #expect(followed.listeners[0].authentication.tokenFile?.text == "/t")
        #expect(followed.listeners[0].authentication.passwordFile == nil)
        #expect(!followed.listeners[0].authentication.includesUnixPeers)
    }

    @Test("A session that may be named is reached by listeners that trust somebody")
    func named() throws {
        for (text, isReached) in [
            ("trusted-clients: 127.0.0.1, named-sessions: s", true), ("named-sessions: s", false),
            ("trusted-clients: 127.0.0.1", false),
        ] {
            let settings = try parse(
                "listeners: [ { address: 127.0.0.1:1, \(text) } ]\n" + session("")
            ).settings
            let name = try #require(settings.sessions.first { $0.name.text == "s" }?.name)
            #expect(settings.isReachable(name) == isReached)
        }
    }

    @Test("Tell which rules can have no effect", arguments: Self.warnings)
    func warning(_ c: ProblemCase) throws {
        // That clients need not say who they are is told, too: see SecretWarningTests.
        let told = try parse(c.text).warnings.map(\.description)
        #expect(told.filter { !$0.contains("whoever can connect") } == c.messages)
    }

    @Test("need no restart but for what a session is made of")
    func live() throws {
        let old = try parse("sessions: { default: { cookies: { mode: jar } } }\n").settings
        let text = """
            routes: [ { session: default } ]
            injections: [ { hosts: [a], credential: c } ]
            sessions:
              default:
                cookies: { mode: jar, accept: never, merging: client-only, show-set-cookie: true }
                credentials: { answer: false }
                fields: { X-Build: 1 }
                follow-redirects: true
            """
        let new = try parse(text).settings
        #expect(SettingsTable.needingRestart(from: old, to: new).isEmpty)
        let session = try #require(new.session(named: .default))
        #expect(try #require(old.session(named: .default)).followingLive(session) == session)
        let fixed = try parse(
            """
            listeners: [ { address: 127.0.0.1:3128, authentication: { password-file: /p } } ]
            parents: [ { via: direct } ]
            sessions:
              default: { principals: address, cookies: { mode: pass }, timeouts: { idle: 1 s },
                tls: { minimum: 1.3 }, state-directory: /s, key-file: /k }
            """
        ).settings
        #expect(
            SettingsTable.needingRestart(from: old, to: fixed) == [
                "listeners[0].authentication",
                "sessions.default.principals", "sessions.default.cookies.mode",
                "sessions.default.timeouts.idle", "sessions.default.tls.minimum",
                "sessions.default.state-directory", "sessions.default.key-file", "parents",
            ])
        let kept = try #require(old.session(named: .default))
        #expect(kept.followingLive(try #require(fixed.session(named: .default))) == kept)
    }

    @Test("A route fits by listener, address, user and uid together")
    func routes() throws {
        let settings = try parse(
            """
            listeners: [ { address: 127.0.0.1:1 }, { address: unix:/s } ]
            routes:
              - { listeners: [unix:/s], uids: [7], session: default }
              - { clients: [10.0.0.0/8], users: [alice, bob], session: ephemeral }
            """
        ).settings
        let loopback = settings.listeners[0].address
        let socket = settings.listeners[1].address
        func first(_ client: ClientFacts, at listener: ListenAddress) -> Int? {
            settings.routes.firstIndex { $0.fits(client, at: listener) }
        }
        let ten = IPAddress("10.1.1.1")
        #expect(first(ClientFacts(address: nil, uid: 7), at: socket) == 0)
        #expect(first(ClientFacts(address: nil, uid: 8), at: socket) == nil)
        #expect(first(ClientFacts(address: ten, uid: 7), at: loopback) == nil)
        #expect(first(ClientFacts(address: ten, user: "bob"), at: loopback) == 1)
        #expect(first(ClientFacts(address: ten, user: "carol"), at: loopback) == nil)
        #expect(first(ClientFacts(address: nil, user: "bob"), at: socket) == nil)
    }
}
