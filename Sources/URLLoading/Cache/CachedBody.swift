import Foundation
import Synchronization

/// A body that is there, or is read when it is first asked for.
final class CachedBody: Sendable {
    private enum State {
        case there(Data)
        case unread(@Sendable () -> Data)
    }

    private let state: Mutex<State>
    /// Whether a program has been handed it, and may ask for it at any time.
    private let isShown = Atomic(false)

    init(_ data: Data) {
        self.state = Mutex(.there(data))
    }

    init(reading read: @escaping @Sendable () -> Data) {
        self.state = Mutex(.unread(read))
    }

    /// Notes that a program is handed it, or that the one that was has not looked.
    func show(_ isShown: Bool) {
        self.isShown.store(isShown, ordering: .relaxed)
    }

    /// Whether a program may still ask for what has not been read.
    var isAwaited: Bool {
        guard self.isShown.load(ordering: .relaxed) else { return false }
        return self.state.withLock { state in
            if case .unread = state { true } else { false }
        }
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
