import Foundation
import Glibc
import Testing

@testable import LarderConfig

@Suite("conf/larder.yaml")
struct ShippedFileTests {
    private static let path: String = {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/conf/larder.yaml"
    }()

    @Test("is what the table says")
    func same() throws {
        let text = try #require(try Configuration.contents(Self.path))
        #expect(
            text == SettingsTable.shippedFile,
            "write it anew: larder config settings --yaml > conf/larder.yaml")
    }

    @Test("changes nothing as it stands")
    func inert() throws {
        let loaded = try Configuration.parse(
            SettingsTable.shippedFile, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
        #expect(loaded.settings == Settings())
        #expect(loaded.origins.isEmpty)
    }

    @Test("holds the default of every setting, once the marks are taken away")
    func uncommented() throws {
        let lines = SettingsTable.shippedFile.split(
            separator: "\n", omittingEmptySubsequences: false)
        let text = lines.map { line -> Substring in
            guard line.hasPrefix("#"), line != "#" else { return line }
            let rest = line.dropFirst()
            // Prose has one space after the mark, settings and what stands
            // among them have none or more.
            return rest.hasPrefix(" ") && !rest.hasPrefix("  ") ? line : rest
        }.joined(separator: "\n")
        let loaded = try Configuration.parse(
            text, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
        var expected = Settings()
        expected.cacheRules = [SettingsTable.cacheRuleExample]
        expected.routes = [SettingsTable.routeExample]
        expected.injections = [SettingsTable.injectionExample]
        expected.parents = [SettingsTable.parentExample]
        #expect(loaded.settings == expected)
        let given = Set(loaded.origins.keys)
        let paths = SettingsTable.descriptions.map {
            $0.path.replacing("NAME", with: "default").replacing("[]", with: "[0]")
        }
        #expect(given == Set(paths))
    }

    @Test("says of what stands in a list what it is unless given, which an example is not")
    func examples() throws {
        let clients = try #require(
            SettingsTable.descriptions.first { $0.path == "access[].clients" })
        #expect(clients.standard == "[]")
        #expect(clients.example == "[127.0.0.0/8, ::1, unix]")
        #expect(
            SettingsTable.shippedFile.contains("(list of clients; unless given: []; reload)"))
        #expect(
            SettingsTable.descriptions.filter { $0.example != nil }.allSatisfy {
                $0.path.contains("[]")
            })
    }

    @Test("keeps to its width")
    func width() {
        for line in SettingsTable.shippedFile.split(separator: "\n") {
            #expect(line.count <= 100, "\(line)")
        }
    }
}

@Suite("conf/examples")
struct ExampleFileTests {
    @Test(
        "are right, and nothing in them is without effect",
        arguments: ["private-jar", "injection", "company-parent", "lan"])
    func right(_ name: String) throws {
        let parts = #filePath.split(separator: "/").dropLast(3)
        let path = "/" + parts.joined(separator: "/") + "/conf/examples/\(name).yaml"
        let loaded = try Configuration.load(
            named: path, environment: ProcessEnvironment(["HOME": "/h"]), currentDirectory: "/")
        #expect(loaded.warnings.isEmpty)
        #expect(loaded.settings != Settings())
    }
}

@Suite("Where things lie")
struct PlacesTests {
    private static func directory() throws -> String {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-places-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url.path
    }

    private static func keyFile(_ stateDirectory: String, home: String) throws -> String? {
        let loaded = try Configuration.parse(
            "sessions: {default: {state-directory: \(stateDirectory)}}", file: "f",
            environment: ProcessEnvironment(["HOME": home]))
        return loaded.keyFile(of: loaded.settings.sessions[0])
    }

    @Test("A key is named after its state directory: two of one session's name have two")
    func keys() throws {
        #expect(try Self.keyFile("/srv/one", home: "/h") == "/srv/one.key")
        #expect(try Self.keyFile("/srv/two/", home: "/h") == "/srv/two.key")
    }

