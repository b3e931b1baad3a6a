import Glibc
import Synchronization

/// Which file it is, whatever path leads to it.
package struct FileIdentity: Hashable, Sendable {
    var device: UInt64
    var inode: UInt64

    init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }

    init(_ status: stat) {
        self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    /// The identity of the file at `path`.
    package init(path: String) throws(LMDBError) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "stat")
        }
        self.init(status)
    }
}

/// The environments that this process has open, by device and inode.
///
/// lmdb.h: "Do not have open an LMDB database twice in the same process at the same time. Not even
/// from a plain open() call - close()ing it breaks fcntl() advisory locking." So an opening first
/// takes its place here, and gives it up once the environment is closed.
enum EnvironmentRegistry {
    private struct Place {
        weak var environment: Environment?
    }

    private static let places = Mutex<[FileIdentity: Place]>([:])

    /// Takes the file's place; throws `.alreadyOpen` where it is taken.
    static func reserve(_ identity: FileIdentity) throws(LMDBError) {
        let isFree = self.places.withLock { places in
            if places[identity] != nil { return false }
            places[identity] = Place()
            return true
        }
        if !isFree { throw LMDBError(.alreadyOpen, operation: "open") }
    }

    static func register(_ environment: Environment, as identity: FileIdentity) {
        self.places.withLock { $0[identity] = Place(environment: environment) }
    }

    static func release(_ identity: FileIdentity) {
        self.places.withLock { _ = $0.removeValue(forKey: identity) }
    }

    static func environment(for identity: FileIdentity) -> Environment? {
        self.places.withLock { $0[identity]?.environment }
    }
}
