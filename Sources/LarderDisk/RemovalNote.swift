/// What became of a note that a cache file holds what must not be served.
package enum RemovalNote: Sendable, Equatable {
    case written
    /// There is no file, and nothing that could come back.
    case notNeeded
    case failed(StoreError)

    package var failure: StoreError? {
        if case .failed(let error) = self { return error }
        return nil
    }

    /// Notes beside a cache file that it holds what must not be served: it is taken away at the next
    /// opening.
    ///
    /// Waits for the disk.
    package static func write(besideFileIn directory: String) -> RemovalNote {
        let files = DiskFiles(directory: directory)
        guard files.mayHoldData else { return .notNeeded }
        let lock: WriterLock
        do throws(StoreError) {
            // Another process that has it writes down what it owes itself, and knows nothing of this.
            lock = try WriterLock.acquire(files)
        } catch {
            return .failed(error)
        }
        lock.note(owes: true)
        guard let error = lock.unwrittenDebt else { return .written }
        return .failed(StoreError(error, path: files.writerLock))
    }
}
