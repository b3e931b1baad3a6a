import Foundation
import Testing

@testable import LarderConfig

@Suite("Cache rules in the configuration")
struct CacheRuleSettingsTests {
    private func parse(_ text: String) throws(ConfigurationError) -> LoadedSettings {
        try Configuration.parse(
            text, file: "/e/larder.yaml", environment: ProcessEnvironment(["HOME": "/h"]))
    }

    @Test("are read in their order, with their names and lines")
    func shape() throws {
        let loaded = try self.parse(
            """
            cache-rules:
              - name: pinned
                hosts: [.example.com, "*.example.org:8080-8090", "[::1]:80", 127.0.0.1]
                paths: "/pool/*"
                minimum: 30 d
                ignore: [no-store, reload]
                negative: {404: 30 s, 5xx: 5 s}
              - { sessions: default, maximum: 0, store: never, stale-if-error: 1 h }
            """)
        let rules = loaded.cacheRules
        #expect(rules.map(\.name) == ["pinned", "cache-rules[1]"])
        #expect(rules.map(\.file) == ["/e/larder.yaml", "/e/larder.yaml"])
        #expect(rules.map(\.line) == [2, 8])
        #expect(rules.map(\.rule) == loaded.settings.cacheRules)
        let first = rules[0].rule
        #expect(first.hosts.map(\.host) == [".example.com", "*.example.org", "[::1]", "127.0.0.1"])
        #expect(first.hosts.map { $0.ports?.ports } == [nil, 8080...8090, 80...80, nil])
        #expect(first.paths.map(\.pattern) == ["/pool/*"])
        #expect(first.minimum == .days(30))
        #expect(first.ignore == [.noStore, .reload])
        #expect(first.negative.map(\.settingText) == ["404: 30 s", "5xx: 5 s"])
        #expect(first.negative.map(\.statuses) == [404...404, 500...599])
        #expect(rules[1].rule.sessions == [.default])
        #expect(rules[1].rule.maximum == .seconds(0))
        #expect(rules[1].rule.store == .never)
        #expect(rules[1].rule.staleIfError == .hours(1))
        let shown = SettingsTable.effective(loaded)
        #expect(
            shown.first { $0.path == "cache-rules[0].negative" }
                == EffectiveSetting(
                    path: "cache-rules[0].negative", value: "{404: 30 s, 5xx: 5 s}",
                    origin: .file(line: 7)))
    }

    static let problems: [(text: String, messages: [String])] = [
        (
            "cache-rules:\n  - { hosts: ['a b', '[::1'], paths: [pool, /a], ignore: [nostore] }\n",
            [
                "2:15: cache-rules[0].hosts: \"a b\" is not a host such as example.com, "
                    + ".example.com, *.example.com:443 or [::1]",
                "2:22: cache-rules[0].hosts: \"[::1\" has no closing bracket; expected a host such "
                    + "as example.com, .example.com, *.example.com:443 or [::1]",
                "2:39: cache-rules[0].paths: \"pool\" begins with neither / nor *; expected a path "
                    + "with wildcards, such as /pool/*.deb",
                "2:59: cache-rules[0].ignore: \"nostore\" is unknown (did you mean \"no-store\"?); "
                    + "expected no-store, private, no-cache, must-revalidate, max-age, s-maxage, "
                    + "expires, vary, reload, set-cookie or authorization",
            ]
        ),
        (
            "cache-rules:\n  - { minimum: 2 d, maximum: 1 d }\n",
            ["2:5: cache-rules[0]: the minimum of 2 d is above the maximum of 1 d"]
        ),
        (
            "cache-rules:\n  - { minimun: 2 d }\n",
            ["2:7: cache-rules[0].minimun: there is no such setting; did you mean \"minimum\"?"]
        ),
        (
            "cache-rules:\n  - { sessions: [defualt] }\n",
            [
                "2:5: cache-rules[0].sessions: there is no session \"defualt\"; did you mean "
                    + "\"default\"?"
            ]
        ),
        (
            "cache-rules:\n  - { negative: {200: 1 s, 404: 30, x: 1 s} }\n",
            [
                "2:18: cache-rules[0].negative: \"200: 1 s\" is about a status that is no error; "
                    + "expected an error's status and a time, such as 404: 30 s or 5xx: 5 s",
                "2:28: cache-rules[0].negative: \"404: 30\" has no unit: write \"30 s\", for "
                    + "example; expected an error's status and a time, such as 404: 30 s or 5xx: 5 s",
                "2:37: cache-rules[0].negative: \"x: 1 s\" is not an error's status and a time, "
                    + "such as 404: 30 s or 5xx: 5 s",
            ]
        ),
        (
            "cache-rules:\n  - { negative: [404, 30] }\n  - { negative: {404: [1 s]} }\n",
            [
                "2:17: cache-rules[0].negative: takes pairs, such as {404: 30 s}",
                "3:18: cache-rules[1].negative: takes pairs of plain values, such as {404: 30 s}",
            ]
        ),
        (
            "cache-rules: { a: b }\n",
            ["1:14: cache-rules: takes a list, each item beginning with \"- \""]
        ),
        (
            "sessions: { default: { cache-policy: offline, freshness: { negative: {600: 1 s} } } }\n",
            [
                "1:38: sessions.default.cache-policy: \"offline\" is not use-protocol, "
                    + "reload-ignoring-local, reload-ignoring-all, return-cache-else-load, "
                    + "return-cache-dont-load or reload-revalidating",
                "1:71: sessions.default.freshness.negative: \"600: 1 s\" is about a status that is "
                    + "no error; expected an error's status and a time, such as 404: 30 s or 5xx: 5 s",
            ]
        ),
    ]

    @Test("are told what is wrong with them", arguments: Self.problems)
    func problem(_ c: (text: String, messages: [String])) {
        do throws(ConfigurationError) {
            _ = try self.parse(c.text)
            Issue.record("accepted: \(c.text)")
        } catch {
            #expect(
                error.problems.map(\.description) == c.messages.map { "/e/larder.yaml:\($0)" })
        }
    }

    @Test("need no restart when they change, nor do the settings of freshness")
    func live() throws {
        let old = try self.parse("").settings
        let new = try self.parse(
            """
            cache-rules: [ { minimum: 1 d } ]
            sessions:
              default:
                cache-policy: return-cache-dont-load
                freshness: { negative: {404: 1 s}, heuristic-fraction: 0.5, ftp: 1 h }
                cache: { variants: 2, store-post: false, store-set-cookie: false, semantic-vary: no,
                  no-vary-search: false }
            """
        ).settings
        #expect(SettingsTable.needingRestart(from: old, to: new).isEmpty)
        let session = try #require(new.session(named: .default))
        let followed = try #require(old.session(named: .default)).followingLive(session)
        #expect(followed == session)
    }

    @Test("a session goes on with what may not change while it runs")
    func fixed() throws {
        let old = SessionSettings(name: .default)
        var new = old
        new.cache.isShared = false
        new.cache.disk = .gibibytes(1)
        new.http2 = false
        #expect(old.followingLive(new) == old)
    }

    @Test("nothing but an empty mapping is needed for no negative caching")
    func emptyPairs() throws {
        let loaded = try self.parse("sessions: { default: { freshness: { negative: {} } } }\n")
        #expect(loaded.settings == Settings())
    }
}

