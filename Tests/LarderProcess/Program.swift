import CSpawn
import Foundation
import Glibc
import Synchronization

/// A program that runs, with what it says.
///
/// A thread of its own reads its output and waits for its end.
final class Program: Sendable {
    struct Output: Sendable {
        var out: [UInt8] = []
        var err: [UInt8] = []
        /// The exit status, or 128 and the number of the signal that ended it; it comes last.
        var status: Int32?

        var outText: String { String(decoding: self.out, as: UTF8.self) }
        var errText: String { String(decoding: self.err, as: UTF8.self) }
        /// The lines of standard output.
        var lines: [String] { self.outText.split(separator: "\n").map(String.init) }
    }

    let output = Event(Output())
    let pid: Int32
    /// Held while programs begin: what one opens, another must not inherit.
    private static let beginning = Mutex(())

    /// The built `larder`, which lies beside the tests.
    static let larder: String = {
        let files = FileManager.default
        let tests = (try? files.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: tests).deletingLastPathComponent().path + "/larder"
    }()

    /// - Parameter descriptors: those that it has from 3 on.
    init(
        _ path: String, _ arguments: [String], environment: [String: String],
        descriptors: [CInt] = []
    ) throws {
        let (pid, out, err) = try Self.beginning.withLock { _ in
            try Self.spawn([path] + arguments, environment.map { "\($0)=\($1)" }, descriptors)
        }
        self.pid = pid
        let output = self.output
        Thread.detachNewThread { Self.follow(pid, out, err, output) }
    }

    /// A scenario that failed leaves nothing behind.
    deinit {
        self.signal(SIGKILL)
    }

    private static func spawn(
        _ arguments: [String], _ environment: [String], _ descriptors: [CInt]
    ) throws -> (pid: pid_t, out: CInt, err: CInt) {
        var out: [CInt] = [-1, -1]
        var err: [CInt] = [-1, -1]
        guard unsafe pipe(&out) == 0, unsafe pipe(&err) == 0 else {
            throw TimedOut(description: "no pipes")
        }
        for end in out + err { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { for end in [out[1], err[1]] { close(end) } }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, out[1], 1)
        unsafe posix_spawn_file_actions_adddup2(&actions, err[1], 2)
        // NIO's sockets are not all O_CLOEXEC: inherited, they would stay open when a test closes
        // them, and their other ends would wait.
        let given = 3 + CInt(descriptors.count)
        for (place, descriptor) in zip(3..<given, descriptors) {
            unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, place)
        }
        unsafe posix_spawn_file_actions_addclosefrom_np(&actions, given)
        // A test runner ignores SIGPIPE; a program started from a shell does not.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        unsafe sigemptyset(&defaults)
        unsafe posix_spawnattr_setsigmask(&attributes, &defaults)
        unsafe sigaddset(&defaults, SIGPIPE)
        unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
        unsafe posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let variables = unsafe environment.map { unsafe strdup($0) } + [nil]
        defer { unsafe (words + variables).forEach { unsafe free($0) } }
        var pid: pid_t = 0
        let code = unsafe posix_spawn(&pid, arguments[0], &actions, &attributes, words, variables)
        guard code == 0 else {
            for end in [out[0], err[0]] { close(end) }
            throw TimedOut(description: "\(arguments[0]) could not be started: \(code)")
        }
        return (pid, out[0], err[0])
    }

    private static func follow(_ pid: pid_t, _ out: CInt, _ err: CInt, _ output: Event<Output>) {
        var ends = [
            pollfd(fd: out, events: Int16(POLLIN), revents: 0),
            pollfd(fd: err, events: Int16(POLLIN), revents: 0),
        ]
        while ends.contains(where: { $0.fd >= 0 }) {
            guard unsafe poll(&ends, 2, -1) > 0 else { continue }
            for index in 0..<2 where ends[index].fd >= 0 && ends[index].revents != 0 {
                guard let piece = Self.read(ends[index].fd) else {
                    close(ends[index].fd)
                    ends[index].fd = -1
                    continue
                }
                output.change { if index == 0 { $0.out += piece } else { $0.err += piece } }
            }
        }
        var status: CInt = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        let result = signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        output.change { $0.status = result }
    }

    /// nil at the end.
    private static func read(_ descriptor: CInt) -> [UInt8]? {
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe piece.withUnsafeMutableBytes {
            unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
        }
        return count > 0 ? Array(piece[..<count]) : nil
    }

    func signal(_ number: Int32) {
        if self.output.value.status == nil { Glibc.kill(self.pid, number) }
    }

    /// Ends it, and returns when it has ended: what it held is free then, and its files are left alone.
    func kill() {
        self.signal(SIGKILL)
        var end = unsafe siginfo_t()
        // Its status is left to the thread that waits for it: when that was faster there is no such child.
        while unsafe waitid(P_PID, id_t(self.pid), &end, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// Waits for its end.
    @discardableResult
    func ended() async throws -> Output {
        do {
            try await self.output.wait(for: "the end of a program") { $0.status != nil }
        } catch {
            self.signal(SIGKILL)
            throw TimedOut(description: "\(error); it said: \(self.output.value.errText)")
        }
        return self.output.value
    }

    /// Waits until it has said `text` on standard error.
    @discardableResult
    func said(_ text: String) async throws -> String {
        let mark = Array(text.utf8)
        try await self.output.wait(for: "\(text); it said: \(self.output.value.errText)") {
            $0.err.end(of: mark) != nil || $0.status != nil
        }
        let said = self.output.value
        guard said.err.end(of: mark) != nil else {
            throw TimedOut(description: "it ended without \(text); it said: \(said.errText)")
        }
        return said.errText
    }
}
