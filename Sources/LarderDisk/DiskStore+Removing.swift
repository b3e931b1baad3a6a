import Glibc
import LarderLMDB
import Synchronization

/// A cache file as a whole: whether it is there, and taking it away.
extension DiskStore {
    /// Whether a cache file lies in the directory; also where that cannot be told.
    package static func isThere(_ directory: String) -> Bool {
        DiskFiles(directory: directory).mayHoldData
    }

    /// Whether its file is still there, and not deleted or replaced; if not, the writer sees to it.
    ///
    /// One look at the directory: for a cache whose directory is a program's own, which may be removed at
    /// any time.
    package var isInPlace: Bool {
        let file = self.core.file
        guard (try? file.environment.isFile(at: self.core.files.data)) == false else { return true }
        // Its writer has just given the name to a smaller one, or is about to.
        if self.core.isExchanging.load(ordering: .sequentiallyConsistent) || self.core.file !== file
        {
            return true
        }
        if file.note(.gone) { self.core.mailbox.nudge() }
        return false
    }

    /// Makes a directory and its parents, readable by this user alone, where they do not exist.
    ///
    /// Whether it is there now.
    @discardableResult
    package static func makeDirectory(_ directory: String) -> Bool {
        (try? DiskFiles(directory: directory).makeDirectory()) != nil
    }

    /// Takes all files of the cache in a directory away, and the directory where nothing else is in it.
    ///
    /// Throws `.inUse` where a process has the cache open, this one included.
    package static func removeFiles(in directory: String) throws(StoreError) {
        let files = DiskFiles(directory: directory)
        var status = stat()
        guard unsafe stat(files.directory, &status) == 0 else { return }
        // Whoever opens the cache meanwhile waits for the lock's file by its name, and finds another.
        let lock = try WriterLock.acquire(files)
        files.removeNext()
        _ = unsafe unlink(files.data)
        for aside in files.asides { _ = unsafe unlink(files.directory + "/" + aside.name) }
        files.removeReaderTable()
        _ = unsafe unlink(files.writerLock)
        _ = unsafe rmdir(files.directory)
        lock.release()
    }
}
