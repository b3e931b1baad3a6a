import Foundation
import Glibc

/// A user of the test's own: a home directory with all that XDG names, and programs that run there.
final class Home: Sendable {
    let path: String
    let environment: [String: String]

    init() throws {
        var template = Array("/tmp/larder-XXXXXX\0".utf8CString)
        guard let made = unsafe mkdtemp(&template) else { throw TimedOut(description: "mkdtemp") }
        let path = unsafe String(cString: made)
        self.path = path
        var environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"]
        let places = [
            "HOME": "home", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config",
            "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp",
        ]
        for (name, directory) in places {
            environment[name] = "\(path)/\(directory)"
            try FileManager.default.createDirectory(
                atPath: "\(path)/\(directory)", withIntermediateDirectories: true)
        }
        self.environment = environment
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    var cache: String { "\(self.path)/cache/larder/default" }
    var configuration: String { "\(self.path)/larder.yaml" }

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(self.path)/\(name)"))
    }

    /// The settings that every scenario shares, and those of one.
    func configure(_ settings: String) throws {
        let listener =
            settings.contains("listeners:") ? "" : "listeners: [{address: '127.0.0.1:0'}]\n"
        try self.write(listener + settings + "\n", to: "larder.yaml")
    }

    /// Starts `larder` with these arguments, and these variables beside those of every scenario.
    func start(
        _ arguments: [String], path: String = Program.larder, variables: [String: String] = [:]
    ) throws -> Program {
        try Program(
            path, arguments, environment: self.environment.merging(variables) { $1 })
    }

    /// Runs `larder` with these arguments to its end.
    func run(_ arguments: String...) async throws -> Program.Output {
        try await self.start(arguments).ended()
    }

    /// Runs `larder cache …` on the scenario's configuration.
    func cache(_ arguments: String...) async throws -> Program.Output {
        try await self.start(["cache"] + arguments + ["--config", self.configuration]).ended()
    }

    /// Starts the proxy, and waits until clients can connect.
    func serve(variables: [String: String] = [:]) async throws -> ProxyProcess {
        let program = try self.start(
            ["serve", "--config", self.configuration], variables: variables)
        let proxy = ProxyProcess(program)
        try await proxy.announced()
        return proxy
    }

    /// Every file below, with what can be seen of a change.
    var tree: [String: String] {
        var tree: [String: String] = [:]
        let all = FileManager.default.enumerator(atPath: self.path)
        while let name = all?.nextObject() as? String {
            let facts = try? FileManager.default.attributesOfItem(atPath: "\(self.path)/\(name)")
            let date = (facts?[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
            tree[name] = "\(facts?[.size] ?? 0) \(date)"
        }
        return tree
    }
}

/// A running `larder serve`.
struct ProxyProcess: Sendable {
    let program: Program

    init(_ program: Program) {
        self.program = program
    }

    var log: String { self.program.output.value.errText }

    /// Waits until clients can connect.
    func announced() async throws {
        try await self.program.said("listening on 127.0.0.1:")
        try await self.program.said("; cache: ")
    }

    /// As its announcement has it.
    var port: Int {
        let tail = self.log.components(separatedBy: "listening on 127.0.0.1:").dropFirst().first
        return Int(tail?.prefix { $0.isNumber } ?? "") ?? 0
    }

    func connect(reads: Bool = true, source: String? = nil) async throws -> Wire {
        try await Wire.connect(port: self.port, reads: reads, source: source)
    }

    /// A request on a connection of its own, and its response.
    func send(
        _ method: String, _ url: String, _ fields: [String] = [], body: String? = nil
    ) async throws -> Message {
        let client = try await self.connect()
        var request = Self.request(method, url, fields)
        if let body { request = request.with(body) }
        try await client.send(request)
        let response = try await client.message(to: method)
        try await client.close()
        return response
    }

    func get(_ url: String, _ fields: String...) async throws -> Message {
        try await self.send("GET", url, fields)
    }

    /// Asks until the answer comes from the cache: what was relayed is stored a moment later.
    func getStored(_ url: String) async throws -> Message {
        for _ in 0..<200 {
            let response = try await self.send("GET", url)
            if response["Cache-Status"]?.hasPrefix("larder; hit") == true { return response }
        }
        throw TimedOut(description: "\(url) was never stored")
    }

    static func request(_ method: String, _ url: String, _ fields: [String]) -> String {
        let authority = url.components(separatedBy: "/").dropFirst(2).first ?? ""
        let lines = ["\(method) \(url) HTTP/1.1", "Host: \(authority)"] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// Memory that is the process's own, in KiB: pages of mapped files do not count (proc(5)).
    var anonymousMemory: Int {
        let text =
            (try? String(contentsOfFile: "/proc/\(self.program.pid)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("RssAnon:") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }

    /// Has it drain and end; it must end well.
    func stop() async throws -> Program.Output {
        self.program.signal(SIGTERM)
        return try await self.program.ended()
    }

    /// Ends it as a crash would.
    func crash() async throws {
        self.program.signal(SIGKILL)
        try await self.program.ended()
    }
}

extension String {
    /// A request head with content.
    func with(_ body: String) -> String {
        // CRLF is one `Character`.
        "\(self.dropLast(1))Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
}
