import Glibc

/// A file that is being written and has no name until it is whole.
///
/// ```
/// init ─▶ (write │ undo)* ─▶ finish ─▶ named
///                        └▶ dropped ─▶ nothing is left
/// ```
///
/// Readable by this user alone (0600): stored heads hold cookies. What is written lies in a file
/// without a name (`O_TMPFILE`), which the kernel takes away when the process ends in whatever way; on
/// a file system that has none, in one beside the target, which is removed when this is dropped.
final class ArchiveFile {
    private let target: String
    private let descriptor: CInt
    /// Where it lies until it is whole; nil where it has no name or is standard output.
    private var temporary: String?
    private let replaces: Bool
    private var waiting: [UInt8] = []
    /// Bytes written, those that wait included.
    private(set) var count: UInt64 = 0

    private static let enough = 1 << 20
    /// open(2): a macro of two flags, which is not imported.
    private static let unnamed = O_DIRECTORY | 0o20_000_000

    private let canUndo: Bool

    /// - Parameters:
    ///   - name: `-` for standard output.
    ///   - replaces: whether a file of that name may be written over.
    init(name: String, replaces: Bool) throws(CommandFailure) {
        self.target = name
        self.replaces = replaces
        if name == "-" {
            self.descriptor = STDOUT_FILENO
            self.canUndo = false
            return
        }
        try Self.checkTarget(name, replaces: replaces)
        let directory = Self.directory(of: name)
        let unnamed = unsafe open(directory, Self.unnamed | O_RDWR | O_CLOEXEC, 0o600)
        self.canUndo = true
        if unnamed >= 0 {
            self.descriptor = unnamed
            return
        }
        let beside = "\(name).part-\(getpid())"
        self.descriptor = unsafe open(
            beside, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0o600)
        guard self.descriptor >= 0 else {
            throw CommandFailure(
                .cannotCreate, "cannot create \(name): \(Output.reason(errno))",
                remedy: "name a place that this user may write to")
        }
        self.temporary = beside
    }

    deinit {
        if let temporary { _ = unsafe unlink(temporary) }
        if self.descriptor > STDERR_FILENO { close(self.descriptor) }
    }

    /// Only a file is written over: whoever names a device, a pipe or a link means what it leads to,
    /// and rename(2) would put the archive in its place.
    private static func checkTarget(_ name: String, replaces: Bool) throws(CommandFailure) {
        var status = stat()
        guard unsafe lstat(name, &status) == 0 else { return }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG else {
            throw CommandFailure(
                .cannotCreate,
                "\(name) is \(kind == S_IFLNK ? "a symbolic link" : "no regular file")",
                remedy: "name a file, or - for standard output")
        }
        guard replaces else {
            throw CommandFailure(
                .cannotCreate, "\(name) exists", remedy: "name another file, or give --force")
        }
    }

    private static func directory(of name: String) -> String {
        guard let slash = name.lastIndex(of: "/") else { return "." }
        return slash == name.startIndex ? "/" : String(name[..<slash])
    }

    func write(_ bytes: some Collection<UInt8>) throws(CommandFailure) {
        self.waiting += bytes
        self.count += UInt64(bytes.count)
        if self.waiting.count >= Self.enough { try self.flush() }
    }

    private func flush() throws(CommandFailure) {
        var rest = self.waiting[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(self.descriptor, $0.baseAddress, $0.count)
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count == 0 || errno != EINTR {
                let code = count == 0 ? EIO : errno
                if self.target == "-", code == EPIPE { exit(128 + SIGPIPE) }
                throw self.failure("write", code)
            }
        }
        self.waiting.removeAll(keepingCapacity: true)
    }

    /// Takes back all that was written behind `place`.
    ///
    /// - Throws: where some of it was, and it cannot be taken back.
    func takeBack(to place: UInt64) throws(CommandFailure) {
        guard self.count > place else { return }
        guard self.canUndo else {
            throw CommandFailure(
                .inputOutput, "a response changed while it was written to standard output",
                remedy: "export to a file, which can be mended")
        }
        try self.undo(to: place)
    }

    private func undo(to place: UInt64) throws(CommandFailure) {
        try self.flush()
        guard ftruncate(self.descriptor, off_t(clamping: place)) == 0,
            lseek(self.descriptor, off_t(clamping: place), SEEK_SET) >= 0
        else { throw self.failure("cut", errno) }
        self.count = place
    }

    /// Brings all to the disk, and only then gives it its name.
    func finish() throws(CommandFailure) {
        try self.flush()
        if self.target == "-" { return }
        guard fsync(self.descriptor) == 0 else { throw self.failure("sync", errno) }
        if self.replaces { try self.replace() } else { try self.name(self.target) }
        let directory = unsafe open(
            Self.directory(of: self.target), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        _ = fsync(directory)
        close(directory)
    }

    /// Puts it in place of what may be there, in one step.
    private func replace() throws(CommandFailure) {
        try Self.checkTarget(self.target, replaces: true)
        var source = "\(self.target).part-\(getpid())"
        if let temporary { source = temporary } else { try self.name(source) }
        self.temporary = source
        guard unsafe rename(source, self.target) == 0 else { throw self.failure("name", errno) }
        self.temporary = nil
    }

    /// Fails where there is a file of that name: link(2) never replaces one.
    private func name(_ name: String) throws(CommandFailure) {
        let source = self.temporary ?? "/proc/self/fd/\(self.descriptor)"
        guard unsafe linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 else {
            throw self.failure("name", errno)
        }
    }

    private func failure(_ what: String, _ code: CInt) -> CommandFailure {
        CommandFailure(
            code == EEXIST ? .cannotCreate : .inputOutput,
            "cannot \(what) \(self.target == "-" ? "standard output" : self.target): "
                + Output.reason(code),
            remedy: code == ENOSPC ? "free some space, or name another disk" : nil)
    }
}
