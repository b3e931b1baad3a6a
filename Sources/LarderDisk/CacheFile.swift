import LarderLMDB
import Synchronization

/// A cache file that is open for writing, with what holds for it alone.
///
/// ```
/// current ─▶ exchanged for another ─▶ (the last who holds it lets go) ─▶ unmapped and closed
/// ```
///
/// Whoever took it keeps it for a step: an exchange breaks off nothing. A file that was renamed or
/// unlinked in the meantime stays readable until then.
final class CacheFile: Sendable {
    let environment: Environment
    let schema: Schema
    let residency: Residency
    private let found = Mutex<FileTrouble?>(nil)

    init(_ opened: OpenedCache, residentBound: UInt64) {
        self.environment = opened.environment
        self.schema = opened.schema
        self.residency = Residency(opened.environment, bound: residentBound)
    }

    /// Why storing cannot go on with it; the first reason that was found.
    var trouble: FileTrouble? { self.found.withLock { $0 } }

    /// Notes why storing cannot go on with it; false where a reason was known.
    func note(_ trouble: FileTrouble) -> Bool {
        self.found.withLock { found in
            if found != nil { return false }
            found = trouble
            return true
        }
    }
}

/// What befell a file, so that storing cannot go on with it as it is open.
enum FileTrouble: Sendable, Equatable {
    /// Pages are not what was written: another file must take its place.
    case damaged(LMDBError)
    /// LMDB has given the environment up, or a transaction for a reason that it does not tell; the
    /// file may be sound.
    ///
    /// `MDB_PANIC`: "Update of meta page failed or environment had fatal error". `MDB_BAD_TXN` comes
    /// of a transaction that failed before: ours end with the first error, so this one was swallowed,
    /// as mdb_cursor_init does with that of a root page.
    case panicked(LMDBError)
    /// Its name leads to another file or to none.
    case gone
    /// The name of its lock leads to a file that another process has locked.
    case lockedOut
    /// The name of its table of readers leads to another one or to none.
    case unlisted

    /// The trouble that an error speaks of; nil where the file is none the worse for it.
    init?(_ error: LMDBError) {
        switch error.code {
        case .corrupted, .notLMDB, .versionMismatch: self = .damaged(error)
        // Nobody else may write, so nobody has made the map larger: a meta page is not what was
        // written, and LMDB has compared its numbers with the map before they could be vetted.
        case .mapResized:
            self = .damaged(LMDBError(.corrupted, operation: "a last page beyond the map"))
        case .panic, .badTransaction: self = .panicked(error)
        case .mapFull, .noSpace, .readersFull, .transactionFull, .badValueSize,
            .notFound, .permissionDenied, .readOnlyFileSystem, .inputOutput,
            .noMemory, .noSuchFile, .alreadyOpen, .exchanged, .closed, .cancelled,
            .foreignFile, .unsafeDirectory, .other:
            return nil
        }
    }

    /// The error to say where nothing can be done about it now.
    var error: LMDBError {
        switch self {
        case .damaged(let error), .panicked(let error): error
        case .gone, .unlisted: LMDBError(.noSuchFile, operation: "stat")
        case .lockedOut: LMDBError(.exchanged, operation: "lock")
        }
    }
}
