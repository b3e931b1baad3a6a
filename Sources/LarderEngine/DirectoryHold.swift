import Glibc

/// A directory by what it is, not by what it is called.
///
/// Held open: one that is deleted keeps its inode as long, so that no other directory is taken for it.
final class DirectoryHold: Sendable {
    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    let identity: Identity
    private let descriptor: Int32

    /// nil where there is no such directory.
    init?(_ path: String) {
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            _ = close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        self.identity = Identity(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    deinit {
        _ = close(self.descriptor)
    }
}
