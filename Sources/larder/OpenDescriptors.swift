import Glibc

/// The descriptors of this process, and which of them a child may have.
///
/// Whoever runs us may have opened some for the command that we run, as make(1) does; all others are
/// ours, and not everything that opens them for us says `O_CLOEXEC`.
struct OpenDescriptors {
    /// What was open when this was made.
    private let inherited: Set<CInt>

    /// To be made before anything is opened that a child is not to have.
    init() {
        self.inherited = Set(Self.all())
    }

    /// Has everything closed at the execution of a program that was not open then.
    func keepFromChildren() {
        for descriptor in Self.all() where !self.inherited.contains(descriptor) {
            // Fails for one that another thread has closed meanwhile, and that is as good.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }

    /// proc(5): "/proc/pid/fd/ This is a subdirectory containing one entry for each file which the
    /// process has open, named by its file descriptor".
    private static func all() -> [CInt] {
        guard let directory = unsafe opendir("/proc/self/fd") else { return [] }
        defer { unsafe closedir(directory) }
        let own = unsafe dirfd(directory)
        var descriptors: [CInt] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if let descriptor = CInt(name), descriptor != own { descriptors.append(descriptor) }
        }
        return descriptors
    }
}
