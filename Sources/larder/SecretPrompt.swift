import Glibc
import LarderControl
import Synchronization

/// Asks at the terminal for what must not be seen there.
///
/// ```
/// ask ─▶ echo off ─▶ a line is typed ─▶ echo as it was ─▶ answered
///                 └▶ a signal comes  ─▶ echo as it was ─▶ the signal takes its course
///                                                          └ stopped and continued ─▶ ask
/// ```
///
/// Whatever ends the asking, the terminal is as it was before: a shell whose echo is gone is what
/// people remember a program by.
enum SecretPrompt {
    /// Where the handler tells of a signal; -1 while nobody asks.
    private static let bell = Atomic<CInt>(-1)
    private static let signals = [
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM,
    ]

    /// How many bytes of a line, its end among them, are surely all that was typed.
    ///
    /// termios(3): "any input data after 4095 characters up to (but not including) any terminating
    /// newline is discarded", and nobody is told.
    private static let longestLine = 4095

    private enum Ending {
        case line([UInt8])
        case signal(CInt)
        /// The end of input, before anything was typed.
        case nothing
    }

    /// - Parameter terminal: the file of the terminal that controls this process, or of another.
    static func ask(
        _ prompt: String, terminal: String = "/dev/tty"
    ) throws(CommandFailure) -> [UInt8] {
        let tty = unsafe open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard tty >= 0 else {
            throw CommandFailure(
                .noInput, "there is no terminal to ask at",
                remedy: "pipe the secret in, or name a file that holds it")
        }
        defer { close(tty) }
        while true {
            switch try Self.askOnce(prompt, tty) {
            case .line(let bytes): return bytes
            case .nothing: throw CommandFailure(.noInput, "nothing was typed")
            case .signal(let number):
                // By now the signal has the action that it had before.
                Interruption.unblock(number)
                raise(number)
            }
        }
    }

    private static func askOnce(_ prompt: String, _ tty: CInt) throws(CommandFailure) -> Ending {
        var before = termios()
        guard unsafe tcgetattr(tty, &before) == 0 else { throw Self.failure("ask") }
        let ends = try Pipe.open()
        defer { for end in [ends.read, ends.write] { close(end) } }
        for end in [ends.read, ends.write] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        Self.bell.store(ends.write, ordering: .sequentiallyConsistent)
        let actions = Self.listen()
        defer {
            for (number, action) in actions {
                var action = action
                _ = unsafe sigaction(number, &action, nil)
            }
            Self.bell.store(-1, ordering: .sequentiallyConsistent)
        }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO | ECHOE | ECHOK | ECHONL)
        silent.c_lflag |= tcflag_t(ICANON)
        guard unsafe tcsetattr(tty, TCSAFLUSH, &silent) == 0 else { throw Self.failure("ask") }
        defer {
            while unsafe tcsetattr(tty, TCSAFLUSH, &before) < 0, errno == EINTR {}
            Self.write("\n", to: tty)
        }
        Self.write(prompt, to: tty)
        return try Self.line(from: tty, or: ends.read)
    }

    /// Waits for a line or for a signal, which may be told on any thread.
    private static func line(from tty: CInt, or bell: CInt) throws(CommandFailure) -> Ending {
        var typed: [UInt8] = []
        // Growing would leave copies behind.
        typed.reserveCapacity(2 * Self.longestLine)
        while true {
            var ready = [
                pollfd(fd: tty, events: Int16(POLLIN), revents: 0),
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&ready, 2, -1) > 0 else {
                if errno == EINTR { continue }
                throw Self.failure("wait")
            }
            var number: UInt8 = 0
            if unsafe read(bell, &number, 1) == 1 {
                typed.wipe()
                return .signal(CInt(number))
            }
            guard ready[0].revents != 0 else { continue }
            var piece = [UInt8](repeating: 0, count: 4096)
            defer { piece.wipe() }
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe read(tty, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return typed.isEmpty ? .nothing : .line(typed) }
            typed += piece.prefix(count)
            guard typed.last == 0x0A else { continue }
            guard typed.count <= Self.longestLine else {
                typed.wipe()
                throw CommandFailure(
                    .data, "a terminal hands over no more than \(Self.longestLine) bytes",
                    remedy: "pipe the secret in, or name a file that holds it")
            }
            return .line(typed)
        }
    }

    /// Has signals ring the bell; answers the actions that they had.
    private static func listen() -> [(CInt, sigaction)] {
        var before: [(CInt, sigaction)] = []
        for number in Self.signals {
            var old = sigaction()
            guard unsafe sigaction(number, nil, &old) == 0, !Self.isIgnored(old) else {
                continue
            }
            var action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = { number in
                // No more than is allowed in a handler (signal-safety(7)).
                let code = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = unsafe Glibc.write(
                    SecretPrompt.bell.load(ordering: .sequentiallyConsistent), &byte, 1)
                errno = code
            }
            guard unsafe sigaction(number, &action, nil) == 0 else { continue }
            before.append((number, old))
        }
        return before
    }

    private static func isIgnored(_ action: sigaction) -> Bool {
        unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    private static func write(_ text: String, to tty: CInt) {
        let bytes = Array(text.utf8)
        // Who cannot see the prompt can still answer it.
        _ = unsafe Glibc.write(tty, bytes, bytes.count)
    }

    private static func failure(_ what: String) -> CommandFailure {
        CommandFailure(.inputOutput, "cannot \(what) at the terminal: \(Output.reason(errno))")
    }
}
