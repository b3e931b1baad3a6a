import Glibc

extension Environment {
    /// Whether the name `path` leads to the file that is open here.
    ///
    /// A file that was deleted or replaced can be read and written as before, but nobody else finds
    /// it, and what is written to it is lost when it is closed.
    package func isFile(at path: String) throws(LMDBError) -> Bool {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            return FileIdentity(status) == self.identity
        }
        guard errno == ENOENT || errno == ENOTDIR else {
            throw LMDBError(returnCode: errno, operation: "stat")
        }
        return false
    }
}
