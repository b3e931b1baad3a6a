import LarderCredentials
import Synchronization

/// A storage that keeps what it gets, and fails when the test says so.
final class ScriptedStorage: CredentialStorage {
    private struct State: ~Copyable {
        var changes: [CredentialChange] = []
        var isFailing = false
        var isBusy = false
        var overlapped = false
        var counted = 0
    }

    private let state = Mutex(State())

    var overlapped: Bool { self.state.withLock { $0.overlapped } }
    var counted: Int { self.state.withLock { $0.counted } }
    /// How many credentials it was told to store.
    var stored: Int {
        self.state.withLock { state in
            state.changes.count { if case .stored = $0 { true } else { false } }
        }
    }

    func count() { self.state.withLock { $0.counted += 1 } }
    func fails(_ isFailing: Bool) { self.state.withLock { $0.isFailing = isFailing } }

    func load() async throws(CredentialStorageError) -> [CredentialChange] {
        self.state.withLock { $0.changes }
    }

    func apply(_ changes: [CredentialChange]) async throws(CredentialStorageError) {
        let isFailing = self.state.withLock { state in
            if state.isBusy { state.overlapped = true }
            state.isBusy = true
            return state.isFailing
        }
        await Task.yield()
        self.state.withLock { state in
            state.isBusy = false
            if !isFailing { state.changes += changes }
        }
        if isFailing { throw CredentialStorageError(.full, "scripted") }
    }
}
