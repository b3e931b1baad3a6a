import Glibc
import LarderLMDB

extension StateError {
    /// The error for a system call that failed.
    init(system number: Int32, _ call: String, path: String) {
        let text = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        switch number {
        case ENOSPC, EDQUOT, EFBIG:
            self.init(
                .full, path: path, cause: "\(call): \(text)",
                remedy: "make room; what changes meanwhile is kept in memory")
        case EACCES, EPERM:
            self.init(
                .unavailable, path: path, cause: "\(call): \(text)",
                remedy: "let the user that larder runs as read and write it")
        case EBUSY:
            self.init(
                .unavailable, path: path, cause: "\(call): \(text)",
                remedy: "if it is a mount point, mount its directory instead")
        default:
            self.init(
                .unavailable, path: path, cause: "\(call): \(text)",
                remedy: "see whether the disk is in order")
        }
    }

    /// The error for a failure of the state file's.
    init(_ error: LMDBError, path: String) {
        switch error.code {
        case .mapFull, .noSpace:
            self.init(
                .full, path: path, cause: "\(error)",
                remedy: "make room; what changes meanwhile is kept in memory")
        case .corrupted, .notLMDB, .versionMismatch, .panic, .badTransaction, .mapResized,
            .notFound:
            self.init(
                .damaged, path: path, cause: "\(error)",
                remedy: "restart larder: it looks at the file and says what is lost")
        case .alreadyOpen:
            self.init(
                .inUse, path: path, cause: "this process has the state open already",
                remedy: "give each session a state directory of its own")
        case .foreignFile:
            self.init(
                .untrusted, path: path, cause: "\(error)",
                remedy: "see who put it there, and remove it")
        case .unsafeDirectory:
            self.init(
                .untrusted, path: path, cause: "\(error)",
                remedy: "chown it to the user that larder runs as, or name another")
        case .readersFull, .transactionFull, .badValueSize, .permissionDenied,
            .readOnlyFileSystem, .inputOutput, .noMemory, .noSuchFile, .exchanged, .closed,
            .cancelled,
            .other:
            self.init(
                .unavailable, path: path, cause: "\(error)",
                remedy: "see whether the disk is in order")
        }
    }
}
