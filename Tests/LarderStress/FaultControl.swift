import Glibc

/// What the library in scripts/soak.d is told to let fail, and what it says of that.
struct FaultControl {
    struct Operations: OptionSet {
        let rawValue: UInt32

        static let write = Operations(rawValue: 1)
        static let sync = Operations(rawValue: 2)
        static let truncate = Operations(rawValue: 4)
        static let read = Operations(rawValue: 8)
        static let open = Operations(rawValue: 16)
    }

    let path: String
    private static let size = 32

    /// Makes the file where it does not exist.
    init(path: String) throws {
        self.path = path
        let descriptor = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0, ftruncate(descriptor, off_t(Self.size)) == 0 else {
            throw Wrong("\(path): \(errno)")
        }
        _ = close(descriptor)
    }

    /// Lets these calls fail, each of them or each second or third; error 0 makes writes short.
    ///
    /// No operations: nothing fails from now on.
    func set(_ operations: Operations, error: Int32 = 0, every: UInt32 = 1) throws {
        let words: [UInt32] = [operations.rawValue, UInt32(bitPattern: error), every, 0]
        let descriptor = unsafe Glibc.open(self.path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw Wrong("\(self.path): \(errno)") }
        defer { _ = close(descriptor) }
        guard unsafe pwrite(descriptor, words, 16, 0) == 16 else {
            throw Wrong("\(self.path): \(errno)")
        }
    }

    /// How many calls have failed so far.
    var injected: UInt64 {
        var number: UInt64 = 0
        let descriptor = unsafe Glibc.open(self.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { _ = close(descriptor) }
        return unsafe pread(descriptor, &number, 8, 24) == 8 ? number : 0
    }
}
