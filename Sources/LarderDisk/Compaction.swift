import Synchronization

/// What came of a compaction.
package struct CompactionReport: Sendable, Equatable {
    /// Bytes of the file.
    package var before: UInt64
    package var after: UInt64

    package init(before: UInt64, after: UInt64) {
        self.before = before
        self.after = after
    }
}

/// Somebody who wants the file compacted.
struct CompactionRequest: Sendable {
    /// Bytes that are copied, and of how many at most.
    var progress: @Sendable (UInt64, UInt64) -> Void
    var completion: @Sendable (Result<CompactionReport, StoreError>) -> Void
}

/// Who wants the file compacted, until the writer comes round.
final class CompactionQueue: Sendable {
    private struct State {
        var requests: [CompactionRequest] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let running = Atomic(false)

    /// Whether the writer copies the file now, and does nothing else.
    var isRunning: Bool {
        get { self.running.load(ordering: .acquiring) }
        set { self.running.store(newValue, ordering: .releasing) }
    }

    /// false where the writer has ended.
    func add(_ request: CompactionRequest) -> Bool {
        self.state.withLock { state in
            if !state.isClosed { state.requests.append(request) }
            return !state.isClosed
        }
    }

    /// All who have asked: one compaction is for all of them.
    func take() -> [CompactionRequest] {
        self.state.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    /// Takes no more; what is left.
    func close() -> [CompactionRequest] {
        self.state.withLock { state in
            state.isClosed = true
            defer { state.requests = [] }
            return state.requests
        }
    }
}
