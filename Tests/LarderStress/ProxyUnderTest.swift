import Foundation
import Glibc
import LarderHTTP
import Synchronization

/// `larder serve` in a home of its own, started again and again.
final class ProxyUnderTest: Sendable {
    /// What proc(5) says of a running proxy.
    struct Figures: Sendable {
        var anonymous = 0
        var peak = 0
        var descriptors = 0
        var threads = 0

        mutating func formMaximum(_ other: Figures) {
            self.anonymous = max(self.anonymous, other.anonymous)
            self.peak = max(self.peak, other.peak)
            self.descriptors = max(self.descriptors, other.descriptors)
            self.threads = max(self.threads, other.threads)
        }
    }

    private struct State {
        var pid: pid_t = 0
        var isExpectedToEnd = true
        var status: Int32?
        var isAnnounced = false
        var surprises: [String] = []
        var lastLines: [String] = []
    }

    private let options: Soak.Options
    private let state = Mutex(State())
    private let bell = Bell()
    let variables: [String: String]
    var configuration: String { self.options.directory + "/larder.yaml" }
    var cache: String { self.options.directory + "/disk" }
    var faults: String { self.options.directory + "/faults" }

    init(_ options: Soak.Options, port: Int) throws {
        self.options = options
        var variables: [String: String] = ["LC_ALL": "C"]
        let places = [
            "HOME": "home", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config",
            "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp",
        ]
        for (name, place) in places {
            let path = "\(options.directory)/\(place)"
            variables[name] = path
            _ = unsafe mkdir(path, 0o700)
        }
        self.variables = variables
        let text = """
            listeners: [{address: '127.0.0.1:\(port)'}]
            sessions:
              default:
                cache:
                  memory: \(options.memory.bytes) B
                  disk: \(options.capacity.bytes) B
                  directory: '\(self.cache)'
            log: {access: {to: none}}

            """
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.configuration))
    }

    /// Starts it, and waits until clients can connect.
    ///
    /// - Returns: how long that took.
    func start() throws -> Duration {
        var variables = self.variables
        if let library = self.options.library {
            _ = try FaultControl(path: self.faults)
            variables["LD_PRELOAD"] = library
            variables["LARDER_DISK_FAULTS"] = self.faults
        }
        let begun = ContinuousClock.now
        let child = try Child(
            self.options.larder, ["serve", "--config", self.configuration], variables: variables,
            hearsErrors: true)
        self.state.withLock { state in
            state.pid = child.pid
            state.isExpectedToEnd = false
            state.status = nil
            state.isAnnounced = false
        }
        nonisolated(unsafe) let handedOver = child  // Used by that thread alone from now on.
        Thread.detachNewThread { self.follow(unsafe handedOver) }
        self.bell.wait(until: begun + .seconds(60)) {
            self.state.withLock { $0.isAnnounced || $0.status != nil }
        }
        let state = self.state.withLock { ($0.isAnnounced, $0.status) }
        guard state.0, state.1 == nil else {
            throw Wrong("the proxy did not start: \(self.lastLines)")
        }
        return .now - begun
    }

    private func follow(_ child: Child) {
        while let line = child.line() {
            self.state.withLock { state in
                if line.contains("; cache: ") { state.isAnnounced = true }
                if Self.isSurprising(line) { state.surprises.append(line) }
                state.lastLines = Array(state.lastLines.suffix(19)) + [line]
            }
            self.bell.ring()
        }
        let status = child.wait()
        self.state.withLock { $0.status = status }
        self.bell.ring()
    }

    private static func isSurprising(_ line: String) -> Bool {
        ["warning", "error", "critical", "Fatal", "ssertion", "mdb.c"].contains {
            line.contains($0)
        }
    }

    var lastLines: String { self.state.withLock { $0.lastLines.joined(separator: " | ") } }

    /// Lines of the log that a healthy proxy does not write, each given once.
    func takeSurprises() -> [String] {
        self.state.withLock { state in
            defer { state.surprises = [] }
            return state.surprises
        }
    }

    /// Whether it has ended without being told to; what it ended with.
    var unexpectedEnd: Int32? {
        self.state.withLock { $0.isExpectedToEnd ? nil : $0.status }
    }

    /// Ends it by a signal, and waits for its end.
    func end(_ signal: Int32) throws {
        let pid = self.state.withLock { state in
            state.isExpectedToEnd = true
            return state.status == nil ? state.pid : 0
        }
        if pid > 0 { _ = kill(pid, signal) }
        self.bell.wait(until: .now + .seconds(60)) { self.state.withLock { $0.status != nil } }
        let status = self.state.withLock { $0.status }
        guard status == (signal == SIGKILL ? 128 + SIGKILL : 0) else {
            throw Wrong(
                "the proxy ended with \(status.map { "\($0)" } ?? "nothing in 60 s") "
                    + "on signal \(signal): \(self.lastLines)")
        }
    }

    /// nil where it does not run.
    func figures() -> Figures? {
        let pid = self.state.withLock { $0.status == nil ? $0.pid : 0 }
        guard pid > 0,
            let text = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        else { return nil }
        func number(_ name: String) -> Int {
            let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") } ?? ""
            return Int(line.filter(\.isNumber)) ?? 0
        }
        let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")
        return Figures(
            anonymous: number("RssAnon"), peak: number("VmHWM"), descriptors: open?.count ?? 0,
            threads: number("Threads"))
    }

    var fileBytes: UInt64 {
        var status = stat()
        guard unsafe stat(self.cache + "/cache.mdb", &status) == 0 else { return 0 }
        return UInt64(clamping: status.st_size)
    }
}
