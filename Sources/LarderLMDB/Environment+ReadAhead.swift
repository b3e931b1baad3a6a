import Glibc

/// What the kernel is told of reads to come; all of it is advice, and no failure of it matters.
extension Environment {
    /// A call of posix_fadvise(2) reads no more than the device's read-ahead (`read_ahead_kb`, 128
    /// where nobody has set it), whatever length it is given.
    private static let adviceLength: UInt64 = 128 << 10

    /// Has the kernel begin to read these bytes of the file; waits for none of them.
    ///
    /// It may wait for the device to take the request, so it is for threads that may.
    package func willNeed(offset: UInt64, length: UInt64) {
        // While it is in use the descriptor is not closed, and not another file's.
        do throws(LMDBError) { _ = try self.beginUse(takesIdle: false) } catch { return }
        defer { self.endUse() }
        var done: UInt64 = 0
        while done < length {
            let part = min(length - done, Self.adviceLength)
            _ = posix_fadvise(
                self.map.descriptor, off_t(clamping: offset &+ done), off_t(clamping: part),
                POSIX_FADV_WILLNEED)
            done += part
        }
    }

    /// Keeps the kernel from guessing what else of the file will be read: bodies lie all over it.
    ///
    /// Without this a small body costs the window of 16 KiB and more that the kernel begins with,
    /// and readers of several bodies disturb each other's windows, which belong to the descriptor.
    package func readsAtRandom() {
        // While it is in use the descriptor is not closed, and not another file's.
        do throws(LMDBError) { _ = try self.beginUse(takesIdle: false) } catch { return }
        defer { self.endUse() }
        _ = posix_fadvise(self.map.descriptor, 0, 0, POSIX_FADV_RANDOM)
    }
}
