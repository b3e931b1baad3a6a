import LarderConfig
import LarderDaemon
import LarderDisk
import LarderHTTP
import LarderPolicy

// Writing to a session's cache in this process, where no proxy does.
extension DiskStore {
    /// Opens it, to be closed by `close()`.
    ///
    /// - Throws: `DaemonError` where root would make files among those of somebody else, or
    ///   `CommandFailure`.
    static func openHere(in directory: String, for session: SessionSettings) throws -> DiskStore {
        try ForeignFile.check(directory, holding: "cache.mdb")
        do throws(StoreError) {
            return try DiskStore.open(
                DiskConfiguration(
                    directory: directory, capacity: ByteCount(session.cache.disk.bytes)),
                clock: { Timestamp(microseconds: wallClockMicroseconds()) }, report: { _ in })
        } catch {
            throw CommandFailure(store: error)
        }
    }

    /// Returns once all is on the disk and the file is free for others.
    func close() async {
        await withCheckedContinuation { done in self.close { done.resume() } }
    }
}
