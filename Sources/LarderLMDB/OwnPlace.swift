import Glibc

/// Places in which nobody else can have laid something for us to write to.
///
/// Who may write to a directory of ours could put a link there that bears the name of a file of ours,
/// and choose by it what we write over.
package enum OwnPlace {
    /// Opens a file of ours, closed on exec; where `flags` let it be made, for this user alone.
    ///
    /// Throws `.foreignFile` for what ``check(_:)`` refuses.
    package static func open(_ path: String, _ flags: Int32) throws(LMDBError) -> Int32 {
        // O_NONBLOCK: a FIFO of that name must not hold anybody up. Files do not know it.
        let descriptor = unsafe Glibc.open(
            path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            // ELOOP for a link, ENXIO for a socket: what it is says more.
            let number = errno
            try Self.check(path)
            throw LMDBError(returnCode: number, operation: "open")
        }
        do throws(LMDBError) {
            var status = stat()
            guard unsafe fstat(descriptor, &status) == 0 else {
                throw LMDBError(returnCode: errno, operation: "fstat")
            }
            try Self.check(status, path)
            return descriptor
        } catch {
            _ = close(descriptor)
            throw error
        }
    }

    /// Has root make a file for whoever owns the other one, which lies in the same directory.
    ///
    /// Root may look into the files of a service, which could not use what root leaves there. A file
    /// that is there stays whose it is: anybody's may have been given the name. Nothing is made for
    /// other users, nor where the other file is root's own or is not there.
    package static func make(
        _ path: String, forOwnerOf other: String
    ) throws(LMDBError) {
        guard geteuid() == 0 else { return }
        // Held by a descriptor: its name may lead elsewhere a moment later, where root must give
        // nothing away.
        let directory = unsafe Glibc.open(
            Self.directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        defer { _ = close(directory) }
        var status = stat()
        guard unsafe fstatat(directory, Self.name(of: other), &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_mode & S_IFMT == S_IFREG, status.st_uid != 0
        else { return }
        try Self.check(status, other)
        let name = Self.name(of: path)
        let descriptor = unsafe openat(
            directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        // Where it cannot be made, whoever opens it knows what to say.
        guard descriptor >= 0 else { return }
        defer { _ = close(descriptor) }
        guard fchown(descriptor, status.st_uid, status.st_gid) != 0 else { return }
        let number = errno
        _ = unsafe unlinkat(directory, name, 0)
        throw LMDBError(returnCode: number, operation: "fchown")
    }

    /// Refuses what is there and is not a file with one name, of this user, of root or of whoever
    /// the directory belongs to; for what is opened by its name.
    package static func check(_ path: String) throws(LMDBError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return }
        try Self.check(status, path)
    }

    static func check(_ status: stat, _ path: String) throws(LMDBError) {
        let objection: String
        switch status.st_mode & S_IFMT {
        case S_IFREG where status.st_nlink > 1: objection = "has \(status.st_nlink) names"
        case S_IFREG where Self.isOurs(status.st_uid): return
        case S_IFREG where Self.owner(ofDirectoryOf: path) == status.st_uid: return
        case S_IFREG: objection = "belongs to user \(status.st_uid)"
        case S_IFLNK: objection = "is a symbolic link"
        default: objection = "is no file"
        }
        throw LMDBError(.foreignFile, operation: "\(Self.name(of: path)) \(objection)")
    }

    /// Refuses a directory that belongs to another user than this one or root.
    ///
    /// Its path may lead there by links, which service managers make.
    package static func checkOwner(ofDirectory path: String) throws(LMDBError) {
        try Self.checkOwner(try Self.directory(path))
    }

    private static func checkOwner(_ status: stat) throws(LMDBError) {
        guard !Self.isOurs(status.st_uid) else { return }
        throw LMDBError(
            .unsafeDirectory,
            operation: "the directory belongs to user \(status.st_uid), not to \(geteuid())")
    }

    /// Refuses a directory that belongs to others, and one that others may exchange files in.
    package static func checkDirectory(_ path: String) throws(LMDBError) {
        let status = try Self.directory(path)
        try Self.checkOwner(status)
        guard !Self.isSafe(status, user: geteuid(), group: getegid()) else { return }
        let mode = String(status.st_mode & 0o7777, radix: 8)
        throw LMDBError(
            .unsafeDirectory, operation: "others may write to the directory (mode \(mode))")
    }

    /// Whether the mode of a directory keeps others from exchanging what lies in it.
    ///
    /// Our own group may write where it can be meant for us alone: where root has given us the
    /// directory so, and where the group has our number, as that of a user without others in it.
    static func isSafe(_ status: stat, user: uid_t, group: gid_t) -> Bool {
        if status.st_mode & S_ISVTX != 0 { return true }
        if status.st_mode & S_IWOTH != 0 { return false }
        guard status.st_mode & S_IWGRP != 0 else { return true }
        return status.st_gid == group && (status.st_uid == 0 && user != 0 || group == user)
    }

    private static func directory(_ path: String) throws(LMDBError) -> stat {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "stat")
        }
        return status
    }

    private static func isOurs(_ user: uid_t) -> Bool { user == 0 || user == geteuid() }

    /// nil where there is none that can be looked at.
    private static func owner(ofDirectoryOf path: String) -> uid_t? {
        (try? Self.directory(Self.directory(of: path)))?.st_uid
    }

    private static func directory(of path: String) -> String {
        let name = path.lastIndex(of: "/") ?? path.startIndex
        let directory = path[..<name]
        return directory.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : String(directory)
    }

    private static func name(of path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }
}
