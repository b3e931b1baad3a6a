package import LarderCredentials
import Synchronization

/// What outlives the process.
extension SessionCredentials {
    /// More changes than this are not kept for a storage that does not take them.
    private static let pendingLimit = 4096

    /// Fills the store with what the storage has; once, before the first exchange.
    package func load() async {
        guard let storage = self.storage else { return }
        do throws(CredentialStorageError) {
            let changes = try await storage.load()
            self.state.withLock { state in
                state.store.restore(changes)
                self.noteHolding(state)
            }
        } catch {
            self.failed(error)
        }
    }

    /// Changes what is held; returns when the change lasts, or when the storage has failed.
    ///
    /// It is in force at once, also for exchanges under way. What was refused is tried again.
    ///
    /// - Parameter change: gets the store, and gives what it says has changed; runs under a lock.
    /// - Returns: why the storage does not have all changes until now; nil where it has.
    @discardableResult
    package func update(
        _ change: @Sendable (inout CredentialStore) -> [CredentialChange]
    ) async -> CredentialStorageError? {
        self.state.withLock { state in
            state.pending += change(&state.store)
            state.spaces.forgetRefusals()
            if self.storage == nil { state.pending = [] }
            self.noteHolding(state)
        }
        self.revision.wrappingAdd(1, ordering: .releasing)
        await self.save()
        return self.state.withLock { $0.failure }
    }

    /// Says for those who only look whether anything is held; under the lock, or two who change it at
    /// once might say it in the wrong order.
    func noteHolding(_ state: borrowing State) {
        self.holdsAny.store(!state.store.isEmpty, ordering: .relaxed)
    }

    /// Hands the changes over, one batch after the other.
    package func save() async {
        guard let storage = self.storage else { return }
        let isFirst = self.state.withLock { state in
            defer { state.isSaving = true }
            return !state.isSaving
        }
        guard isFirst else { return await self.awaitSaving() }
        while true {
            let batch = self.state.withLock { $0.pending }
            if batch.isEmpty { break }
            do throws(CredentialStorageError) {
                try await storage.apply(batch)
                self.state.withLock { state in
                    state.pending.removeFirst(min(batch.count, state.pending.count))
                    state.hasReported = false
                    state.failure = nil
                }
            } catch {
                self.state.withLock { $0.failure = error }
                self.failed(error)
                break
            }
        }
        let waiting = self.state.withLock { state in
            state.isSaving = false
            defer { state.waiting = [] }
            // Kept for the next change, in their order, as long as they are few.
            if state.pending.count > Self.pendingLimit { state.pending = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Somebody else is at it: waits for them, and sees to what is left.
    private func awaitSaving() async {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                if state.isSaving { state.waiting.append(continuation) }
                return !state.isSaving
            }
            if isOver { continuation.resume() }
        }
        let isLeft = self.state.withLock { !$0.isSaving && !$0.pending.isEmpty && !$0.hasReported }
        if isLeft { await self.save() }
    }

    private func failed(_ error: CredentialStorageError) {
        let isFirst = self.state.withLock { state in
            defer { state.hasReported = true }
            return !state.hasReported
        }
        if isFirst { self.report(error) }
    }
}
