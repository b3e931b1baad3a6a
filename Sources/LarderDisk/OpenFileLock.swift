import Glibc
import LarderLMDB

/// The lock of a writer on an open file, which others can see without taking it.
///
/// Writers keep each other out by one of fcntl(2), which others can see without taking it. Those
/// of release 0.1.0 know one of flock(2) alone, so that a writer takes both. Whoever looks for them
/// takes the second for a moment, shared, and meanwhile a writer cannot have it alone. Where he can
/// have it shared, others only look; and shared it keeps older writers out as well.
///
/// Both kinds belong to the open file: they end when it is closed, and a process that opens it
/// twice is refused like two.
enum OpenFileLock {
    /// False where another writer has it.
    static func take(_ descriptor: Int32) throws(LMDBError) -> Bool {
        var kinds = [LOCK_EX]
        if Self.set(F_WRLCK, descriptor) == 0 {
            kinds.append(LOCK_SH)
        } else if errno == EAGAIN || errno == EACCES {
            return false
        }
        // Without the first, which few file systems lack, the second must be had alone.
        for kind in kinds {
            if flock(descriptor, kind | LOCK_NB) == 0 { return true }
            guard errno == EWOULDBLOCK else {
                throw LMDBError(returnCode: errno, operation: "flock")
            }
        }
        return false
    }

    /// Whether a writer has it.
    ///
    /// A writer of an older release is found by the shared lock, which writers put up with.
    static func isTaken(_ descriptor: Int32) -> Bool {
        // A lock that would get in the way of this one is told in its place.
        var lock = Self.whole(F_RDLCK)
        if unsafe fcntl(descriptor, Self.getting, &lock) == 0, lock.l_type != Int16(F_UNLCK) {
            return true
        }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }

    static func release(_ descriptor: Int32) {
        _ = flock(descriptor, LOCK_UN)
        _ = Self.set(F_UNLCK, descriptor)
    }

    // F_OFD_GETLK and F_OFD_SETLK, the same on every Linux: glibc declares them to those alone who
    // ask for GNU's extensions.
    private static let getting: Int32 = 36
    private static let setting: Int32 = 37

    private static func set(_ kind: Int32, _ descriptor: Int32) -> Int32 {
        var lock = Self.whole(kind)
        return unsafe fcntl(descriptor, Self.setting, &lock)
    }

    /// fcntl(2): "the l_pid field of the flock structure … must be zero".
    private static func whole(_ kind: Int32) -> flock {
        flock(l_type: Int16(kind), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 0, l_pid: 0)
    }
}
