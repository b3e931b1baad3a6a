import CLMDB
import Glibc

extension Environment {
    /// Both meta pages lie at the beginning of the file (`MDB_meta` in mdb.c).
    private static let metaPages = 2

    /// Brings the meta page of the last commit to the disk by writing it once more, where it cannot
    /// be known to have got there.
    ///
    /// fsync(2), Notes: a synchronisation that fails may leave pages marked as clean that are not on
    /// the disk, and no later one brings them there. With ``EnvironmentOptions/Durability/dataOnly``
    /// the meta page of commit n is among them when the synchronisation of n+1 fails. The disk then
    /// has n−1 as its newest state, and n+2 would write over pages that only n has freed. So nothing
    /// is written before n is on the disk. The same holds for the first transaction of a process,
    /// which cannot know how the last one ended. What is written is what lies there already: whoever
    /// reads the file sees no change.
    func anchor() throws(LMDBError) {
        let descriptor = try unsafe Self.descriptor(of: self.handle)
        var raw = MDB_stat()
        try unsafe LMDBError.check(mdb_env_stat(self.handle, &raw), "mdb_env_stat")
        var bytes = [UInt8](repeating: 0, count: Int(clamping: raw.ms_psize) * Self.metaPages)
        let count = bytes.count
        guard unsafe pread(descriptor, &bytes, count, 0) == count else {
            throw LMDBError(returnCode: errno == 0 ? EIO : errno, operation: "pread")
        }
        guard unsafe pwrite(descriptor, bytes, count, 0) == count else {
            throw LMDBError(returnCode: errno == 0 ? EIO : errno, operation: "pwrite")
        }
        guard fdatasync(descriptor) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fdatasync")
        }
    }
}
