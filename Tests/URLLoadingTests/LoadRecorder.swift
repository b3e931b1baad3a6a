import Foundation
import LarderHTTP
import NIOCore
import Synchronization

@testable import LarderProcess
@testable import URLLoading

/// Stands in a task's place: notes what a loader says, and reads the body.
final class LoadRecorder: LoadObserver {
    typealias Decision = (URLSession.AuthChallengeDisposition, URLCredential?)

    /// What was said, in order, a word each.
    let said = Event<[String]>([])
    let answer = Mutex<LoadAnswer?>(nil)
    let error = Mutex<(any Error)?>(nil)
    let redirection = Mutex<URLRequest?>(nil)
    let transaction = Mutex<TransactionMeasurement?>(nil)
    private let decision: Mutex<Decision?>
    /// The answer to the last challenge, where there is no decision.
    let pending = Mutex<(@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)?>(
        nil)

    init(deciding decision: Decision? = nil) {
        self.decision = Mutex(decision)
    }

    private func note(_ word: String) { self.said.change { $0.append(word) } }

    func load(informational response: HTTPURLResponse) { self.note("informational") }
    func load(sent total: Int64) { self.note("sent \(total)") }

    func load(answered answer: LoadAnswer) {
        self.answer.withLock { $0 = answer }
        self.note("answered")
    }

    func load(redirectedTo request: URLRequest, by response: URLResponse) {
        self.redirection.withLock { $0 = request }
        self.note("redirected")
    }

    func load(
        challenged challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenged")
        if let (disposition, credential) = self.decision.withLock({ $0 }) {
            answer(disposition, credential)
        } else {
            self.pending.withLock { $0 = answer }
        }
    }

    func load(failed error: URLError) { self.load(broke: error) }

    func load(broke error: any Error) {
        self.error.withLock { $0 = error }
        self.note("failed")
    }

    func load(measured transaction: TransactionMeasurement) {
        self.transaction.withLock { $0 = transaction }
        self.note("measured")
    }

    /// Waits for a word.
    func hears(_ word: String) async throws {
        try await self.said.wait(for: word) { $0.contains(word) }
    }

    var code: URLError.Code? { (self.error.withLock { $0 } as? URLError)?.code }
    var response: URLResponse? { self.answer.withLock { $0?.response } }

    /// Reads the body to its end: its pieces, or the failure that it ended with.
    func body() async throws -> (pieces: [Data], failure: BodyFailure?) {
        try await self.hears("answered")
        guard let source = self.answer.withLock({ $0?.body }) else { return ([], .cancelled) }
        let wakes = Event(0)
        source.attach { wakes.change { $0 += 1 } }
        var seen = 0
        var pieces: [Data] = []
        while true {
            switch source.next() {
            case .piece(let piece): pieces.append(Data(piece.readableBytesView))
            case .pending:
                let before = seen
                try await wakes.wait(for: "more of a body") { $0 > before }
                seen += 1
            case .end: return (pieces, nil)
            case .failed(let failure): return (pieces, failure)
            }
        }
    }
}

extension LoadOrder {
    /// A load of a task that does nothing by itself.
    static func of(_ request: URLRequest, body: UploadSource? = nil) -> LoadOrder {
        LoadOrder(request: request, task: URLSessionDataTask(), body: body)
    }

    static func of(_ url: String) throws -> LoadOrder {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        return .of(URLRequest(url: url))
    }
}
