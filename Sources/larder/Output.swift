import Glibc
import Synchronization

/// Standard output and error, and the terminal behind them.
enum Output {
    /// What waits to be written to standard output.
    private static let waiting = Mutex<[UInt8]>([])
    private static let enough = 1 << 16

    /// Writes a line to standard output.
    ///
    /// - Throws: when it cannot be written, but for a reader that has left, which ends the command
    ///   as SIGPIPE would.
    static func line(_ text: String) throws(CommandFailure) {
        try Self.bytes(Array(text.utf8) + [0x0A])
    }

    /// Writes bytes to standard output as they are, at the latest when the command ends.
    static func bytes(_ bytes: [UInt8]) throws(CommandFailure) {
        let isEnough = Self.waiting.withLock { waiting in
            waiting += bytes
            return waiting.count >= Self.enough
        }
        if isEnough || Self.isTerminal { try Self.flush() }
    }

    static func flush() throws(CommandFailure) {
        let bytes = Self.waiting.withLock { waiting in
            defer { waiting.removeAll() }
            return waiting
        }
        let code = Self.write(bytes, to: STDOUT_FILENO)
        if code == EPIPE { exit(128 + SIGPIPE) }
        guard code == 0 else {
            throw CommandFailure(
                .inputOutput, "cannot write to standard output: \(Self.reason(code))")
        }
    }

    /// Answers 0 or `errno`.
    private static func write(_ bytes: [UInt8], to descriptor: CInt) -> CInt {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count == 0 || errno != EINTR {
                return count == 0 ? EIO : errno
            }
        }
        return 0
    }

    /// Writes a line to standard error.
    static func note(_ text: String) {
        // Nobody is left to be told when this fails.
        _ = Self.write(Array("\(text)\n".utf8), to: STDERR_FILENO)
    }

    /// Writes to the terminal behind standard error, without a line's end.
    static func sketch(_ text: String) {
        _ = Self.write(Array(text.utf8), to: STDERR_FILENO)
    }

    static func failure(_ failure: CommandFailure) {
        for line in failure.lines { Self.note(line) }
    }

    static let isTerminal = isatty(STDOUT_FILENO) == 1
    static let isErrorTerminal = isatty(STDERR_FILENO) == 1

    /// Columns of the terminal; nil where standard output is none.
    static var width: Int? {
        Self.isTerminal ? Self.width(of: STDOUT_FILENO) : nil
    }

    /// Columns of the terminal behind standard error.
    static var errorWidth: Int { Self.width(of: STDERR_FILENO) }

    private static func width(of descriptor: CInt) -> Int {
        var size = winsize()
        let code = unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size)
        return code == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }

    static func reason(_ code: CInt) -> String {
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
    }
}
