import Glibc

extension Environment {
    /// Whether the name `path` leads to the file that is open here.
    ///
    /// A file that was deleted or replaced can be read and written as before, but nobody else finds
    /// it, and what is written to it is lost when it is closed.
    package func isFile(at path: String) throws(LMDBError) -> Bool {
        try Self.isFile(self.identity, at: path)
    }

    /// Whether the name `path` leads to the table of readers that is in use here.
    ///
    /// Who opens the file by another table is not seen by its writer, and does not see what that
    /// commits.
    package func isReaderTable(at path: String) throws(LMDBError) -> Bool {
        guard let table = self.tableIdentity else { return true }
        return try Self.isFile(table, at: path)
    }

    private static func isFile(
        _ identity: FileIdentity, at path: String
    ) throws(LMDBError) -> Bool {
        var status = stat()
        if unsafe stat(path, &status) == 0 { return FileIdentity(status) == identity }
        guard errno == ENOENT || errno == ENOTDIR else {
            throw LMDBError(returnCode: errno, operation: "stat")
        }
        return false
    }
}
