import LarderConfig
import Glibc

/// Files without a name: each is gone when it is closed, or when the process ends in whatever way.
enum UnnamedFile {
    /// Where they are made unless somebody says otherwise: what $TMPDIR names, else /tmp.
    static var usualDirectory: String {
        let named = ProcessEnvironment.variables["TMPDIR"] ?? ""
        return named.isEmpty ? "/tmp" : named
    }

    /// Makes one, open for reading and writing, and not for programs that are started.
    ///
    /// - Returns: the descriptor, for the caller to close; negative where there is none, and errno
    ///   says why.
    static func make(in directory: String) -> CInt {
        let number = String(UInt64.random(in: .min ... .max), radix: 36)
        let name = "\(directory)/larder-\(number)"
        let descriptor = unsafe open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return descriptor }
        _ = unsafe unlink(name)
        return descriptor
    }
}
