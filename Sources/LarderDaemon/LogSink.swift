import Glibc
import LarderHTTP

/// Where log lines are written.
///
/// Used by one thread: the log writer's.
package protocol LogSink: AnyObject {
    /// Writes whole lines, each with its line feed and no other.
    ///
    /// - Returns: nil where all of them are written.
    func write(_ lines: Span<UInt8>) -> LogFailure?
    /// Opens the file anew, which a rotation has moved away. The old one stays where that fails.
    func reopen() -> CInt
}

/// Lines that could not be written.
package struct LogFailure: Sendable, Equatable {
    /// The `errno` of what failed.
    package var code: CInt
    /// Lines that are not there as a whole.
    package var lost: UInt64

    package init(code: CInt, lost: UInt64) {
        self.code = code
        self.lost = lost
    }

    /// - Parameter rest: what was not written, from anywhere in a line.
    init(code: CInt, rest: Span<UInt8>) {
        self.init(code: code, lost: 0)
        for index in rest.indices where rest[index] == ASCII.lf { self.lost += 1 }
    }
}

/// Writes to a descriptor: standard output, or a file that is appended to.
package final class DescriptorSink: LogSink {
    private var descriptor: CInt
    /// nil: the descriptor is not ours to close.
    private let path: String?
    /// The last line was written in part: the next one is not to be its end.
    private var isTorn = false

    /// Standard output.
    package convenience init() {
        self.init(descriptor: STDOUT_FILENO, path: nil)
    }

    static func standardError() -> DescriptorSink {
        DescriptorSink(descriptor: STDERR_FILENO, path: nil)
    }

    init(descriptor: CInt, path: String?) {
        self.descriptor = descriptor
        self.path = path
    }

    /// Opens a file for appending, made with mode 0640 if need be.
    package convenience init(path: String) throws(LogError) {
        let descriptor = Self.open(path)
        guard descriptor >= 0 else { throw LogError(path: path, code: errno) }
        self.init(descriptor: descriptor, path: path)
    }

    deinit {
        if self.path != nil { close(self.descriptor) }
    }

    private static func open(_ path: String) -> CInt {
        // Without O_NONBLOCK a named pipe is opened when somebody reads it, which may be never.
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
        let descriptor = unsafe Glibc.open(path, flags, 0o640)
        guard descriptor >= 0 else { return descriptor }
        // A reader that is slow is waited for, on the writer's thread.
        guard fcntl(descriptor, F_SETFL, O_APPEND) == 0 else {
            let code = errno
            close(descriptor)
            errno = code
            return -1
        }
        return descriptor
    }

    package func write(_ lines: Span<UInt8>) -> LogFailure? {
        if self.isTorn {
            let end: [1 of UInt8] = [ASCII.lf]
            var written = 0
            let code = Self.write(end.span, to: self.descriptor, &written)
            guard code == 0 else { return LogFailure(code: code, rest: lines) }
            self.isTorn = false
        }
        var written = 0
        let code = Self.write(lines, to: self.descriptor, &written)
        guard code != 0 else { return nil }
        self.isTorn = written > 0 && lines[written - 1] != ASCII.lf
        return LogFailure(code: code, rest: lines.extracting(droppingFirst: written))
    }

    /// Writes all bytes, in as many calls as it takes.
    ///
    /// - Returns: 0, or the `errno` of what failed when `written` bytes were there.
    fileprivate static func write(
        _ bytes: Span<UInt8>, to descriptor: CInt, _ written: inout Int
    ) -> CInt {
        // One write for all: O_APPEND keeps it in one piece beside other writers.
        while written < bytes.count {
            let rest = bytes.extracting(droppingFirst: written)
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count > 0 {
                written += count
            } else if count < 0, errno == EINTR {
                continue
            } else {
                return count < 0 ? errno : EIO
            }
        }
        return 0
    }

    package func reopen() -> CInt {
        guard let path = self.path else { return 0 }
        let fresh = Self.open(path)
        guard fresh >= 0 else { return errno }
        close(self.descriptor)
        self.descriptor = fresh
        // The same file may be there still, with its torn line.
        if lseek(fresh, 0, SEEK_END) == 0 { self.isTorn = false }
        return 0
    }
}

/// Writes to the systemd journal by its native protocol: a datagram of fields a line.
///
/// Without a journal the lines go to standard error with a priority before them (sd-daemon(3)),
/// which is what a service manager reads.
package final class JournalSink: LogSink {
    private let descriptor: CInt
    private let isNative: Bool

    package static let defaultPath = "/run/systemd/journal/socket"

    package convenience init(path: String = JournalSink.defaultPath) {
        self.init(path: path, standIn: STDERR_FILENO)
    }

    /// - Parameter standIn: where lines go without a journal; it is not closed.
    init(path: String, standIn: CInt) {
        let datagram = CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, datagram, 0)
        let isConnected = descriptor >= 0 && Self.connect(descriptor, path)
        if descriptor >= 0, !isConnected { close(descriptor) }
        self.descriptor = isConnected ? descriptor : standIn
        self.isNative = isConnected
    }

    deinit {
        if self.isNative { close(self.descriptor) }
    }

    private static func connect(_ descriptor: CInt, _ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, size) == 0
            }
        }
    }

    package func write(_ lines: Span<UInt8>) -> LogFailure? {
        var failure: LogFailure?
        let head = self.head
        var line = head
        for index in lines.indices {
            line.append(lines[index])
            guard lines[index] == ASCII.lf else { continue }
            // A datagram goes as a whole or not at all.
            var written = 0
            let code = DescriptorSink.write(line.span, to: self.descriptor, &written)
            if code != 0 { failure = LogFailure(code: code, lost: (failure?.lost ?? 0) + 1) }
            line.removeSubrange(head.count...)
        }
        return failure
    }

    /// What stands before a line.
    private var head: [UInt8] {
        let text =
            self.isNative ? "PRIORITY=6\nSYSLOG_IDENTIFIER=larder\nMESSAGE=" : "<6>"
        return Array(text.utf8)
    }

    package func reopen() -> CInt { 0 }
}
