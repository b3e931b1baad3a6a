import Glibc
import LarderLMDB

/// The files of a disk store, by name.
struct DiskFiles: Sendable, Equatable {
    var directory: String

    /// The LMDB file.
    var data: String { self.directory + "/cache.mdb" }
    /// LMDB's table of readers beside it.
    var readerTable: String { self.data + "-lock" }
    /// Locked by the process that writes; holds its pid.
    var writerLock: String { self.directory + "/cache.lock" }

    static let asideMark = "cache.mdb.damaged-"

    /// Makes the directory and its parents, readable by this user alone, where they do not exist.
    func makeDirectory() throws(LMDBError) {
        var path = self.directory.hasPrefix("/") ? "/" : ""
        for part in self.directory.split(separator: "/") {
            path += path.isEmpty || path == "/" ? "\(part)" : "/\(part)"
            if unsafe mkdir(path, 0o700) == 0 || errno == EEXIST { continue }
            throw LMDBError(returnCode: errno, operation: "mkdir")
        }
        var status = stat()
        guard unsafe stat(self.directory, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "stat")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw LMDBError(returnCode: ENOTDIR, operation: "mkdir")
        }
    }

    /// Renames the data file, so that a new one can be made; returns its new name.
    ///
    /// Only the latest such file is kept: they must not fill the disk one by one.
    func setAside(second: Int64) throws(LMDBError) -> String {
        self.removeOlderAside()
        var name = Self.asideMark + String(second)
        var number = 1
        while unsafe access(self.directory + "/" + name, F_OK) == 0, number < 1000 {
            number += 1
            name = "\(Self.asideMark)\(second)-\(number)"
        }
        guard unsafe rename(self.data, self.directory + "/" + name) == 0 else {
            throw LMDBError(returnCode: errno, operation: "rename")
        }
        // Whoever still reads the old file goes on with the old table; the new file needs its own.
        _ = unsafe unlink(self.readerTable)
        return name
    }

    private func removeOlderAside() {
        guard let listing = unsafe opendir(self.directory) else { return }
        defer { _ = unsafe closedir(listing) }
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name.hasPrefix(Self.asideMark) { _ = unsafe unlink(self.directory + "/" + name) }
        }
    }

    /// Removes the data file, which holds nothing that cannot be fetched again.
    func discard() throws(LMDBError) {
        guard unsafe unlink(self.data) == 0 || errno == ENOENT else {
            throw LMDBError(returnCode: errno, operation: "unlink")
        }
        _ = unsafe unlink(self.readerTable)
    }

    /// The size of the data file; nil where there is none.
    var dataSize: UInt64? {
        var status = stat()
        guard unsafe stat(self.data, &status) == 0 else { return nil }
        return UInt64(clamping: status.st_size)
    }
}

/// The right to write, held by one process at a time.
///
/// A lock of flock(2) on a file of its own, which also names the holder. The kernel gives it up when
/// the process ends, in whatever way; the file stays. Looking into a cache needs no such right.
final class WriterLock: Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        _ = close(self.descriptor)
    }

    /// Lets another process have it.
    func release() {
        _ = flock(self.descriptor, LOCK_UN)
    }

    /// Takes the lock; throws `.inUse` where another process, or this one, holds it.
    static func acquire(_ files: DiskFiles) throws(StoreError) -> WriterLock {
        let path = files.writerLock
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError(LMDBError(returnCode: errno, operation: "open"), path: path)
        }
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let number = errno
            let pid = Self.holder(descriptor)
            _ = close(descriptor)
            guard number == EWOULDBLOCK else {
                throw StoreError(LMDBError(returnCode: number, operation: "flock"), path: path)
            }
            throw StoreError(
                .inUse(pid: pid), path: files.directory,
                cause: "process \(pid.map(String.init) ?? "?") writes to this cache",
                remedy: "stop it, or name another directory")
        }
        let text = Array("\(getpid())\n".utf8)
        guard ftruncate(descriptor, 0) == 0,
            unsafe pwrite(descriptor, text, text.count, 0) == text.count
        else {
            let error = LMDBError(returnCode: errno, operation: "write")
            _ = close(descriptor)
            throw StoreError(error, path: path)
        }
        return WriterLock(descriptor: descriptor)
    }

    private static func holder(_ descriptor: Int32) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = unsafe pread(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: bytes.prefix(count).prefix { $0 != 10 }, as: UTF8.self))
    }

    /// The process that holds the lock of this directory now; nil where none does.
    static func holder(of files: DiskFiles) -> Int32? {
        let descriptor = unsafe open(files.writerLock, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        if flock(descriptor, LOCK_SH | LOCK_NB) == 0 { return nil }
        return Self.holder(descriptor)
    }
}
