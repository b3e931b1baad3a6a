import Glibc

/// Standard input, output and error.
enum StandardDescriptors {
    /// Gives the numbers of those that the process was started without to `/dev/null`.
    ///
    /// The next file that is opened would get them, a cache's among others, and what is meant for a
    /// person would be written into it. Before anything is opened.
    static func fill() {
        for descriptor in STDIN_FILENO...STDERR_FILENO
        where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            // The lowest number that is free, so this one; where it cannot be had, nothing is worse.
            _ = unsafe open("/dev/null", O_RDWR)
        }
    }
}
