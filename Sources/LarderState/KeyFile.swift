import Glibc

/// Where the key of a state comes from.
package enum KeySource: Sendable, Equatable {
    /// A file of Larder's own (mode 0600), made where there is none and no state either.
    case file(String)
    /// A credential of the service manager's (systemd.exec(5), `LoadCredential=`): a file that it
    /// guards and Larder never writes.
    ///
    /// `PATH.previous` beside it may hold the key from before: what opens with that one alone is
    /// sealed anew with the other at the next start.
    case credential(String)

    /// The credential `larder.key` where the service manager gave one, else `file`.
    package static func automatic(
        file: String, environment: [String: String]
    ) -> KeySource {
        guard let directory = environment["CREDENTIALS_DIRECTORY"], directory.hasPrefix("/") else {
            return .file(file)
        }
        let path = "\(directory)/larder.key"
        return unsafe access(path, F_OK) == 0 ? .credential(path) : .file(file)
    }

    /// The file of the key.
    package var path: String {
        switch self {
        case .file(let path), .credential(let path): path
        }
    }

    /// A file that may hold the right key while the first one does not: one that a rotation has
    /// written and not yet put in place, or the key from before.
    var otherPath: String {
        switch self {
        case .file(let path): "\(path).next"
        case .credential(let path): "\(path).previous"
        }
    }

    var isCredential: Bool {
        if case .credential = self { return true }
        return false
    }
}

/// The reading and writing of key files.
enum KeyFile {
    /// Reads a key; nil where there is no such file.
    ///
    /// A file that others may read is refused: the key in it may be known already. Who may read a
    /// credential is the service manager's affair, which can say it by an access list that shows in
    /// the mode.
    static func read(_ path: String, isGuarded: Bool) throws(StateError) -> StateKey? {
        // O_NONBLOCK: a FIFO of that name must not hold anybody up.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT { return nil }
            guard number == EACCES, unsafe access(path, F_OK) == 0 else {
                throw Self.failure(path, "open", number)
            }
            // Without the key nothing can be read or kept, and waiting will not help.
            throw StateError(
                .badKeyFile, path: path, cause: "user \(geteuid()) may not read the key file",
                remedy: "let that user read it, and nobody else, or run larder as its owner")
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw Self.failure(path, "fstat", errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StateError(
                .badKeyFile, path: path, cause: "the key file is not a file",
                remedy: "name a file as key-file")
        }
        if !isGuarded { try Self.checkAccess(status, path) }
        return try Self.read(descriptor, path)
    }

    private static func checkAccess(_ status: stat, _ path: String) throws(StateError) {
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw StateError(
                .badKeyFile, path: path, cause: "the key file belongs to user \(status.st_uid)",
                remedy: "run larder as that user, or name a key-file of your own")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw StateError(
                .badKeyFile, path: path,
                cause: "the key file is open to others (mode \(mode))",
                remedy: "run chmod 600 on it, and rotate the key if anybody may have read it")
        }
    }

    private static func read(_ descriptor: Int32, _ path: String) throws(StateError) -> StateKey {
        let memory = UnsafeMutableRawBufferPointer.allocate(
            byteCount: StateKey.textSize + 1, alignment: 1)
        defer {
            unsafe clear(memory)
            unsafe memory.deallocate()
        }
        var count = 0
        while count < memory.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count...])
            let got = unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw Self.failure(path, "read", errno) }
            if got == 0 { break }
            count += got
        }
        let text = unsafe UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[..<count])
        let bytes = unsafe text.bindMemory(to: UInt8.self)
        guard let key = StateKey(unsafe bytes.span) else {
            throw StateError(
                .badKeyFile, path: path,
                cause: count == memory.count || count < StateKey.textSize - 1
                    ? "the key file is not of the size of a key" : "the key file holds no key",
                remedy: "put the right key there again; nothing was changed")
        }
        return key
    }

    // MARK: Writing

    /// Writes a key to a new file of mode 0600; when it returns, file and name are on the disk.
    ///
    /// What is there under the name is replaced: callers know that it may be.
    static func write(_ key: StateKey, to path: String) throws(StateError) {
        let new = "\(path).new"
        // Of a process that died while it wrote: nobody was ever told of it.
        _ = unsafe unlink(new)
        let descriptor = unsafe open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure(new, "open", errno) }
        let written: Result<Void, StateError>
        do throws(StateError) {
            try Self.write(key, descriptor, new)
            written = .success(())
        } catch {
            written = .failure(error)
        }
        let isClosed = close(descriptor) == 0
        let number = errno
        do throws(StateError) {
            try written.get()
            guard isClosed else { throw Self.failure(new, "close", number) }
            try Self.rename(new, to: path)
        } catch {
            _ = unsafe unlink(new)
            throw error
        }
    }

    private static func write(
        _ key: StateKey, _ descriptor: Int32, _ path: String
    ) throws(StateError) {
        var text = RecordWriter()
        key.writeText(to: &text)
        let isWritten = text.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count) == bytes.count
            }
        }
        guard isWritten else { throw Self.failure(path, "write", errno) }
        guard fsync(descriptor) == 0 else { throw Self.failure(path, "fsync", errno) }
    }

    /// Gives a file another name, on the disk when it returns.
    static func rename(_ path: String, to name: String) throws(StateError) {
        guard unsafe Glibc.rename(path, name) == 0 else {
            throw Self.failure(name, "rename", errno)
        }
        try Self.synchronizeDirectory(of: name)
    }

    /// Removes a file, on the disk when it returns; nothing where there is none.
    static func remove(_ path: String) throws(StateError) {
        guard unsafe unlink(path) == 0 else {
            if errno == ENOENT { return }
            throw Self.failure(path, "unlink", errno)
        }
        try Self.synchronizeDirectory(of: path)
    }

    static func synchronizeDirectory(of path: String) throws(StateError) {
        let directory = Self.directory(of: path)
        let descriptor = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(directory, "open", errno) }
        defer { _ = close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Self.failure(directory, "fsync", errno) }
    }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func failure(_ path: String, _ call: String, _ number: Int32) -> StateError {
        StateError(system: number, call, path: path)
    }
}
