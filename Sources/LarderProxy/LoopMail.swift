import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// What other threads have to say to the connections of one event loop.
///
/// What is posted in one round of deliveries (`DeliveryRound`) goes to the loop in one piece and wakes
/// it once.
final class LoopMail: Sendable, RoundEnd {
    /// What is said.
    enum Letter: Sendable {
        /// An answer, as nearly all are: its client holds it until then, and no closure is made for it.
        case answer(for: ConnectionClient)
        case other(@Sendable () -> Void)

        func open() {
            switch self {
            case .answer(let client): client.deliver()
            case .other(let body): body()
            }
        }
    }

    /// Room for more is not kept.
    private static let keptLetters = 256

    private struct State {
        var letters: [Letter] = []
        /// The loop will look, or the end of a round will have it look.
        var isOnItsWay = false
    }

    let eventLoop: any EventLoop
    private let state = Mutex(State())

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Has the loop run `letter` in one of its next turns, after those that were posted before.
    func post(_ letter: Letter) {
        let isFirst = self.state.withLock { state in
            state.letters.append(letter)
            defer { state.isOnItsWay = true }
            return !state.isOnItsWay
        }
        if isFirst, !DeliveryRound.putOff(self) { self.roundEnded() }
    }

    func post(_ body: @escaping @Sendable () -> Void) { self.post(.other(body)) }

    func roundEnded() {
        self.eventLoop.execute { self.open() }
    }

    private func open() {
        var letters = self.state.withLock { state in
            state.isOnItsWay = false
            defer { state.letters = [] }
            return state.letters
        }
        // Taken off the end, which moves them: a copy would count a dozen references up and down.
        let isKept = letters.count <= Self.keptLetters
        letters.reverse()
        while let letter = letters.popLast() { letter.open() }
        guard isKept else { return }
        // Its room is used again.
        self.state.withLock { state in
            if state.letters.isEmpty { state.letters = letters }
        }
    }
}