@Suite("Presets")
struct PresetLoadingTests {
    /// A directory with these files, for as long as `body` takes.
    private func withFiles(
        _ files: [String: String], _ body: (String) throws -> Void
    ) throws {
        let directory = FileManager.default.temporaryDirectory.path + "/" + UUID().uuidString
        for (name, text) in files {
            let url = URL(fileURLWithPath: "\(directory)/\(name)")
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }

    private func messages(_ text: String, _ environment: ProcessEnvironment, file: String)
        -> [String]
    {
        do throws(ConfigurationError) {
            _ = try Configuration.parse(text, file: file, environment: environment)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test("come after the rules of the file, in the order in which they are named")
    func order() throws {
        let files = [
            "presets/a.yaml":
                "cache-rules:\n  - { name: one, minimum: 1 d }\n  - { maximum: 1 d }\n",
            "presets/b.yaml": "# nothing\n",
            "presets/c.yaml": "cache-rules:\n  - { name: three }\n",
        ]
        try self.withFiles(files) { directory in
            let loaded = try Configuration.parse(
                "presets: [c, b, a]\ncache-rules: [ { name: own } ]\n",
                file: "\(directory)/larder.yaml", environment: ProcessEnvironment(["HOME": "/h"]))
            #expect(loaded.cacheRules.map(\.name) == ["own", "three", "one", "a[1]"])
            #expect(loaded.cacheRules[3].file == "\(directory)/presets/a.yaml")
            #expect(loaded.cacheRules.map(\.line) == [2, 2, 2, 3])
            #expect(loaded.settings.cacheRules.count == 1)
        }
    }

    @Test("are found beside the file, at the user's, where the program is, or where a setting says")
    func places() throws {
        let files = [
            "conf/presets/a.yaml": "", "config/larder/presets/b.yaml": "",
            "prefix/share/larder/presets/c.yaml": "", "tree/conf/presets/d.yaml": "",
            "own/e.yaml": "",
        ]
        try self.withFiles(files) { directory in
            let file = "\(directory)/conf/larder.yaml"
            func loads(_ text: String, executable: String = "/x/bin/larder") -> Bool {
                self.messages(
                    text,
                    ProcessEnvironment(
                        ["HOME": "/h", "XDG_CONFIG_HOME": "\(directory)/config"],
                        executable: executable),
                    file: file
                ).isEmpty
            }
            #expect(loads("presets: a"))
            #expect(loads("presets: b"))
            #expect(!loads("presets: c"))
            #expect(loads("presets: c", executable: "\(directory)/prefix/bin/larder"))
            #expect(loads("presets: d", executable: "\(directory)/tree/.build/debug/larder"))
            #expect(loads("presets: e\npreset-directory: \(directory)/own"))
            #expect(!loads("presets: a\npreset-directory: \(directory)/own"))
        }
    }

    @Test("that are not there, or wrong in themselves, are told with their places")
    func problems() throws {
        let files = [
            "p/debian.yaml": "", "p/pypi.yaml": "",
            "p/bad.yaml": "cache-rules:\n  - { minimum: 1 }\nrules: []\n",
        ]
        try self.withFiles(files) { directory in
            let messages = self.messages(
                "preset-directory: \(directory)/p\npresets: [debain, xyz, bad, ../p/pypi]\n",
                ProcessEnvironment(["HOME": "/h"]), file: "f")
            #expect(messages.contains { $0.hasPrefix("f:2:29: presets: \"../p/pypi\" is not") })
            let unknown = self.messages(
                "preset-directory: \(directory)/p\npresets: [debain, xyz, bad]\n",
                ProcessEnvironment(["HOME": "/h"]), file: "f")
            #expect(
                Set(unknown) == [
                    "f:2:11: presets: there is no preset \"debain\"; did you mean \"debian\"?",
                    "f:2:19: presets: there is no preset \"xyz\"; there are: bad, debian, pypi",
                    "\(directory)/p/bad.yaml:2:16: cache-rules[0].minimum: \"1\" has no unit: "
                        + "write \"1 s\", for example; expected a time such as 1500 ms, 30 s, 5 min, "
                        + "2 h or 1 d",
                    "\(directory)/p/bad.yaml:3:1: rules: a preset has only \"cache-rules:\"",
                ])
            #expect(unknown.count == 4)
        }
    }
}
