import COpenSSL
import Glibc

/// A file of certificates that origins are checked against, in PEM form (RFC 7468).
package enum CertificateFile {
    /// Reads a file as libcurl will for each connection, where a file that is of no use is the failure
    /// of every fetch.
    ///
    /// - Throws: why it is of no use.
    package static func check(_ path: String) throws(CertificateFileError) {
        // Without waiting: a pipe in its place would have nobody at its other end.
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw CertificateFileError(path, errno) }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0 else { throw CertificateFileError(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw CertificateFileError(path, "is no file; name one")
        }
        CurlLibrary.prepare()
        guard let store = unsafe X509_STORE_new() else { throw CertificateFileError(path, ENOMEM) }
        defer { unsafe X509_STORE_free(store) }
        let isRead = unsafe X509_STORE_load_file(store, path) == 1
        ERR_clear_error()
        guard isRead, unsafe copenssl_certificate_count(store) > 0 else {
            throw CertificateFileError(
                path, "has no certificates in PEM form that can be read; name a file that has")
        }
    }
}

/// Why a file of certificates is of no use, and what to do about it.
package struct CertificateFileError: Error, Sendable, Equatable, CustomStringConvertible {
    package let path: String
    /// The `errno` of what failed; 0 where the file was read.
    package let code: Int32
    /// One line, with a remedy.
    package let detail: String

    init(_ path: String, _ detail: String) {
        self.path = path
        self.code = 0
        self.detail = detail
    }

    init(_ path: String, _ code: Int32) {
        self.path = path
        self.code = code
        self.detail =
            "cannot be read: \(TransferError.text(of: code)); "
            + (code == EACCES ? "let user \(geteuid()) read it" : "make it, or name another file")
    }

    package var description: String { "\(self.path): \(self.detail)" }
}
