import CLMDB
import Glibc

/// A failure of LMDB or of a system call that it made.
package struct LMDBError: Error, Sendable, Equatable {
    /// What went wrong, one case for each thing that a caller can act on.
    package enum Code: String, Sendable, CaseIterable {
        /// The map is full: no run of free pages is long enough.
        case mapFull = "map-full"
        /// The file system is full, or a quota is used up.
        case noSpace = "no-space"
        /// The file is not an LMDB file.
        case notLMDB = "not-lmdb"
        /// A page is not what it should be.
        case corrupted
        /// The file or its lock file is of another version of LMDB.
        case versionMismatch = "version-mismatch"
        /// All slots for readers are taken.
        case readersFull = "readers-full"
        /// Too many dirty pages in one transaction.
        case transactionFull = "transaction-full"
        /// Another process has made the map larger: adopt its size and begin again.
        case mapResized = "map-resized"
        /// A fatal error came before; the environment can only be closed.
        case panic
        case badTransaction = "bad-transaction"
        case badValueSize = "bad-value-size"
        case notFound = "not-found"
        case permissionDenied = "permission-denied"
        case readOnlyFileSystem = "read-only-file-system"
        case inputOutput = "input-output"
        case noMemory = "no-memory"
        case noSuchFile = "no-such-file"
        /// This process has the file open already (see ``Environment``).
        case alreadyOpen = "already-open"
        /// Another file has taken its place while it was being opened: begin again.
        case exchanged
        case closed
        /// Whoever asked for it wants it no more.
        case cancelled
        /// What bears the name of a file of ours may have been laid there by somebody (``OwnPlace``).
        case foreignFile = "foreign-file"
        /// Somebody else could lay something there.
        case unsafeDirectory = "unsafe-directory"
        case other
    }

    package var code: Code
    /// The return code as it came: an `MDB_` code below zero or an `errno` above.
    package var number: Int32
    /// The call that failed.
    package var operation: String

    package init(_ code: Code, number: Int32 = 0, operation: String) {
        self.code = code
        self.number = number
        self.operation = operation
    }

    /// The error for a return code other than zero: the one place where such codes are read.
    package init(returnCode: Int32, operation: StaticString) {
        let code: Code =
            switch returnCode {
            case MDB_MAP_FULL: .mapFull
            case MDB_INVALID: .notLMDB
            case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_CURSOR_FULL, MDB_PAGE_FULL,
                AssertedCalls.assertionFailed:
                .corrupted
            case MDB_VERSION_MISMATCH, MDB_INCOMPATIBLE: .versionMismatch
            case MDB_READERS_FULL, MDB_TLS_FULL: .readersFull
            case MDB_TXN_FULL: .transactionFull
            case MDB_MAP_RESIZED: .mapResized
            case MDB_PANIC: .panic
            case MDB_BAD_TXN, MDB_BAD_RSLOT, MDB_BAD_DBI, MDB_DBS_FULL: .badTransaction
            case MDB_BAD_VALSIZE: .badValueSize
            case MDB_NOTFOUND: .notFound
            case ENOSPC, EDQUOT, EFBIG: .noSpace
            case EACCES, EPERM: .permissionDenied
            case EROFS: .readOnlyFileSystem
            case EIO: .inputOutput
            case ENOMEM: .noMemory
            case ENOENT, ENOTDIR: .noSuchFile
            default: .other
            }
        self.init(code, number: returnCode, operation: "\(operation)")
    }

    /// Throws the error that `returnCode` stands for, unless it is success.
    static func check(_ returnCode: Int32, _ operation: StaticString) throws(LMDBError) {
        if returnCode != MDB_SUCCESS {
            throw LMDBError(returnCode: returnCode, operation: operation)
        }
    }
}

extension LMDBError {
    /// Whether the file or the disk has no room for what was to be written.
    package var lacksRoom: Bool { self.code == .mapFull || self.code == .noSpace }
}

extension LMDBError: CustomStringConvertible {
    /// The failure in a line: the call, and what LMDB or the system says of the code.
    package var description: String {
        guard self.number != 0, let text = unsafe mdb_strerror(self.number) else {
            // Found by a look of our own, which says what it saw.
            return switch self.code {
            case .corrupted: "damaged: \(self.operation)"
            case .foreignFile, .unsafeDirectory: self.operation
            default: "\(self.operation): \(self.code.rawValue)"
            }
        }
        return "\(self.operation): \(unsafe String(cString: text))"
    }
}
