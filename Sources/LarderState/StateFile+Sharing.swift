package import LarderHTTP
import LarderLMDB
import Synchronization

/// What is known of a state that several processes use: whether they have changed it.
package final class StateSharing: Sendable {
    private let directory: StateDirectory
    /// The turn of what was read last; all ones before anything was.
    private let seen = Atomic<UInt64>(.max)

    init(_ directory: StateDirectory) {
        self.directory = directory
    }

    /// Whether somebody else has changed the state since it was read, or it was not read yet.
    ///
    /// Three system calls on a small file. Any thread.
    package var isStale: Bool { self.directory.turn() != self.seen.load(ordering: .acquiring) }

    /// Notes that all up to this turn is known.
    func read(at turn: UInt64) { self.seen.store(turn, ordering: .releasing) }

    /// Notes that this process has made the change after a turn: if it knew all before, it still does.
    func wrote(after turn: UInt64) {
        _ = self.seen.compareExchange(
            expected: turn, desired: turn &+ 1, ordering: .acquiringAndReleasing)
    }
}

/// A state that several processes use.
///
/// ```
/// (take: lock, open ─▶ read │ turn, write ─▶ giveBack: close, unlock)*
/// ```
///
/// The lock is held while a batch is read or written. Whoever writes first counts the turn up, so
/// that who finds an old number has missed nothing: to read it waits for the lock.
extension StateFile {
    /// A state that is opened for each piece of work anew, and made with the first record.
    ///
    /// Touches no disk. Its `digests` are this process's own, and its key cannot be changed.
    package static func shared(
        _ configuration: StateConfiguration, _ sharing: StateSharing, now: Timestamp,
        report: @escaping @Sendable (StateEvent) -> Void
    ) -> StateFile {
        let directory = StateDirectory(path: configuration.directory)
        let opening = StateOpening(
            directory: directory, source: configuration.key, now: now, report: report)
        return StateFile(
            configuration, opening, digestKey: StateKey().secret, sharing: sharing)
    }

    /// Gets the right to the file, if that must be shared.
    ///
    /// - Parameter making: make one where there is none.
    /// - Returns: false where there is none.
    func take(making: Bool = false) throws(StateError) -> Bool {
        guard let sharing = self.sharing, !self.isClosed else { return true }
        if !making, self.directory.dataPlace == nil {
            sharing.read(at: self.directory.turn())
            return false
        }
        do throws(StateError) {
            (self.opened, self.lock) = try self.opening.borrowed(self.known)
        } catch {
            // The next one has a closer look.
            self.known = nil
            throw error
        }
        self.known = self.directory.dataPlace
        return true
    }

    /// Gives the right to the file back, if that is shared.
    func giveBack() {
        guard self.sharing != nil else { return }
        self.opened?.storage.environment.close()
        self.opened = nil
        self.lock = nil
    }

    /// Notes for others that a change is about to be made.
    func beginTurn() throws(StateError) {
        if self.sharing != nil { try self.directory.setTurn(self.directory.turn() &+ 1) }
    }

    /// Notes that the change was made.
    func endTurn() {
        self.sharing?.wrote(after: self.directory.turn() &- 1)
    }

    /// Notes that what was read is all that there is by now, with the lock held.
    func noteRead() {
        self.sharing?.read(at: self.directory.turn())
    }
}