    @Test("A key that lay among the others goes on to open what it encrypted, and nothing else")
    func formerKey() throws {
        let (home, files) = (try Self.directory(), FileManager.default)
        defer { try? files.removeItem(atPath: home) }
        let (state, place) = (home + "/state", home + "/.local/state/larder")
        for path in [state, place] {
            try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        let former = place + "/default.key"
        #expect(files.createFile(atPath: former, contents: Data([1])))
        #expect(try Self.keyFile(state, home: home) == state + ".key", "nothing is encrypted yet")
        #expect(files.createFile(atPath: state + "/state.mdb", contents: Data([1])))
        #expect(try Self.keyFile(state, home: home) == former)
        #expect(files.createFile(atPath: state + ".key", contents: Data([1])))
        #expect(try Self.keyFile(state, home: home) == state + ".key")
    }

    @Test("A file that is a link to nowhere is no absent one: the rules in it would be lost")
    func dangling() throws {
        let (home, files) = (try Self.directory(), FileManager.default)
        defer { try? files.removeItem(atPath: home) }
        let path = home + "/larder.yaml"
        #expect(try Configuration.contents(path) == nil)
        try files.createSymbolicLink(atPath: path, withDestinationPath: home + "/none.yaml")
        let error = #expect(throws: ConfigurationError.self) { try Configuration.contents(path) }
        #expect(error?.description.contains(path) == true)
        try Data("{}".utf8).write(to: URL(fileURLWithPath: home + "/none.yaml"))
        #expect(try Configuration.contents(path) == "{}")
    }

    struct Case: Sendable {
        var variables: [String: String]
        var home: String?
        var file: String?
        var cache: String
        var sockets: [String]
    }

    static let cases: [Case] = [
        Case(
            variables: ["HOME": "/srv/u", "XDG_RUNTIME_DIR": "/run/user/1"],
            cache: "/srv/u/.cache/larder",
            sockets: [
                "/run/user/1/larder/control-default.sock",
                "/srv/u/.cache/larder/control-default.sock",
            ]),
        Case(
            variables: ["HOME": "/h", "XDG_CACHE_HOME": "/c/"],
            file: "/h/.config/larder/larder.yaml",
            cache: "/c/larder", sockets: ["/c/larder/control-default.sock"]),
        Case(
            variables: ["HOME": "/h", "XDG_CACHE_HOME": "relative"], file: "/x/larder/larder.yaml",
            cache: "/h/.cache/larder", sockets: ["/h/.cache/larder/control-cf68f44d.sock"]),
        Case(
            variables: ["LARDER_SYSTEM": "1", "HOME": "/root"], cache: "/var/cache/larder",
            sockets: ["/run/larder/control-default.sock"]),
        Case(
            variables: ["HOME": "/root"], file: "/etc/larder/larder.yaml",
            cache: "/var/cache/larder",
            sockets: ["/run/larder/control-default.sock"]),
        Case(
            variables: [:], home: "/h", cache: "/h/.cache/larder",
            sockets: ["/h/.cache/larder/control-default.sock"]),
        Case(
            variables: [:], cache: "/var/cache/larder",
            sockets: ["/run/larder/control-default.sock"]),
        // A user without a home directory, as containers have them.
        Case(
            variables: ["XDG_CACHE_HOME": "/c"], cache: "/c/larder",
            sockets: ["/c/larder/control-default.sock"]),
        Case(
            variables: ["XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"],
            cache: "/var/cache/larder",
            sockets: ["/r/larder/control-default.sock", "/s/larder/control-default.sock"]),
    ]

    @Test("follows the environment and the configuration", arguments: Self.cases)
    func places(_ c: Case) {
        let places = Places.of(ProcessEnvironment(c.variables, home: c.home), configuration: c.file)
        #expect(places.cacheDirectory == c.cache)
        #expect(places.controlSockets(forConfiguration: c.file) == c.sockets)
    }

    @Test("The sockets of the examples can be reached by those for whom they are")
    func reach() throws {
        let conf = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../conf").standardizedFileURL.path
        let unit = try String(contentsOfFile: conf + "/larder.service", encoding: .utf8)
            .split(separator: "\n")
        let mode = unit.first { $0.hasPrefix("RuntimeDirectoryMode=") }?.split(separator: "=").last
        let bits = try #require(mode.flatMap { UInt16($0, radix: 8) })
        var sockets = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: conf + "/examples") {
            let text = try String(contentsOfFile: conf + "/examples/" + name, encoding: .utf8)
            let loaded = try Configuration.parse(
                text, file: name, environment: ProcessEnvironment(["LARDER_SYSTEM": "1"]))
            for listener in loaded.settings.listeners where listener.mode.bits & 0o006 != 0 {
                guard case .unix(let path) = listener.address else { continue }
                sockets += 1
                #expect("\(path)".hasPrefix("/run/larder/"), "\(name): \(path)")
                // To connect, others need not list the directory.
                #expect(bits & 0o001 != 0, "\(name): \(path)")
            }
        }
        #expect(sockets > 0)
        #expect(bits & 0o066 == 0)
    }

