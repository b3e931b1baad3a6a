import LarderHTTP
import NIOCore
import Synchronization

/// What other threads have to say to the connections of one event loop.
///
/// What is posted in one round of deliveries (`DeliveryRound`) goes to the loop in one piece and wakes
/// it once.
final class LoopMail: Sendable, RoundEnd {
    typealias Letter = @Sendable () -> Void

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
    func post(_ letter: @escaping Letter) {
        let isFirst = self.state.withLock { state in
            state.letters.append(letter)
            defer { state.isOnItsWay = true }
            return !state.isOnItsWay
        }
        if isFirst, !DeliveryRound.putOff(self) { self.roundEnded() }
    }

    func roundEnded() {
        self.eventLoop.execute { self.open() }
    }

    private func open() {
        let letters = self.state.withLock { state in
            state.isOnItsWay = false
            defer { state.letters = [] }
            return state.letters
        }
        for letter in letters { letter() }
    }
}
