import LarderHTTP
import Synchronization

/// The content of a request, which more than one attempt may come to send: an attempt that did not
/// get so far leaves it as it is.
///
/// ```
/// reader ─▶ (attach) ─▶ cancelled unread ─▶ reader ─▶ next … ─▶ end | cancelled
/// ```
final class HeldContent: Sendable {
    private struct State {
        var hasBegun = false
        var isAttached = false
        var number = 0
        var wake: (@Sendable () -> Void)?
    }

    private let source: any BodySource
    private let state = Mutex(State())

    init(_ source: any BodySource) {
        self.source = source
    }

    /// Whether nobody has asked for any of it.
    var isWhole: Bool { !self.state.withLock { $0.hasBegun } }

    /// The next attempt's; the one before gets nothing more.
    func reader() -> any BodySource {
        Reader(
            self,
            self.state.withLock { state in
                state.number += 1
                return state.number
            })
    }

    /// Nobody will send it.
    func cancel() { self.source.cancel() }

    private func attach(_ number: Int, _ wake: @escaping @Sendable () -> Void) {
        let isFirst = self.state.withLock { state in
            guard number == state.number else { return false }
            state.wake = wake
            defer { state.isAttached = true }
            return !state.isAttached
        }
        guard isFirst else { return }
        self.source.attach { [weak self] in
            let wake = self?.state.withLock { $0.wake }
            wake?()
        }
    }

    private func next(_ number: Int) -> BodyStep {
        let isCurrent = self.state.withLock { state in
            guard number == state.number else { return false }
            state.hasBegun = true
            return true
        }
        return isCurrent ? self.source.next() : .failed(.cancelled)
    }

    private func cancelled(_ number: Int) {
        let cancels = self.state.withLock { state in
            guard number == state.number else { return false }
            state.wake = nil
            return state.hasBegun
        }
        if cancels { self.source.cancel() }
    }

    /// One attempt's reading.
    private final class Reader: BodySource {
        private let content: HeldContent
        private let number: Int

        init(_ content: HeldContent, _ number: Int) {
            self.content = content
            self.number = number
        }

        func attach(wake: @escaping @Sendable () -> Void) {
            self.content.attach(self.number, wake)
        }
        func next() -> BodyStep { self.content.next(self.number) }
        func cancel() { self.content.cancelled(self.number) }
    }
}
