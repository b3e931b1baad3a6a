import CSpawn
import Foundation
import Glibc

/// A program that was started, with pipes to its standard input and from what it says.
///
/// Used by one thread.
final class Child {
    let pid: pid_t
    private var input: Int32
    private let output: Int32
    private var rest: [UInt8] = []
    private var hasEnded = false

    /// Starts `path` with `variables` beside those of this process.
    ///
    /// - Parameter hearsErrors: whether standard error is what is read, and standard output is
    ///   thrown away; otherwise standard output is read, and standard error is that of this process.
    init(
        _ path: String, _ arguments: [String], variables: [String: String] = [:],
        hearsErrors: Bool = false
    ) throws {
        var down: [Int32] = [-1, -1]
        var up: [Int32] = [-1, -1]
        guard unsafe pipe(&down) == 0, unsafe pipe(&up) == 0 else {
            throw Wrong("pipe: \(errno)")
        }
        for end in down + up { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer {
            _ = Glibc.close(down[0])
            _ = Glibc.close(up[1])
        }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, down[0], 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, up[1], hearsErrors ? 2 : 1)
        if hearsErrors {
            unsafe posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        }
        // What is opened by another thread meanwhile must not be inherited.
        unsafe posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        var environment = Self.environment().filter { line in
            !variables.keys.contains { line.hasPrefix("\($0)=") }
        }
        environment += variables.map { "\($0)=\($1)" }
        let words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        let lines = unsafe environment.map { unsafe strdup($0) } + [nil]
        defer { unsafe (words + lines).forEach { unsafe free($0) } }
        var pid: pid_t = 0
        let code = unsafe posix_spawn(&pid, path, &actions, nil, words, lines)
        guard code == 0 else { throw Wrong("\(path) could not be started: \(code)") }
        self.pid = pid
        self.input = down[1]
        self.output = up[0]
    }

    deinit {
        if !self.hasEnded { _ = self.kill() }
        self.endInput()
        _ = Glibc.close(self.output)
    }

    private static func environment() -> [String] {
        var lines: [String] = []
        var next = unsafe environ
        while let line = unsafe next.pointee {
            lines.append(unsafe String(cString: line))
            unsafe next += 1
        }
        return lines
    }

    /// The program that this is.
    static let ownPath: String = {
        var bytes = [CChar](repeating: 0, count: 4097)
        let count = unsafe readlink("/proc/self/exe", &bytes, 4096)
        return String(
            decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    /// Takes a line, waiting for it until `limit`; nil at the end, and when the time is over.
    func line(until limit: ContinuousClock.Instant? = nil) -> String? {
        while true {
            if let end = self.rest.firstIndex(of: 10) {
                let line = String(decoding: self.rest[..<end], as: UTF8.self)
                self.rest.removeSubrange(...end)
                return line
            }
            var entry = pollfd(fd: self.output, events: Int16(POLLIN), revents: 0)
            var milliseconds: Int32 = -1
            if let limit {
                let left = (limit - .now) / .milliseconds(1)
                if left <= 0 { return nil }
                milliseconds = Int32(max(1, min(left, 1_000_000)))
            }
            guard unsafe poll(&entry, 1, milliseconds) > 0 else {
                if errno == EINTR { continue }
                return nil
            }
            guard self.fill() else { return nil }
        }
    }

    private func fill() -> Bool {
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe Glibc.read(self.output, &piece, piece.count)
        guard count > 0 else { return false }
        self.rest.append(contentsOf: piece[..<count])
        return true
    }

    func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe Glibc.write(self.input, bytes, bytes.count)
    }

    /// Ends its standard input.
    func endInput() {
        if self.input >= 0 { _ = Glibc.close(self.input) }
        self.input = -1
    }

    func signal(_ number: Int32) {
        if !self.hasEnded { _ = Glibc.kill(self.pid, number) }
    }

    /// Ends it as a crash would; what it said before can still be read.
    func kill() -> Int32 {
        self.signal(SIGKILL)
        return self.wait()
    }

    /// Waits for its end: its exit status, or 128 and the number of the signal.
    @discardableResult
    func wait() -> Int32 {
        guard !self.hasEnded else { return 0 }
        var status: Int32 = 0
        while unsafe waitpid(self.pid, &status, 0) < 0, errno == EINTR {}
        self.hasEnded = true
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

/// A directory below TMPDIR that goes away with its owner.
final class Directory {
    let path: String
    private var isKept = false

    init() throws {
        let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/larder-stress-XXXXXX\0".utf8CString)
        guard let made = unsafe mkdtemp(&template) else { throw Wrong("mkdtemp: \(errno)") }
        self.path = unsafe String(cString: made)
    }

    /// Lends a directory to a run; it stays where that fails.
    ///
    /// - Throws: `Wrong`, with the failure, the seed of the run, and the directory.
    static func lend<R>(
        seed: UInt64, to run: (String) async throws -> R
    ) async throws -> R {
        let directory = try Directory()
        do {
            return try await run(directory.path)
        } catch {
            directory.isKept = true
            throw Wrong("\(error); seed \(seed); see \(directory.path)")
        }
    }

    deinit {
        if self.isKept { return }
        try? FileManager.default.removeItem(atPath: self.path)
    }
}