    @Test("A proxy is known by its file, however that is spelled")
    func spelling() throws {
        let files = FileManager.default
        let directory = NSTemporaryDirectory() + "/larder-places-\(UUID().uuidString)"
        try files.createDirectory(
            atPath: directory + "/user/.config/larder", withIntermediateDirectories: true)
        defer { try? files.removeItem(atPath: directory) }
        let usual = directory + "/user/.config/larder/larder.yaml"
        for file in [directory + "/l.yaml", usual] { try Data().write(to: URL(filePath: file)) }
        try files.createSymbolicLink(
            atPath: directory + "/link.yaml", withDestinationPath: "l.yaml")
        try files.createSymbolicLink(
            atPath: directory + "/usual.yaml", withDestinationPath: usual)
        let environment = ProcessEnvironment(["HOME": directory + "/user"])
        func sockets(_ name: String) throws -> [String] {
            try Configuration.load(
                named: name, environment: environment, currentDirectory: directory
            ).controlSockets
        }
        let plain = try sockets("l.yaml")
        for name in ["./l.yaml", "user/../l.yaml", "link.yaml", directory + "//l.yaml"] {
            #expect(try sockets(name) == plain, "\(name)")
        }
        #expect(try sockets("usual.yaml").allSatisfy { $0.hasSuffix("/control-default.sock") })
        #expect(try sockets("usual.yaml") != plain)
    }

    @Test("A path as it is spelled keeps its links, and `..` leads where it does")
    func unfollowed() throws {
        let files = FileManager.default
        let directory = ResolvedPath.of(try Self.directory())
        defer { try? files.removeItem(atPath: directory) }
        try files.createDirectory(
            atPath: directory + "/v1/deep", withIntermediateDirectories: true)
        try files.createSymbolicLink(atPath: directory + "/current", withDestinationPath: "v1")
        try files.createSymbolicLink(atPath: directory + "/deep", withDestinationPath: "v1/deep")
        let cases = [
            "/current/l.yaml": "/current/l.yaml", "//./current//l.yaml/": "/current/l.yaml",
            "/current/deep/../l.yaml": "/current/l.yaml", "/deep/../l.yaml": "/v1/l.yaml",
            "/current/../l.yaml": "/l.yaml", "/none/../l.yaml": "/l.yaml",
        ]
        for (path, expected) in cases {
            #expect(ResolvedPath.unfollowed(directory + path) == directory + expected, "\(path)")
        }
        #expect(ResolvedPath.unfollowed("/../a/../..") == "/")
    }

