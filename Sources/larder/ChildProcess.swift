import Dispatch
import Glibc

/// How a child process ended.
enum ChildEnding: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)

    /// What a shell would say: the status itself, or 128 and the signal.
    var exitStatus: Int32 {
        switch self {
        case .exited(let status): status
        case .signalled(let signal): 128 + signal
        }
    }

    /// From the status of wait(2), whose macros C alone can use.
    init(waitStatus: CInt) {
        let signal = waitStatus & 0x7F
        self = signal == 0 ? .exited(waitStatus >> 8 & 0xFF) : .signalled(signal)
    }
}

/// A command that could not be started.
struct StartFailure: Error, Equatable {
    var command: String
    /// The `errno` of posix_spawn(3).
    var code: CInt

    /// As shells have it: 127 for what is not there, 126 for what cannot be run.
    var exitStatus: Int32 { self.code == ENOENT ? 127 : 126 }

    var failure: CommandFailure {
        CommandFailure(
            .noInput, "cannot run \"\(self.command)\": \(Output.reason(self.code))",
            remedy: "check the command's name")
    }
}

extension StartFailure {
    init(_ command: [[UInt8]], code: CInt) {
        self.init(command: String(decoding: command.first ?? [], as: UTF8.self), code: code)
    }
}

/// What whoever runs us has chosen about signals that the proxy chooses about, too.
struct InheritedSignals: Sendable {
    let ignoresPipe: Bool

    /// To be made before the proxy begins.
    init() {
        var action = sigaction()
        let isKnown = unsafe sigaction(SIGPIPE, nil, &action) == 0
        let handler = unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        let ignore = unsafe unsafeBitCast(SIG_IGN, to: Int.self)
        self.ignoresPipe = isKnown && handler == ignore
    }
}

/// A command that runs in our place: it has our terminal and gets our signals.
enum ChildProcess {
    /// The signals that ask a process to end or to do something; the others are ours or the
    /// kernel's.
    private static let forwarded = [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2]

    /// Starts a command, found by PATH, and waits for its end.
    ///
    /// - Parameters:
    ///   - command: its arguments, the program's name first.
    ///   - environment: entries such as `NAME=VALUE`.
    /// - Throws: `StartFailure`.
    static func run(
        _ command: [[UInt8]], environment: [[UInt8]],
        ignoring ignored: InheritedSignals = InheritedSignals()
    ) async throws -> ChildEnding {
        guard let relay = SignalRelay.start(Self.forwarded) else {
            throw StartFailure(command, code: EMFILE)
        }
        defer { relay.stop() }
        let child = try Self.spawn(command, environment, ignored)
        relay.began(child)
        return await withCheckedContinuation { ended in
            DispatchQueue.global().async {
                ended.resume(returning: Self.wait(for: child, ended: relay.ended))
            }
        }
    }

    /// Waits for the child's end, tells of it, and only then lets its number go.
    private static func wait(for child: pid_t, ended: () -> Void) -> ChildEnding {
        var info = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        ended()
        var status: CInt = 0
        while unsafe waitpid(child, &status, 0) < 0 {
            // Somebody else has waited for it: nothing is known of its end.
            guard errno == EINTR else { return .exited(ExitStatus.software.rawValue) }
        }
        return ChildEnding(waitStatus: status)
    }

    private static func spawn(
        _ command: [[UInt8]], _ environment: [[UInt8]], _ ignored: InheritedSignals
    ) throws(StartFailure) -> pid_t {
        var child: pid_t = 0
        var attributes = posix_spawnattr_t()
        var code = unsafe posix_spawnattr_init(&attributes)
        guard code == 0 else { throw StartFailure(command, code: code) }
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        code = Self.restoreSignals(&attributes, ignored)
        if code == 0 {
            code = unsafe CStrings.withArrays(command, environment) { arguments, variables in
                guard let file = unsafe arguments[0] else { return EINVAL }
                return unsafe posix_spawnp(&child, file, nil, &attributes, arguments, variables)
            }
        }
        guard code == 0 else { throw StartFailure(command, code: code) }
        return child
    }

    /// The thread that spawns may block signals, and the proxy ignores SIGPIPE, which the child would
    /// inherit; answers 0 or `errno`.
    private static func restoreSignals(
        _ attributes: inout posix_spawnattr_t, _ ignored: InheritedSignals
    ) -> CInt {
        var signals = sigset_t()
        guard unsafe sigemptyset(&signals) == 0 else { return errno }
        var code = unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        guard code == 0 else { return code }
        if !ignored.ignoresPipe, unsafe sigaddset(&signals, SIGPIPE) != 0 { return errno }
        code = unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        guard code == 0 else { return code }
        return unsafe posix_spawnattr_setflags(
            &attributes, CShort(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    }
}

/// Strings as C wants them.
private enum CStrings {
    /// Lends two arrays of strings that end with a null pointer each.
    static func withArrays<Result>(
        _ first: [[UInt8]], _ second: [[UInt8]],
        _ body: (
            UnsafePointer<UnsafeMutablePointer<CChar>?>, UnsafePointer<UnsafeMutablePointer<CChar>?>
        ) -> Result
    ) -> Result {
        let a = unsafe first.map { unsafe Self.copy($0) } + [nil]
        let b = unsafe second.map { unsafe Self.copy($0) } + [nil]
        defer {
            unsafe a.forEach { unsafe free($0) }
            unsafe b.forEach { unsafe free($0) }
        }
        return unsafe body(a, b)
    }

    private static func copy(_ text: [UInt8]) -> UnsafeMutablePointer<CChar>? {
        let ended = text.map { CChar(bitPattern: $0) } + [0]
        return unsafe strdup(ended)
    }
}
