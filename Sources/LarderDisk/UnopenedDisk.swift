import Dispatch
import LarderStore

/// The file of a disk store that could not be opened, while the proxy goes on without it.
///
/// What is removed meanwhile may lie in the file, which the next process serves. So the first removal
/// is noted beside it, as one is that the disk refuses to write, and the file is set aside at the
/// next opening. A disk that refuses even the note leaves removals to the life of this process.
package final class UnopenedDisk: AbsentTier {
    private let files: DiskFiles
    private let queue = DispatchQueue(label: "larder.unopened")
    // Invariant: used on the queue alone.
    nonisolated(unsafe) private var isNoted = false

    package init(directory: String) {
        self.files = DiskFiles(directory: directory)
    }

    package func willAnswerRemoval(_ completion: @escaping @Sendable () -> Void) {
        self.queue.async {
            if unsafe !self.isNoted { unsafe self.isNoted = self.note() }
            completion()
        }
    }

    /// Whether it is on the disk, or need not be.
    private func note() -> Bool {
        guard self.files.dataSize != nil else { return false }
        // Another process that has it writes down what it owes itself.
        guard let lock = try? WriterLock.acquire(self.files) else { return false }
        lock.note(owes: true)
        return lock.isWritten
    }
}