    @Test("A proxy is known by the links to its file, too, when they lead elsewhere")
    func swappedLink() throws {
        let files = FileManager.default
        let directory = try Self.directory()
        defer { try? files.removeItem(atPath: directory) }
        let usual = directory + "/user/.config/larder"
        for path in [directory + "/v1", directory + "/v2", usual] {
            try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        for file in ["/v1/l.yaml", "/v2/l.yaml"] {
            try Data().write(to: URL(filePath: directory + file))
        }
        let link = directory + "/current"
        try files.createSymbolicLink(atPath: link, withDestinationPath: "v1")
        func load(_ name: String) throws -> LoadedSettings {
            try Configuration.load(
                named: name, environment: ProcessEnvironment(["HOME": directory + "/user"]),
                currentDirectory: directory)
        }
        func asked(_ name: String) throws -> [String] { try load(name).likelyControlSockets }
        let running = try load("current/l.yaml")
        let served = running.controlSockets + running.furtherControlSockets
        #expect(Set(served).count == 2)
        #expect(try load("v1/l.yaml").furtherControlSockets.isEmpty)
        let foreign = running.places.furtherControlSockets(forConfiguration: "/dev/fd/63")
        #expect(foreign.isEmpty, "another file in each process")
        let names = ["current/l.yaml", ".//current/l.yaml", "v2/../current/l.yaml", "v1/l.yaml"]
        for name in names { #expect(try asked(name).first == served[0], "\(name)") }

        try files.removeItem(atPath: link)
        try files.createSymbolicLink(atPath: link, withDestinationPath: "v2")
        for name in names {
            let places = Set(try asked(name))
            #expect(!places.isDisjoint(with: served), "\(name)")
        }
        let other = try asked("v2/l.yaml")
        #expect(Set(other).isDisjoint(with: served))
        #expect(try asked("current/l.yaml") == other + running.furtherControlSockets)

        try files.createSymbolicLink(
            atPath: usual + "/larder.yaml", withDestinationPath: link + "/l.yaml")
        let found = try load(usual + "/larder.yaml")
        #expect(found.controlSockets.allSatisfy { $0.hasSuffix("/control-default.sock") })
        #expect(found.furtherControlSockets.isEmpty)
    }

    @Test("A proxy that was started before its socket got a place is looked for where it was")
    func movedSocket() throws {
        func load(_ text: String) throws -> LoadedSettings {
            try Configuration.parse(
                text, file: "/a/l.yaml", environment: ProcessEnvironment(["HOME": "/h"]))
        }
        let before = try load("")
        #expect(before.likelyControlSockets == before.controlSockets)
        let moved = try load("control: { socket: /s }\n")
        #expect(moved.controlSockets == ["/s"])
        #expect(moved.likelyControlSockets == ["/s"] + before.controlSockets)
        let named = try load("control: { socket: \(before.controlSockets[0]) }\n")
        #expect(named.likelyControlSockets == before.controlSockets)
    }

    @Test("The configuration is looked for in the user's place, then in the system's")
    func files() {
        #expect(
            ProcessEnvironment(["HOME": "/h"]).configurationFiles
                == ["/h/.config/larder/larder.yaml", "/etc/larder/larder.yaml"])
        #expect(
            ProcessEnvironment(["LARDER_SYSTEM": "1"]).configurationFiles == [
                "/etc/larder/larder.yaml"
            ])
    }

    @Test("A file that is named must exist")
    func missing() {
        do throws(ConfigurationError) {
            _ = try Configuration.load(
                named: "no.yaml", environment: ProcessEnvironment(["HOME": "/h"]),
                currentDirectory: "/nowhere")
            Issue.record("loaded")
        } catch {
            #expect(error.description == "/nowhere/no.yaml: there is no such file")
        }
    }

    @Test("A directory is no file")
    func directory() {
        #expect(throws: ConfigurationError.self) {
            try Configuration.load(
                named: "/", environment: ProcessEnvironment([:]), currentDirectory: "/")
        }
    }
}
