import Glibc
import LarderHTTP
package import LarderLMDB

/// Why a disk store could not be opened or read.
///
/// The engine goes on without a disk tier; `description` is what it says once.
package struct StoreError: Error, Sendable, Equatable {
    package enum Code: Sendable, Equatable {
        /// Another process writes to it; nil where its pid could not be read.
        case inUse(pid: Int32?)
        /// There is no cache file (only where one is not made).
        case missing
        case notWritable
        /// Somebody else may have laid it there, or could.
        case untrusted
        case noSpace
        /// The file is damaged, or of a format that this version does not know.
        case damaged
        /// Only a part of a response is stored.
        case incomplete
        case invalidConfiguration
        case closed
        /// Whoever wanted it opened wants it no more.
        case cancelled
        case failed
    }

    package var code: Code
    /// The file or directory in question.
    package var path: String
    /// What happened, in a line.
    package var cause: String
    /// What a person can do about it, in a line.
    package var remedy: String

    package init(_ code: Code, path: String, cause: String, remedy: String) {
        self.code = code
        self.path = path
        self.cause = cause
        self.remedy = remedy
    }

    /// The error that a failure of LMDB or of a system call below `path` stands for.
    package init(_ error: LMDBError, path: String) {
        let code: Code
        let remedy: String
        switch error.code {
        case .noSpace:
            (code, remedy) = (.noSpace, "free some space, or move the cache to another disk")
        case .mapFull, .transactionFull:
            (code, remedy) = (.noSpace, "raise the cache's capacity")
        case .permissionDenied:
            (code, remedy) = (.notWritable, "give this user the directory, or name another")
        case .foreignFile:
            (code, remedy) = (.untrusted, "see who put it there, and remove it")
        case .unsafeDirectory:
            (code, remedy) = (
                .untrusted,
                "chown it to the user that larder runs as and chmod go-w it, or name another"
            )
        case .readOnlyFileSystem:
            (code, remedy) = (.notWritable, "remount it writable, or name another directory")
        case .noSuchFile, .notFound:
            (code, remedy) = (.missing, "check the path of the cache's directory")
        case .notLMDB, .corrupted, .versionMismatch:
            (code, remedy) = (
                .damaged, "remove the file; it holds nothing that cannot be refetched"
            )
        case .closed:
            (code, remedy) = (.closed, "open the cache again")
        case .cancelled:
            (code, remedy) = (.cancelled, "open the cache again")
        case .alreadyOpen:
            (code, remedy) = (.inUse(pid: nil), "close it first where it is open in this process")
        case .exchanged:
            (code, remedy) = (.inUse(pid: nil), "try again: its file was just being exchanged")
        case .readersFull:
            (code, remedy) = (.failed, "end some of the programs that read the cache")
        case .inputOutput:
            // A file system that is full says so where it can be asked, which not every one can.
            (code, remedy) = (.failed, "see whether the file system is full, then the kernel's log")
        case .noMemory where error.operation == "mdb_env_open":
            (code, remedy) = (
                .failed,
                "lower cache.disk, of this session or of another: each file is mapped whole; or raise "
                    + "the limit of address space (ulimit -v)"
            )
        case .noMemory:
            (code, remedy) = (.failed, "free some memory or address space")
        case .other where error.number == EAGAIN && error.operation == "pthread_create":
            (code, remedy) = (.failed, NamedThread.remedy)
        case .other where error.number == EAGAIN:
            // LMDB knows readers by the numbers of their processes (fcntl(2)).
            (code, remedy) = (
                .failed,
                "try again; a process of the same number in another container may have it open"
            )
        case .mapResized, .panic, .badTransaction, .badValueSize, .other:
            (code, remedy) = (.failed, "restart; where it stays, remove the cache's directory")
        }
        self.init(code, path: path, cause: error.description, remedy: remedy)
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String { "\(self.path): \(self.cause) (\(self.remedy))" }
}
