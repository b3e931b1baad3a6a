import Glibc
import LarderLMDB

/// The directory of a session's state, and the files in it by name.
struct StateDirectory: Sendable {
    let path: String

    var data: String { "\(self.path)/state.mdb" }
    /// LMDB's table of readers.
    private var readerTable: String { "\(self.data)-lock" }
    /// Both of LMDB's, for messages to whoever is to begin anew: the table of readers alone says that
    /// there was a state, see ``hadData``.
    var dataFiles: String { "\(self.data) and state.mdb-lock" }
    var lock: String { "\(self.path)/state.lock" }
    /// Counts the changes of those who share the state; see ``turn()``.
    private var turnFile: String { "\(self.path)/state.turn" }
    /// A file on its way to become the data file.
    var next: String { "\(self.data).new" }

    private static let asideMark = "state.mdb.damaged-"
    /// Files that were set aside are never removed, as they hold what a person may miss; but they
    /// must not fill the disk one by one either.
    private static let asideLimit = 16

    /// Makes the directory, and its parents, for this user alone.
    func make() throws(StateError) {
        try Self.makeAll(self.path)
        var status = stat()
        guard unsafe stat(self.path, &status) == 0 else {
            throw StateError(system: errno, "stat", path: self.path)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw StateError(system: ENOTDIR, "mkdir", path: self.path)
        }
        try Self.translating(self.path) { () throws(LMDBError) in
            try OwnPlace.checkOwner(ofDirectory: self.path)
        }
        if status.st_mode & 0o077 != 0, unsafe chmod(self.path, 0o700) != 0 {
            throw StateError(system: errno, "chmod", path: self.path)
        }
    }

    /// Opens one of its files, for the caller to close.
    ///
    /// Throws `.untrusted` for what somebody else has laid there.
    func open(_ file: String, _ flags: Int32) throws(StateError) -> Int32 {
        try Self.translating(file) { () throws(LMDBError) in try OwnPlace.open(file, flags) }
    }

    private static func translating<Result>(
        _ path: String, _ body: () throws(LMDBError) -> Result
    ) throws(StateError) -> Result {
        do throws(LMDBError) {
            return try body()
        } catch {
            switch error.code {
            case .foreignFile, .unsafeDirectory:
                throw StateError(error, path: path)
            default:
                throw StateError(system: error.number, error.operation, path: path)
            }
        }
    }

    // MARK: Turns

    /// How many changes have been begun by those who share the state.
    ///
    /// Who knows this number knows whether there is anything new. 0 where there is no such file:
    /// nobody has changed anything. Any thread.
    func turn() -> UInt64 {
        guard let descriptor = try? OwnPlace.open(self.turnFile, O_RDONLY) else { return 0 }
        defer { _ = close(descriptor) }
        var turn: UInt64 = 0
        let count = unsafe withUnsafeMutableBytes(of: &turn) { bytes in
            unsafe pread(descriptor, bytes.baseAddress, bytes.count, 0)
        }
        return count == 8 ? UInt64(littleEndian: turn) : 0
    }

    /// Notes that a change begins, with the lock held.
    ///
    /// Not on the disk when it returns: whoever could have missed it ends with the machine.
    func setTurn(_ turn: UInt64) throws(StateError) {
        let descriptor = try self.open(self.turnFile, O_WRONLY | O_CREAT)
        defer { _ = close(descriptor) }
        var turn = turn.littleEndian
        let count = unsafe withUnsafeBytes(of: &turn) { bytes in
            unsafe pwrite(descriptor, bytes.baseAddress, bytes.count, 0)
        }
        guard count == 8 else { throw StateError(system: errno, "write", path: self.turnFile) }
    }

    /// Which file the data is in; nil where there is none.
    var dataPlace: FilePlace? { FilePlace(self.data) }

    /// Makes what there is not yet of a path of directories, for this user alone.
    static func makeAll(_ whole: String) throws(StateError) {
        var path = whole.hasPrefix("/") ? "/" : ""
        for part in whole.split(separator: "/") {
            path += path.isEmpty || path == "/" ? "\(part)" : "/\(part)"
            if unsafe mkdir(path, 0o700) == 0 || errno == EEXIST { continue }
            throw StateError(system: errno, "mkdir", path: path)
        }
    }

    /// Refuses a key file that lies where the state does: whoever copies the directory would have
    /// both.
    func checkIsOutside(_ keyPath: String) throws(StateError) {
        // What is not there yet has no links to resolve.
        let state = Self.resolved(self.path) ?? self.path
        let keyDirectory = KeyFile.directory(of: keyPath)
        let key = Self.resolved(keyDirectory) ?? keyDirectory
        guard key == state || key.hasPrefix("\(state)/") else { return }
        throw StateError(
            .badKeyFile, path: keyPath, cause: "the key file lies in the state directory",
            remedy: "set key-file to a file outside of it")
    }

    private static func resolved(_ path: String) -> String? {
        guard let text = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(text) }
        return unsafe String(cString: text)
    }

    /// Takes from others what they may have been given.
    func restrictData() throws(StateError) {
        for file in [self.data, self.readerTable] {
            var status = stat()
            guard unsafe lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                status.st_mode & 0o077 != 0
            else { continue }
            guard unsafe chmod(file, 0o600) == 0 else {
                throw StateError(system: errno, "chmod", path: file)
            }
        }
    }

    /// Gives the file another name, and keeps it; returns the name.
    func setAside(second: Int64) throws(StateError) -> String {
        for number in 1...Self.asideLimit {
            let name = Self.asideMark + (number == 1 ? "\(second)" : "\(second)-\(number)")
            let place = "\(self.path)/\(name)"
            if unsafe access(place, F_OK) == 0 { continue }
            guard self.asideCount < Self.asideLimit else { break }
            try KeyFile.rename(self.data, to: place)
            _ = unsafe unlink(self.readerTable)
            return name
        }
        throw StateError(
            .damaged, path: self.data,
            cause: "it is damaged, and \(Self.asideLimit) damaged files lie beside it already",
            remedy: "find out what damages them, and remove those that are not needed")
    }

    /// Whether a file is there that holds nothing at all.
    var dataIsEmpty: Bool {
        var status = stat()
        return unsafe stat(self.data, &status) == 0 && status.st_size == 0
    }

    /// Whether there was a data file once: its table of readers outlives it.
    var hadData: Bool {
        var status = stat()
        return unsafe lstat(self.readerTable, &status) == 0
    }

    /// Removes what the making of a file left that did not come to its end.
    func removeNext() {
        _ = unsafe unlink(self.next)
        _ = unsafe unlink("\(self.next)-lock")
    }

    private var asideCount: Int {
        guard let listing = unsafe opendir(self.path) else { return 0 }
        defer { _ = unsafe closedir(listing) }
        var count = 0
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name.hasPrefix(Self.asideMark) { count += 1 }
        }
        return count
    }
}

/// Which file it is, whatever path leads to it.
package struct FilePlace: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64

    /// nil where there is no such file, or none that can be looked at.
    package init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.device = UInt64(status.st_dev)
        self.inode = UInt64(status.st_ino)
    }
}
