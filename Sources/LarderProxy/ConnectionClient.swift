import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// An exchange's client, as the session sees it: it carries every call to the connection's loop.
final class ConnectionClient: ExchangeClient {
    private let connection: NIOLoopBound<ClientConnection>
    private let number: UInt64
    private let mail: LoopMail
    /// On its way to the loop: not in the letter, which changes hands and is copied each time.
    private let answer = Mutex<Answer?>(nil)

    init(connection: NIOLoopBound<ClientConnection>, number: UInt64, mail: LoopMail) {
        self.connection = connection
        self.number = number
        self.mail = mail
    }

    func exchange(informational head: ResponseHead) {
        self.onLoop { $0.informational(head, number: $1) }
    }

    func exchange(answered answer: Answer) {
        if self.connection.eventLoop.inEventLoop {
            self.connection.value.answered(answer, number: self.number)
        } else {
            self.answer.withLock { $0 = answer }
            self.mail.post(.answer(for: self))
        }
    }

    /// Hands over the answer that waits for the connection's loop, on that.
    func deliver() {
        guard let answer = self.answer.withLock({ $0.take() }) else { return }
        self.connection.value.answered(answer, number: self.number)
    }

    func exchange(failed failure: ExchangeFailure) {
        self.onLoop { $0.failed(failure, number: $1) }
    }

    /// The client's credentials were judged.
    ///
    /// A turn of the loop later: the authenticator may call before its `check` has returned.
    func judged(_ verdict: AuthenticationVerdict, generation: UInt64) {
        self.later { $0.judged(verdict, generation: generation, number: $1) }
    }

    /// The answer's body has more.
    ///
    /// Always a turn of the loop later: the source may call from inside its own `next`.
    func bodyWoke() {
        self.later { $0.bodyWoke(number: $1) }
    }

    /// The request's content has a reader, or lost it.
    ///
    /// A turn of the loop later, for the same reason.
    func contentSignalled(_ signal: BodyFeed.Signal) {
        self.later { $0.contentSignalled(signal, number: $1) }
    }

    private func onLoop(_ event: @escaping @Sendable (ClientConnection, UInt64) -> Void) {
        if self.connection.eventLoop.inEventLoop {
            event(self.connection.value, self.number)
        } else {
            self.later(event)
        }
    }

    private func later(_ event: @escaping @Sendable (ClientConnection, UInt64) -> Void) {
        self.mail.post { [connection, number] in event(connection.value, number) }
    }
}
