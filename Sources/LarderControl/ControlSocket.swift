import Glibc

/// A Unix socket's file: where it lies, who may open it, whether anyone is behind it.
package enum ControlSocket {
    /// Binds and listens at `path`, for this user alone (0600), in a directory that is made if need
    /// be (0700).
    ///
    /// A socket whose owner has died is taken over; one that answers is not.
    ///
    /// - Returns: the listening descriptor, non-blocking and closed on exec. The caller closes it and
    ///   removes the file.
    /// - Throws: `.inUse` when another proxy listens there.
    package static func listen(at path: String) throws(ControlError) -> CInt {
        try Self.makeDirectory(of: path)
        let descriptor = try Self.open(nonBlocking: true)
        // Linux gives the file the mode of the socket, less the umask: set before bind, there is no
        // moment at which others could connect (unix(7) asks for the directory to guard it else).
        _ = fchmod(descriptor, 0o600)
        do throws(ControlError) {
            try Self.bind(descriptor, to: path)
            guard Glibc.listen(descriptor, 16) == 0 else { throw .last("listen at \(path)") }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func bind(_ descriptor: CInt, to path: String) throws(ControlError) {
        for attempt in 0..<2 {
            let code = unsafe try Self.withAddress(path) { unsafe Glibc.bind(descriptor, $0, $1) }
            if code == 0 { return }
            guard code == EADDRINUSE, attempt == 0 else {
                throw .from(code, "bind \(path)")
            }
            let found = Self.file(path)
            guard found?.isSocket != false else {
                throw ControlError(.system(EEXIST), "something that is no socket lies at \(path)")
            }
            guard try !Self.isAnswered(path) else {
                throw ControlError(.inUse, "another proxy listens at \(path)")
            }
            if let found { Self.remove(path, ifStill: found) }
        }
    }

    /// A file as lstat(2) finds it: which one it is, and whether it is a socket.
    package struct File: Sendable, Equatable {
        fileprivate var device: dev_t
        fileprivate var inode: ino_t
        package var isSocket: Bool
    }

    /// What lies at `path`; nil where nothing does.
    package static func file(_ path: String) -> File? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        return File(
            device: status.st_dev, inode: status.st_ino,
            isSocket: status.st_mode & S_IFMT == S_IFSOCK)
    }

    /// Removes the file of a socket that is no longer listened to, unless another one lies there now.
    package static func remove(_ path: String, ifStill file: File) {
        guard file.isSocket, Self.file(path) == file else { return }
        _ = unsafe unlink(path)
    }

    /// Whether someone accepts connections there, or would once it gets to it.
    package static func isAnswered(_ path: String) throws(ControlError) -> Bool {
        do throws(ControlError) {
            close(try Self.connect(to: path, within: .seconds(1)))
            return true
        } catch {
            switch error.code {
            case .notRunning: return false
            case .timedOut: return true
            default: throw error
            }
        }
    }

    /// Connects, blocking.
    ///
    /// The caller closes the descriptor.
    ///
    /// - Parameter patience: how long it waits for a place among those who are not accepted yet.
    /// - Throws: `.timedOut` where there was none.
    static func connect(
        to path: String, within patience: Duration = .seconds(10)
    ) throws(ControlError) -> CInt {
        let descriptor = try Self.open(nonBlocking: false)
        do throws(ControlError) {
            // A full queue would hold us for ever: unix(7) has it wait as a send does.
            var limit = timeval(patience)
            let size = socklen_t(MemoryLayout<timeval>.size)
            guard unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size) == 0 else {
                throw .last("bound the time of a socket")
            }
            let code = unsafe try Self.withAddress(path) {
                unsafe Glibc.connect(descriptor, $0, $1)
            }
            switch code {
            case 0: return descriptor
            case ENOENT, ECONNREFUSED, ENOTDIR:
                throw ControlError(.notRunning, "no proxy listens at \(path)")
            case EACCES, EPERM:
                throw ControlError(.notPermitted, "\(path) belongs to another user's proxy")
            case EAGAIN:
                throw ControlError(.timedOut, "the proxy at \(path) accepts nobody")
            default: throw .from(code, "connect to \(path)")
            }
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func open(nonBlocking: Bool) throws(ControlError) -> CInt {
        let stream = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let type = nonBlocking ? stream | CInt(SOCK_NONBLOCK.rawValue) : stream
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw .last("socket") }
        return descriptor
    }

    /// Calls `body` with the address of `path`; answers 0 or `errno`.
    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) throws(ControlError) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count < room, !bytes.contains(0) else {
            throw ControlError(
                .system(ENAMETOOLONG),
                "\(path): longer than the \(room - 1) bytes a socket may have")
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, size) == 0 ? 0 : errno
            }
        }
    }

    /// Makes the directory, for this user alone, and those above it.
    private static func makeDirectory(of path: String) throws(ControlError) {
        var made = ""
        var refusal: ControlError?
        for part in path.split(separator: "/").dropLast() {
            made += "/\(part)"
            let code = unsafe mkdir(made, 0o700) == 0 ? 0 : errno
            switch code {
            case 0, EEXIST: break
            // Also of one that is there.
            case EACCES, EROFS: refusal = refusal ?? .from(code, "make the directory \(made)")
            case ENOENT: throw refusal ?? .from(code, "make the directory \(made)")
            default: throw .from(code, "make the directory \(made)")
            }
        }
        if let refusal, Self.file(made) == nil { throw refusal }
    }
}

extension timeval {
    /// At least a microsecond, as none is no bound.
    fileprivate init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self.init(
            tv_sec: Int(clamping: max(0, seconds)),
            tv_usec: max(seconds > 0 ? 0 : 1, Int(clamping: attoseconds / 1_000_000_000_000)))
    }
}

extension ControlError {
    /// The failure of the system call that was made last.
    static func last(_ what: String) -> ControlError { .from(errno, what) }

    static func from(_ code: CInt, _ what: String) -> ControlError {
        let text = unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
        let kind: Code = code == EACCES || code == EPERM ? .notPermitted : .system(code)
        return ControlError(kind, "cannot \(what): \(text)")
    }
}
