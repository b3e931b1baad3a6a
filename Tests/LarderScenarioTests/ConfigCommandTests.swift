import Foundation
import Testing

@testable import LarderProcess

@Suite("larder config", .timeLimit(.minutes(10)))
struct ConfigCommandTests {
    @Test("check tells every mistake with its place")
    func check() async throws {
        let home = try Home()
        try home.write("name: a b\nlimits:\n  hed: 64 KiB\n", to: "bad.yaml")
        let bad = try await home.run("config", "check", home.path + "/bad.yaml")
        #expect(bad.status == 78)
        #expect(bad.errText.contains("\(home.path)/bad.yaml:1:7: "))
        #expect(bad.errText.contains("\(home.path)/bad.yaml:3:3: "))
        #expect(bad.errText.contains("\"head\""))
        try home.configure("name: pantry")
        let good = try await home.run("config", "check", home.configuration)
        #expect(good.status == 0)
        #expect(good.outText == "\(home.configuration): no mistakes\n")
        let missing = try await home.run("config", "check", home.path + "/none.yaml")
        #expect(missing.status == 78 || missing.status == 66)
        #expect(missing.errText.contains("there is no such file"))
    }

    @Test("check tries the files that are named, and the start refuses what it refuses")
    func namedFiles() async throws {
        let home = try Home()
        let users = "\(home.path)/users"
        let bundle = "\(home.path)/bundle.pem"
        try home.write("alice:nonsense\n", to: "users")
        try home.write("no certificate\n", to: "bundle.pem")
        let listener = "listeners: [ { address: \"127.0.0.1:0\", authentication: { password-file: "
        for (text, place, path) in [
            ("\(listener)\(users) } } ]", "listeners[0].authentication.password-file", users),
            (
                "\(listener)\(home.path)/none } } ]", "listeners[0].authentication.password-file",
                "\(home.path)/none"
            ),
            (
                "sessions:\n  default:\n    ca-file: \(bundle)", "sessions.default.ca-file",
                bundle
            ),
            (
                "sessions:\n  default:\n    ca-file: \(home.path)/none",
                "sessions.default.ca-file", "\(home.path)/none"
            ),
        ] {
            try home.write(text + "\n", to: "named.yaml")
            let file = "\(home.path)/named.yaml"
            let check = try await home.run("config", "check", file)
            #expect(check.status == 78, "\(text)")
            #expect(check.errText.contains("\(place): \(path): "), "\(check.errText)")
            let serve = try await home.run("serve", "--config", file, "--listen", "127.0.0.1:0")
            #expect(serve.status == 78, "\(serve.errText)")
            #expect(serve.errText.contains(path), "\(serve.errText)")
        }
        try home.write("log: { access: { to: \(home.path)/none/access.log } }\n", to: "log.yaml")
        let log = try await home.run("config", "check", "\(home.path)/log.yaml")
        #expect(log.status == 0)
        #expect(log.outText.contains("log.access.to: \(home.path)/none: cannot be written to"))
    }

    @Test("show tells every value in force and where it comes from")
    func show() async throws {
        let home = try Home()
        try home.configure("name: pantry")
        let show = try await home.run("config", "show", "--config", home.configuration)
        #expect(show.status == 0)
        let name = show.lines.first { $0.hasPrefix("name ") }
        #expect(name?.contains("pantry") == true)
        #expect(name?.hasSuffix("\(home.configuration):2") == true)
        #expect(show.lines.contains { $0.hasPrefix("timeouts.idle ") && $0.hasSuffix("default") })
        let plain = try await home.run("config", "show", "--json")
        #expect(plain.status == 0)
        for line in plain.lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["origin"] as? String == "default")
        }
    }

    @Test("settings describes each; what ships as a file checks out, with and without its marks")
    func settings() async throws {
        let home = try Home()
        let one = try await home.run("config", "settings", "timeouts.idle")
        #expect(one.status == 0)
        #expect(one.lines.first == "timeouts.idle: 2 min")
        // An exact name is one setting, though others end like it.
        #expect(one.lines.filter { !$0.isEmpty && !$0.hasPrefix(" ") }.count == 1)
        let several = try await home.run("config", "settings", "imeouts.idle")
        let names = several.lines.filter { $0.contains(".idle: ") }
        #expect(names.count == 2, "\(several.outText)")
        let none = try await home.run("config", "settings", "nonsense")
        #expect(none.status == 1)
        let yaml = try await home.run("config", "settings", "--yaml")
        try home.write(yaml.outText, to: "shipped.yaml")
        let check = try await home.run("config", "check", home.path + "/shipped.yaml")
        #expect(check.status == 0, "\(check.errText)")
    }
}
