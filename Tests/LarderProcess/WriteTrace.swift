import Foundation

/// What a program did to files, as strace(1) saw it.
struct WriteTrace {
    static let strace = "/usr/bin/strace"
    static var isPossible: Bool { FileManager.default.isExecutableFile(atPath: Self.strace) }
    /// The calls that make, change or remove a file, or open one.
    private static let calls = [
        "open", "openat", "openat2", "creat", "mkdir", "mkdirat", "rename", "renameat", "renameat2",
        "link", "linkat", "unlink", "unlinkat", "rmdir", "symlink", "symlinkat", "mknod", "mknodat",
        "truncate", "ftruncate",
    ]

    /// Where strace writes what it saw.
    let file: String

    /// What comes before the traced program's path in strace's arguments.
    var arguments: [String] {
        // A kernel's machine need not know each call by its old name: "?" makes that no error.
        let calls = Self.calls.map { "?" + $0 }.joined(separator: ",")
        return ["-f", "-qq", "-o", self.file, "-e", "trace=\(calls)"]
    }

    /// The lines of calls that made, changed, removed or opened to write a file, and are not known to
    /// have failed.
    ///
    /// - Parameter place: what happens to files whose paths begin so is left out.
    func writes(except place: String? = nil) throws -> [Substring] {
        try String(contentsOfFile: self.file, encoding: .utf8).split(separator: "\n")
            .filter { line in
                if let place, line.contains("\"\(place)") { return false }
                return Self.isWrite(line)
            }
    }

    private static func isWrite(_ line: Substring) -> Bool {
        guard line.contains("("), !line.contains(" = -1 "),
            // Ends of calls whose beginnings have a line, signals, ends of threads, and a thread
            // that ended, or that strace let go of, before its call was known.
            !["resumed>", "--- SIG", "+++ ", " ???("].contains(where: { line.contains($0) })
        else { return false }
        guard [" open(", " openat(", " openat2("].contains(where: { line.contains($0) }) else {
            return true
        }
        return ["O_WRONLY", "O_RDWR", "O_CREAT"].contains { line.contains($0) }
            && !line.contains("\"/dev/") && !line.contains("\"/proc/")
    }
}
