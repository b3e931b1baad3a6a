import Glibc
package import LarderControl
import NIOCore

/// An archive that is read: a regular file, from its beginning, with places passed over.
///
/// Waits for the disk; used by one thread.
package final class ArchiveSource {
    private let descriptor: CInt
    /// Of the file when it was opened.
    package let size: UInt64
    /// Where the next bytes come from.
    package private(set) var position: UInt64 = 0

    private static let pieceSize = 262_144

    /// Opens a file.
    ///
    /// - Throws: `.invalid` with what to do about it.
    package init(path: String) throws(ControlRefusal) {
        // Without O_NONBLOCK, opening a pipe would wait for its writer.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let code = errno
            let remedy =
                code == EACCES || code == EPERM
                ? "; user \(getuid()) must be allowed to read it, and to pass its directories"
                : ""
            throw Self.refusal("cannot open \(path): \(SystemError.text(code))\(remedy)")
        }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Self.refusal("\(path) is no regular file; name a file")
        }
        self.descriptor = descriptor
        self.size = UInt64(clamping: status.st_size)
    }

    deinit { close(self.descriptor) }

    private static func refusal(_ text: String) -> ControlRefusal {
        ControlRefusal(failure: ControlFailure(.invalid, text))
    }

    /// The next bytes; nil at the end.
    func read() throws(ControlRefusal) -> ByteBuffer? {
        guard let offset = off_t(exactly: self.position) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Self.pieceSize)
        var count = -1
        while count < 0 {
            count = unsafe bytes.withUnsafeMutableBytes {
                unsafe pread(self.descriptor, $0.baseAddress, $0.count, offset)
            }
            if count < 0, errno != EINTR {
                throw Self.refusal("cannot read the archive: \(SystemError.text(errno))")
            }
        }
        guard count > 0 else { return nil }
        self.position += UInt64(count)
        return ByteBuffer(bytes: bytes.prefix(count))
    }

    /// Goes on at another place.
    func seek(to position: UInt64) { self.position = position }
}
