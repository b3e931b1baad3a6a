import Foundation
import Synchronization

/// A body that is there, or is read when it is first asked for.
final class CachedBody: Sendable {
    private enum State {
        case there(Data)
        case unread(@Sendable () -> Data)
    }

    private let state: Mutex<State>

    init(_ data: Data) {
        self.state = Mutex(.there(data))
    }

    init(reading read: @escaping @Sendable () -> Data) {
        self.state = Mutex(.unread(read))
    }

    /// Waits for the reading; who asks meanwhile reads for himself.
    var data: Data {
        let read: @Sendable () -> Data
        switch self.state.withLock({ $0 }) {
        case .there(let data): return data
        case .unread(let unread): read = unread
        }
        let data = read()
        return self.state.withLock { state in
            if case .there(let earlier) = state { return earlier }
            state = .there(data)
            return data
        }
    }
}
