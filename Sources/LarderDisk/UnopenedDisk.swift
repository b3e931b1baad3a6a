import Dispatch
package import LarderStore
import Synchronization

/// The file of a disk store that could not be opened, while the proxy goes on without it.
///
/// What is removed meanwhile may lie in the file, which the next process serves. So the first removal
/// is noted beside it, as one is that the disk refuses to write, and the file is taken away at the
/// next opening. A disk that refuses even the note, as one for reading alone, leaves removals to the
/// life of this process, which is said once.
package final class UnopenedDisk: AbsentTier {
    private struct State {
        var isNoted = false
        /// Why the last removal was not.
        var failure: StoreError?
        var isTold = false
    }

    private let directory: String
    private let report: @Sendable (DiskEvent) -> Void
    private let queue = DispatchQueue(label: "larder.unopened")
    /// Changed on the queue alone.
    private let state = Mutex(State())

    /// - Parameter report: hears once that removals are not kept; any thread, must not block.
    package init(
        directory: String, report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        self.directory = directory
        self.report = report
    }

    package func willAnswerRemoval(_ completion: @escaping @Sendable () -> Void) {
        self.queue.async {
            if !self.state.withLock({ $0.isNoted }) { self.noteRemoval() }
            completion()
        }
    }

    package var unkeptRemoval: UnkeptRemoval? {
        self.state.withLock { $0.failure }.map { UnkeptRemoval($0) }
    }

    private func noteRemoval() {
        let note = Self.noteRemoval(in: self.directory)
        let told = self.state.withLock { state -> StoreError? in
            state.isNoted = note == .written
            state.failure = note.failure
            if state.isTold { return nil }
            state.isTold = state.failure != nil
            return state.failure
        }
        if let told { self.report(.removalNotKept(told)) }
    }

    /// Notes beside a cache file that it holds what must not be served.
    ///
    /// Waits for the disk.
    package static func noteRemoval(in directory: String) -> RemovalNote {
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
}
