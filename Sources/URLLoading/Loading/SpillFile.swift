import Foundation
import Glibc
import NIOCore

/// A file without a name, for what has no room in memory; gone with the last who holds it, also when
/// the process is killed.
///
/// Its methods block for as long as the disk takes, and may be called by several threads for different
/// places.
final class SpillFile: Sendable {
    private let descriptor: CInt

    /// nil where none can be made.
    init?() {
        let path = NSTemporaryDirectory() + "/.URLLoading-" + UUID().uuidString
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let descriptor = unsafe open(path, flags, 0o600)
        guard descriptor >= 0 else { return nil }
        // Where the name stays, the file does: nothing is put into such a one.
        guard unsafe unlink(path) == 0 else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }

    /// false where it was not written as a whole.
    func write(_ data: Data, at offset: Int64) -> Bool {
        unsafe data.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
                let count = FileWork.again {
                    unsafe pwrite(
                        self.descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
                }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }

    /// nil where there is not as much, or it cannot be read.
    func read(_ count: Int, at offset: Int64) -> ByteBuffer? {
        var buffer = ByteBuffer()
        while buffer.readableBytes < count {
            let (done, rest) = (buffer.readableBytes, count - buffer.readableBytes)
            let taken = unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: rest) {
                room in
                max(
                    0,
                    FileWork.again {
                        unsafe pread(
                            self.descriptor, room.baseAddress, rest, off_t(offset) + off_t(done))
                    })
            }
            guard taken > 0 else { return nil }
        }
        return buffer
    }
}
