import CLMDB
import Glibc

/// Whether it is for want of room that a write of LMDB's could not be ended.
///
/// A run of pages of which a full disk takes a part is EIO to LMDB (mdb_page_flush in mdb.c), as is a
/// disk that fails. What mends the one, to write less and within the file, is nothing against the
/// other. So the disk is asked.
extension Environment {
    /// Sixteen pages: what is left of a disk that took a part of a run is less.
    private static let probedBytes: off_t = 64 << 10

    /// An error of a write transaction, or that there is no room, where it is that.
    ///
    /// For who has the use of the environment.
    func explained(_ error: LMDBError) -> LMDBError {
        guard error.code == .inputOutput, let number = self.lackOfRoom() else { return error }
        return LMDBError(.noSpace, number: number, operation: error.operation)
    }

    /// As ``explained(_:)``, for a code of LMDB's.
    func explained(_ code: Int32) -> Int32 {
        code == EIO ? self.lackOfRoom() ?? code : code
    }

    /// Why the file cannot grow; nil where it can, or cannot be asked.
    ///
    /// The file keeps its size, so that another writer may be at work. What the disk gives for it the
    /// next pages take.
    private func lackOfRoom() -> Int32? {
        var status = stat()
        guard let descriptor = try? unsafe Self.descriptor(of: self.handle),
            unsafe fstat(descriptor, &status) == 0
        else { return nil }
        // Some file systems ask for the bound of the process only where the size changes.
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0,
            limit.rlim_cur < rlim_t(clamping: status.st_size + Self.probedBytes)
        {
            return EFBIG
        }
        while fallocate(
            descriptor, larder_falloc_keep_size, status.st_size, Self.probedBytes) != 0
        {
            switch errno {
            case EINTR: continue
            case ENOSPC, EDQUOT, EFBIG: return errno
            default: return nil
            }
        }
        return nil
    }
}
