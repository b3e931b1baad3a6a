import CLinux
import Dispatch
import Foundation
import Glibc

/// Reading and writing of files, which blocks: on threads that do nothing else.
enum FileWork {
    /// A queue of a class of its own, so that a slow disk takes no thread from anything but other
    /// files.
    static let queue = DispatchQueue(
        label: "URLLoading.files", qos: .utility, attributes: .concurrent)

    /// A call that a signal broke off is made again.
    static func again(_ call: () -> Int) -> Int {
        while true {
            let result = call()
            if result >= 0 || errno != EINTR { return result }
        }
    }

    /// What `open` failed with, as URL loading names it.
    static func openingError(_ number: CInt, _ url: URL) -> URLError {
        let code: URLError.Code =
            switch number {
            case ENOENT, ENOTDIR: .fileDoesNotExist
            case EACCES, EPERM: .noPermissionsToReadFile
            case EISDIR: .fileIsDirectory
            default: .cannotOpenFile
            }
        return self.error(code, url, number: number)
    }

    static func error(
        _ code: URLError.Code, _ url: URL, number: CInt? = nil, saying text: String? = nil
    ) -> URLError {
        var info: [String: Any] = [NSFilePathErrorKey: url.path]
        info[NSLocalizedDescriptionKey] = text
        if let number, let posix = POSIXErrorCode(rawValue: number) {
            info[NSUnderlyingErrorKey] = POSIXError(posix)
        }
        return URLError(code, userInfo: info)
    }
}

/// What the system says about a file.
struct FileStatus: Sendable, Equatable {
    let device: UInt64
    let inode: UInt64
    let size: Int64
    /// When it was written last, in nanoseconds since 1970.
    let modified: Int64
    let owner: uid_t
    let links: UInt64
    let isRegular: Bool
    let isDirectory: Bool
    /// Others than the owner may write to it.
    let isOpenToOthers: Bool

    private init(_ status: stat) {
        self.device = UInt64(status.st_dev)
        self.inode = UInt64(status.st_ino)
        self.size = Int64(status.st_size)
        self.modified = unsafe withUnsafePointer(to: status) { unsafe larder_modified($0) }
        self.owner = status.st_uid
        self.links = UInt64(status.st_nlink)
        self.isRegular = status.st_mode & S_IFMT == S_IFREG
        self.isDirectory = status.st_mode & S_IFMT == S_IFDIR
        self.isOpenToOthers = status.st_mode & (S_IWGRP | S_IWOTH) != 0
    }

    /// Reads it from an open file; nil where the system does not say.
    init?(of descriptor: CInt) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads it of what a path leads to, or of a link itself where that is not to be followed.
    init?(atPath path: String, followsLink: Bool = true) {
        var status = stat()
        let result = followsLink ? unsafe stat(path, &status) : unsafe lstat(path, &status)
        guard result == 0 else { return nil }
        self.init(status)
    }

    /// Whether both are the same file, whatever its name and length.
    func isSameFile(as other: FileStatus) -> Bool {
        self.device == other.device && self.inode == other.inode
    }
}
