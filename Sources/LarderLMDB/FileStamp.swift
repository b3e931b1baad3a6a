import Glibc

/// When a file was last written to, as its file system says.
///
/// Since Linux 6.13 a change after the time was asked for always shows (multigrain timestamps of
/// ext4, XFS, Btrfs, tmpfs); before, and elsewhere, not where it came within the same tick of the
/// clock, a few milliseconds.
struct FileStamp: Equatable, Sendable {
    private let seconds: Int
    private let nanoseconds: Int

    init(_ status: stat) {
        self.seconds = status.st_mtim.tv_sec
        self.nanoseconds = status.st_mtim.tv_nsec
    }
}
