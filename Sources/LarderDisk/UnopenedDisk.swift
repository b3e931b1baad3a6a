import Dispatch
import LarderStore

/// The file of a disk store that could not be opened, while the proxy goes on without it.
///
/// What is removed meanwhile may lie in the file, which the next process serves. So the first removal
/// is noted beside it, as one is that the disk refuses to write, and the file is taken away at the
/// next opening. A disk that refuses even the note leaves removals to the life of this process.
package final class UnopenedDisk: AbsentTier {
    private let directory: String
    private let queue = DispatchQueue(label: "larder.unopened")
    // Invariant: used on the queue alone.
    nonisolated(unsafe) private var isNoted = false

    package init(directory: String) {
        self.directory = directory
    }

    package func willAnswerRemoval(_ completion: @escaping @Sendable () -> Void) {
        self.queue.async {
            if unsafe !self.isNoted {
                unsafe self.isNoted = Self.noteRemoval(in: self.directory)
            }
            completion()
        }
    }

    /// Notes beside a cache file that it holds what must not be served; whether that is on the disk.
    ///
    /// Waits for the disk. Nothing is noted where there is no file.
    package static func noteRemoval(in directory: String) -> Bool {
        let files = DiskFiles(directory: directory)
        guard files.mayHoldData else { return false }
        // Another process that has it writes down what it owes itself.
        guard let lock = try? WriterLock.acquire(files) else { return false }
        lock.note(owes: true)
        return lock.isWritten
    }
}
