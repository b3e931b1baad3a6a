import Foundation
import Glibc
import NIOCore

/// A regular file, open for reading; closed when nobody has it any more.
final class ReadableFile: Sendable {
    private let descriptor: Int32
    /// In bytes, when it was opened.
    let size: Int64

    /// Waits for the disk.
    init(path: String) throws(URLError) {
        guard !path.isEmpty, !path.utf8.contains(0) else { throw URLError(.fileDoesNotExist) }
        // Without O_NONBLOCK a FIFO would wait for somebody to write.
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw URLError(fileError: errno) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            let code = errno
            Glibc.close(descriptor)
            throw URLError(fileError: code)
        }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG else {
            Glibc.close(descriptor)
            throw URLError(kind == S_IFDIR ? .fileIsDirectory : .cannotOpenFile)
        }
        self.descriptor = descriptor
        self.size = Int64(max(0, status.st_size))
    }

    deinit { Glibc.close(self.descriptor) }

    /// Reads at most so many bytes, and waits for the disk; empty at the end, nil on errors.
    func read(at offset: Int64, atMost count: Int) -> ByteBuffer? {
        var piece = ByteBuffer()
        while true {
            let read = unsafe piece.writeWithUnsafeMutableBytes(minimumWritableBytes: count) {
                room in
                max(0, unsafe pread(self.descriptor, room.baseAddress, count, off_t(offset)))
            }
            if read > 0 { return piece }
            // None at all: at the end, or an error, which asking for one byte tells apart.
            var byte: UInt8 = 0
            switch unsafe pread(self.descriptor, &byte, 1, off_t(offset)) {
            case 0: return piece
            case 1: continue
            default: if errno != EINTR { return nil }
            }
        }
    }
}

extension URLError {
    /// What an `errno` of opening a file means (§13).
    init(fileError code: Int32) {
        switch code {
        case ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP: self.init(.fileDoesNotExist)
        case EACCES, EPERM: self.init(.noPermissionsToReadFile)
        case EISDIR: self.init(.fileIsDirectory)
        default: self.init(.cannotOpenFile)
        }
    }
}
