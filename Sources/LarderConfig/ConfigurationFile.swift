import Glibc

extension Configuration {
    /// The text of a file; nil where there is none, and no link either that should lead to one.
    ///
    /// - Throws: what else kept it from being read, junk that is no UTF-8 included.
    static func contents(_ path: String) throws(ConfigurationError) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            // Without what such a file says, rules about access among it, nothing is to go on.
            if code == ENOENT || code == ENOTDIR, !Self.isLink(path) { return nil }
            throw Self.unreadable(path, code)
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16_384)
        // One byte above the bound is read, so that the bound can be seen to be passed.
        while bytes.count <= Self.largestFile {
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw Self.unreadable(path, errno)
            }
            if count == 0 { break }
            bytes += piece[..<count]
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(problems: [
                ConfigurationProblem(
                    file: path, line: Self.lineOfJunk(in: bytes), column: 1,
                    message: "not UTF-8 text")
            ])
        }
        return text
    }

    private static func isLink(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    /// The line of the first byte that is no UTF-8.
    private static func lineOfJunk(in bytes: [UInt8]) -> Int {
        var decoder = UTF8()
        var rest = bytes.makeIterator()
        var line = 1
        while case .scalarValue(let scalar) = decoder.decode(&rest) {
            if scalar == "\n" { line += 1 }
        }
        return line
    }

    private static func unreadable(_ path: String, _ code: CInt) -> ConfigurationError {
        let reason = unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
        return ConfigurationError(problems: [
            ConfigurationProblem(file: path, message: "cannot be read: \(reason)")
        ])
    }
}
