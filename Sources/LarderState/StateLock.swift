import Glibc

/// The right to a state file, held by one process at a time: a lock of flock(2) on a file that names
/// its holder.
///
/// The kernel gives it up when the process ends, in whatever way.
final class StateLock: Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        _ = close(self.descriptor)
    }

    /// Throws `.inUse` where another process, or this one, holds it.
    static func acquire(_ directory: StateDirectory) throws(StateError) -> StateLock {
        let path = directory.lock
        let descriptor = try directory.open(path, O_RDWR | O_CREAT)
        let lock = StateLock(descriptor: descriptor)
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let number = errno
            guard number == EWOULDBLOCK else {
                throw StateError(system: number, "flock", path: path)
            }
            throw StateError(
                .inUse, path: directory.path,
                cause: "process \(Self.holder(descriptor) ?? "?") has this state open",
                remedy: "stop it, or name another directory: sessions.NAME.state-directory")
        }
        // Where the pid cannot be written, nothing is lost but a hint.
        let text = Array("\(getpid())\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = unsafe pwrite(descriptor, text, text.count, 0)
        return lock
    }

    /// Waits until it is free, and notes nobody's name: for those who hold it for a moment only.
    ///
    /// Throws `.inUse` where somebody holds it who does so until its end.
    static func borrow(_ directory: StateDirectory) throws(StateError) -> StateLock {
        let path = directory.lock
        let descriptor = try directory.open(path, O_RDWR | O_CREAT)
        let lock = StateLock(descriptor: descriptor)
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK else {
                throw StateError(system: errno, "flock", path: path)
            }
            // One that has died may have left its name to somebody who is about to remove it.
            if let holder = Self.holder(descriptor).flatMap({ pid_t($0) }), kill(holder, 0) == 0 {
                throw StateError(
                    .inUse, path: directory.path,
                    cause: "process \(holder) has this state for itself",
                    remedy: "stop it, or name another directory: sessions.NAME.state-directory")
            }
            while flock(descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else {
                    throw StateError(system: errno, "flock", path: path)
                }
            }
        }
        _ = ftruncate(descriptor, 0)
        return lock
    }

    private static func holder(_ descriptor: Int32) -> String? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = unsafe pread(descriptor, &bytes, bytes.count, 0)
        let text = String(decoding: bytes.prefix(max(0, count)).prefix { $0 != 10 }, as: UTF8.self)
        return Int32(text).map(String.init)
    }
}
