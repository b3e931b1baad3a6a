import LarderHTTP
import NIOCore
import Synchronization

/// An upstream whose origin is the test: it records each fetch and says what the test tells it to.
final class ScriptedUpstream: Upstream {
    final class Fetch: UpstreamFetch {
        struct State: ~Copyable {
            var resumed = 0
            var cancelled = false
            var mayEnd = false
            var onCancel: (@Sendable () -> Void)?
        }

        let request: Request
        let body: (any BodySource)?
        let receiver: any UpstreamReceiver
        private let state = Mutex(State())

        init(request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver) {
            self.request = request
            self.body = body
            self.receiver = receiver
        }

        var resumed: Int { self.state.withLock { $0.resumed } }
        var isCancelled: Bool { self.state.withLock { $0.cancelled } }
        /// It may end for another that waits for its connection.
        var mayEnd: Bool { self.state.withLock { $0.mayEnd } }
        func mayEndForAnother() { self.state.withLock { $0.mayEnd = true } }
        func resume() { self.state.withLock { $0.resumed += 1 } }
        func cancel() {
            let then = self.state.withLock { state in
                state.cancelled = true
                return state.onCancel.take()
            }
            then?()
        }

        /// What is to happen inside the next `cancel`.
        func onCancel(_ work: @escaping @Sendable () -> Void) {
            self.state.withLock { $0.onCancel = work }
        }

        // What the origin says.

        func informational(_ fields: Fields) {
            self.receiver.upstream(
                informational: ResponseHead(status: StatusCode(103), fields: fields))
        }

        @discardableResult
        func head(
            _ status: UInt16, _ fields: Fields = Fields(), length: BodyLength = .unknown
        ) -> UpstreamDemand {
            self.receiver.upstream(
                head: ResponseHead(status: StatusCode(status), fields: fields),
                bodyLength: length,
                connection: UpstreamConnectionFacts(remoteAddress: "192.0.2.1:80"))
        }

        @discardableResult
        func piece(_ text: String) -> UpstreamDemand {
            self.isCancelled ? .pause : self.receiver.upstream(piece: ByteBuffer(string: text))
        }

        @discardableResult
        func piece(bytes: Int) -> UpstreamDemand {
            self.receiver.upstream(piece: ByteBuffer(repeating: 0x61, count: bytes))
        }

        func finish(_ trailers: Fields = Fields()) {
            if !self.isCancelled { self.receiver.upstream(finished: trailers) }
        }

        func fail(_ kind: UpstreamFailure.Kind = .connectionTerminated) {
            self.receiver.upstream(failed: UpstreamFailure(kind, detail: "scripted"))
        }

        /// A whole response at once, in one call where the receiver takes that, as of a transfer
        /// that has read all of it.
        func answer(_ status: UInt16, _ fields: Fields = Fields(), _ body: String = "") {
            guard self.receiver.takesWholeResponses else {
                return self.answerInPieces(status, fields, body)
            }
            guard !self.isCancelled else { return }
            self.receiver.upstream(
                whole: WholeResponse(
                    head: ResponseHead(status: StatusCode(status), fields: fields),
                    bodyLength: .known(UInt64(body.utf8.count)),
                    connection: UpstreamConnectionFacts(remoteAddress: "192.0.2.1:80"),
                    body: ByteBuffer(string: body)))
        }

        /// The same call by call.
        func answerInPieces(_ status: UInt16, _ fields: Fields = Fields(), _ body: String = "") {
            self.head(status, fields, length: .known(UInt64(body.utf8.count)))
            if !body.isEmpty { self.piece(body) }
            self.finish()
        }
    }

    private let recorded = Mutex<[Fetch]>([])
    private let answers = Mutex<(@Sendable (Fetch) -> Void)?>(nil)

    var fetches: [Fetch] { self.recorded.withLock { $0 } }

    /// Forgets the fetches recorded so far, and whom they call.
    func forget() { self.recorded.withLock { $0 = [] } }

    /// Has the next fetch answered before `fetch` returns.
    func onFetch(_ answer: @escaping @Sendable (Fetch) -> Void) {
        self.answers.withLock { $0 = answer }
    }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        let fetch = Fetch(request: request, body: body, receiver: receiver)
        self.recorded.withLock { $0.append(fetch) }
        self.answers.withLock { $0.take() }?(fetch)
        return fetch
    }
}
