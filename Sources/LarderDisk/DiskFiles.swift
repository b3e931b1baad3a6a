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

    /// A file on its way to become the data file; no part of the cache before it has its name.
    var next: String { self.data + ".new" }
    var nextReaderTable: String { self.next + "-lock" }

    /// Files that were set aside and are kept: they must not fill the disk one by one.
    static let asideLimit = 2
    static let asideMark = "cache.mdb.damaged-"

    /// Makes the directory and its parents, readable by this user alone, where they do not exist.
    ///
    /// Throws `.unsafeDirectory` for one in which others could exchange the files.
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
        try OwnPlace.checkDirectory(self.directory)
    }

    // MARK: Setting aside

    /// A file that was set aside.
    struct Aside: Sendable, Equatable {
        var name: String
        var bytes: UInt64
        /// When, and which of that second's.
        var second: Int64
        var number: Int
    }

    /// Gives the data file another name; returns it.
    ///
    /// The oldest of such files are removed first, and told. The table of readers stays: whoever
    /// still reads the file needs it. A new data file needs its own.
    func setAside(
        second: Int64, _ removed: (Aside) -> Void = { _ in }
    ) throws(LMDBError) -> String {
        for aside in self.asides.dropLast(Self.asideLimit - 1)
        where unsafe unlink(self.directory + "/" + aside.name) == 0 {
            removed(aside)
        }
        var name = Self.asideMark + String(second)
        var number = 1
        while unsafe access(self.directory + "/" + name, F_OK) == 0, number < 1000 {
            number += 1
            name = "\(Self.asideMark)\(second)-\(number)"
        }
        guard unsafe rename(self.data, self.directory + "/" + name) == 0 else {
            throw LMDBError(returnCode: errno, operation: "rename")
        }
        return name
    }

    /// The files that were set aside, the oldest first.
    var asides: [Aside] {
        guard let listing = unsafe opendir(self.directory) else { return [] }
        defer { _ = unsafe closedir(listing) }
        var found: [Aside] = []
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if let aside = self.aside(name) { found.append(aside) }
        }
        return found.sorted { ($0.second, $0.number, $0.name) < ($1.second, $1.number, $1.name) }
    }

    private func aside(_ name: String) -> Aside? {
        guard name.hasPrefix(Self.asideMark) else { return nil }
        let parts = name.dropFirst(Self.asideMark.count).split(separator: "-")
        return Aside(
            name: name, bytes: Self.size(of: self.directory + "/" + name) ?? 0,
            second: parts.first.flatMap { Int64($0) } ?? 0,
            number: parts.dropFirst().first.flatMap { Int($0) } ?? 1)
    }

    /// Removes the data file; who reads it still has it open.
    func removeData() throws(LMDBError) {
        guard unsafe unlink(self.data) == 0 || errno == ENOENT else {
            throw LMDBError(returnCode: errno, operation: "unlink")
        }
    }

    /// Removes the table of readers of a data file that is no longer there.
    func removeReaderTable() {
        _ = unsafe unlink(self.readerTable)
    }

    // MARK: Exchanging

    /// Gives the next file the name of the data file, in place of the one that may be there.
    ///
    /// It must be open, and synchronised. Its table of readers comes first. So another process that
    /// opens the table and then the file never has the old table with the new file, whose writer
    /// would not know of it, without the table having changed under its name. The other way about
    /// would see the transactions of one file counted in the other, and is kept from that by
    /// ``exchanging(_:)``. If the process dies between the two, a sound file is there, and the first to
    /// open it makes its table anew.
    ///
    /// - Parameter takesAway: makes room for it, as late as can be.
    func installNext(
        takesAway: () throws(LMDBError) -> Void = {}
    ) throws(LMDBError) {
        try self.exchanging { () throws(LMDBError) in
            try takesAway()
            for (from, to) in [(self.nextReaderTable, self.readerTable), (self.next, self.data)] {
                guard unsafe rename(from, to) == 0 else {
                    throw LMDBError(returnCode: errno, operation: "rename")
                }
            }
        }
        self.synchronizeDirectory()
    }

    /// Removes what an exchange left that did not come to its end.
    func removeNext() {
        _ = unsafe unlink(self.next)
        _ = unsafe unlink(self.nextReaderTable)
    }

    /// Runs `body`, which gives files other names one after the other, while nobody opens them.
    ///
    /// flock(2) on the directory; the kernel gives the lock up when the process ends. Who opens the
    /// cache takes it no longer than to see that it is free (``awaitExchange()``): should somebody be
    /// stopped just then, the writer does not wait, and others who open it at that moment try again.
    private func exchanging(_ body: () throws(LMDBError) -> Void) throws(LMDBError) {
        let descriptor = unsafe open(self.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if descriptor >= 0 { _ = close(descriptor) } }
        if descriptor >= 0 { _ = flock(descriptor, LOCK_EX | LOCK_NB) }
        try body()
    }

    /// Waits until the names lead to files that belong together: two system calls, unless another
    /// process is just exchanging them.
    func awaitExchange() {
        let descriptor = unsafe open(self.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { _ = close(descriptor) }
        while flock(descriptor, LOCK_SH) != 0, errno == EINTR {}
    }

    /// Brings the new names to the disk: until then they are in the kernel's memory alone.
    ///
    /// Where that fails, power that fails brings the old file back, which is as whole as the new one.
    private func synchronizeDirectory() {
        let descriptor = unsafe open(self.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        _ = close(descriptor)
    }

    // MARK: Sizes

    /// Bytes that this user may still write to the file system.
    func freeBytes() throws(LMDBError) -> UInt64 {
        var status = statvfs()
        guard unsafe statvfs(self.directory, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "statvfs")
        }
        let (bytes, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(
            by: UInt64(status.f_frsize))
        return overflow ? .max : bytes
    }

    /// The size of the data file; nil where there is none.
    var dataSize: UInt64? { Self.size(of: self.data) }

    /// Whether the data file holds anything, or may: it cannot be looked at.
    var mayHoldData: Bool {
        var status = stat()
        if unsafe stat(self.data, &status) == 0 { return status.st_size > 0 }
        return errno != ENOENT && errno != ENOTDIR
    }

    /// Which files the names lead to now; nil where there is none.
    struct Named: Equatable {
        var data: FileIdentity?
        var readerTable: FileIdentity?
    }

    var named: Named {
        Named(
            data: try? FileIdentity(path: self.data),
            readerTable: try? FileIdentity(path: self.readerTable))
    }

    private static func size(of path: String) -> UInt64? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        return UInt64(clamping: status.st_size)
    }
}
