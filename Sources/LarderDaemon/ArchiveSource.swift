import Glibc
package import LarderControl
import NIOCore

/// An archive that is read: a regular file, from its beginning, with places passed over.
///
/// Waits for the disk; used by one thread.
package final class ArchiveSource {
    private let descriptor: CInt
    /// The size of the file when it was opened.
    package let size: UInt64
    /// Where the next bytes come from.
    package private(set) var position: UInt64 = 0

    private static let pieceSize = 262_144

    /// Opens a file.
    ///
    /// - Parameter isAsked: whether another process named the file, which may see other files.
    /// - Throws: `.noInput` or `.invalid` with what to do about it.
    package init(path: String, isAsked: Bool = false) throws(ControlRefusal) {
        // Without O_NONBLOCK, opening a pipe would wait for its writer.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let code = errno
            let remedy = Self.remedy(code, path, isAsked: isAsked)
            throw Self.refusal("cannot open \(path): \(SystemError.text(code))\(remedy)", .noInput)
        }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Self.refusal("\(path) is no regular file; name a file")
        }
        self.descriptor = descriptor
        self.size = UInt64(clamping: status.st_size)
    }

    /// systemd.exec(5): PrivateTmp= and ProtectHome= give a service other ones.
    private static let hiddenPlaces = ["/tmp/", "/var/tmp/", "/home/", "/root/", "/run/user/"]

    private static func remedy(_ code: CInt, _ path: String, isAsked: Bool) -> String {
        guard [EACCES, EPERM, ENOENT].contains(code) else { return "" }
        guard !isAsked else {
            let isHidden = self.hiddenPlaces.contains { path.hasPrefix($0) }
            return "; the proxy opens it itself, as user \(getuid())"
                + (isHidden ? ", and a service has a /tmp of its own and sees no /home" : "")
                + ": give that user a copy elsewhere (chmod, chown), or run this as that user "
                + "(sudo -u '#\(getuid())')"
        }
        guard code != ENOENT else { return "" }
        return "; user \(getuid()) must be allowed to read it, and to pass its directories"
    }

    deinit { close(self.descriptor) }

    private static func refusal(
        _ text: String, _ code: ControlFailure.Code = .invalid
    ) -> ControlRefusal {
        ControlRefusal(failure: ControlFailure(code, text))
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
