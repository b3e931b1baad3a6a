import Glibc
import LarderLMDB

extension StateError {
    /// The error for a system call that failed.
    init(system number: Int32, _ call: String, path: String) {
        let text = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        let cause = "\(call): \(text)"
        switch number {
        case ENOSPC, EDQUOT, EFBIG:
            self = .full(path, cause)
        case EACCES, EPERM:
            self = .denied(path, cause)
        case EROFS:
            self = .readOnly(path, cause)
        case EBUSY:
            self.init(
                .unavailable, path: path, cause: cause,
                remedy: "if it is a mount point, mount its directory instead")
        default:
            self = .outOfOrder(path, cause)
        }
    }

    /// The error for a failure of the state file's.
    init(_ error: LMDBError, path: String) {
        switch error.code {
        case .mapFull, .noSpace:
            self = .full(path, "\(error)")
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
        case .permissionDenied:
            self = .denied(path, "\(error)")
        case .readOnlyFileSystem:
            self = .readOnly(path, "\(error)")
        case .readersFull, .transactionFull, .badValueSize, .inputOutput, .noMemory, .noSuchFile,
            .exchanged, .closed, .cancelled, .other:
            self = .outOfOrder(path, "\(error)")
        }
    }

    private static func full(_ path: String, _ cause: String) -> StateError {
        StateError(
            .full, path: path, cause: cause,
            remedy: "make room; what changes meanwhile is kept in memory")
    }

    private static func denied(_ path: String, _ cause: String) -> StateError {
        StateError(
            .denied, path: path, cause: cause,
            remedy: "let the user that larder runs as read and write it")
    }

    private static func readOnly(_ path: String, _ cause: String) -> StateError {
        StateError(
            .unavailable, path: path, cause: cause,
            remedy: "make the file system writable, or give the session another state-directory")
    }

    private static func outOfOrder(_ path: String, _ cause: String) -> StateError {
        StateError(
            .unavailable, path: path, cause: cause, remedy: "see whether the disk is in order")
    }
}
