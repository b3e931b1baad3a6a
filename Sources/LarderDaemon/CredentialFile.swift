import Glibc
import LarderCredentials

/// Why a password or token file cannot be used, and what to do about it.
package struct CredentialFileError: Error, Sendable, Equatable, CustomStringConvertible {
    package let path: String
    /// One line, with a remedy; nothing of what the file holds.
    package let detail: String
    /// Whether it is only that this user may not read it.
    package let isForbidden: Bool

    init(_ path: String, _ detail: String, isForbidden: Bool = false) {
        self.path = path
        self.detail = detail
        self.isForbidden = isForbidden
    }

    package var description: String { "\(self.path): \(self.detail)" }
}

/// A file that says who the proxy's clients are.
enum CredentialFile {
    /// Tens of thousands of names.
    private static let longest = 8 << 20

    struct Contents {
        var bytes: [UInt8]
        /// Everybody on this machine may read it: hashes can be tried elsewhere.
        var isReadableByOthers: Bool

        /// Overwrites the bytes, among which may be tokens as they are.
        mutating func clear() {
            self.bytes.clear()
            self.bytes = []
        }
    }

    /// - Parameters:
    ///   - isSecret: whether who reads it is let in, as with tokens.
    ///   - credentials: where the service manager puts credentials: who may read those is its affair,
    ///     which it may say by an access list that shows in the mode.
    static func read(
        _ path: String, isSecret: Bool,
        credentials: String? = Self.credentialsDirectory
    ) throws(CredentialFileError) -> Contents {
        // Without waiting: a pipe in its place would have nobody at its other end.
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            let code = errno
            throw CredentialFileError(
                path,
                "cannot be opened: \(SystemError.text(code)); "
                    + (code == EACCES
                        ? "let user \(geteuid()) read it" : "make it, or name another file"),
                isForbidden: code == EACCES)
        }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0 else {
            throw CredentialFileError(path, "cannot be looked at: \(SystemError.text(errno))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw CredentialFileError(path, "is no file; name one")
        }
        let isGuarded = credentials.map { path.hasPrefix("\($0)/") } ?? false
        if !isGuarded { try Self.check(status.st_mode, path, isSecret: isSecret) }
        return Contents(
            bytes: try Self.bytes(of: file, path),
            isReadableByOthers: status.st_mode & S_IROTH != 0)
    }

    private static var credentialsDirectory: String? {
        unsafe getenv("CREDENTIALS_DIRECTORY").map { unsafe String(cString: $0) }
    }

    private static func check(
        _ mode: mode_t, _ path: String, isSecret: Bool
    ) throws(CredentialFileError) {
        guard mode & S_IWOTH == 0 else {
            throw CredentialFileError(
                path, "may be written by everybody, who could let themselves in; chmod 600 it")
        }
        guard mode & S_IWGRP == 0 else {
            throw CredentialFileError(
                path, "may be written by its group, who could let themselves in; chmod 600 it")
        }
        guard !isSecret || mode & 0o077 == 0 else {
            throw CredentialFileError(
                path, "may be used by others, whom its tokens let in; chmod 600 it")
        }
    }

    private static func bytes(
        of file: CInt, _ path: String
    ) throws(CredentialFileError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        defer { piece.clear() }
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(file, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw CredentialFileError(path, "cannot be read: \(SystemError.text(errno))")
            }
            if count == 0 { return bytes }
            bytes += piece.prefix(count)
            guard bytes.count <= Self.longest else {
                bytes.clear()
                throw CredentialFileError(path, "is larger than 8 MiB; name another file")
            }
        }
    }
}

extension [UInt8] {
    /// Overwrites all elements in a way that is not optimised away.
    fileprivate mutating func clear() {
        unsafe self.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            unsafe explicit_bzero(start, buffer.count)
        }
    }
}
