import Foundation
import LarderHTTP
import NIOCore
import Synchronization

@testable import LarderProcess
@testable import URLLoading

/// Stands for a task: begins a load, hears what comes of it, and pulls its body.
final class LoadProbe: LoadObserver {
    struct Heard: Sendable {
        var calls: [String] = []
        var answer: LoadAnswer?
        var body: [UInt8] = []
        var bodyEnd: BodyStep?
        var error: URLError?
        var sent: Int64 = 0
        var measured: TransactionMeasurement?
        var challenges = 0

        var status: Int? { (self.answer?.response as? HTTPURLResponse)?.statusCode }
        var text: String { String(decoding: self.body, as: UTF8.self) }
    }

    typealias Answering =
        @Sendable (URLAuthenticationChallenge) -> (
            URLSession.AuthChallengeDisposition, URLCredential?
        )

    let heard = Event(Heard())
    let answersChallenges: Bool
    private let readsBody: Bool
    private let answering: Answering?
    private let pulling = Mutex((isPulling: false, isWoken: false))

    init(readsBody: Bool = true, answering: Answering? = nil) {
        self.readsBody = readsBody
        self.answering = answering
        self.answersChallenges = answering != nil
    }

    private func note(_ call: String, _ change: (inout Heard) -> Void = { _ in }) {
        self.heard.change { heard in
            heard.calls.append(call)
            change(&heard)
        }
    }

    func load(informational response: HTTPURLResponse) {
        self.note("informational \(response.statusCode)")
    }

    func load(sent total: Int64) { self.heard.change { $0.sent = total } }

    func load(answered answer: LoadAnswer) {
        self.note("answered") { $0.answer = answer }
        guard self.readsBody else { return }
        answer.body.attach { [weak self] in self?.pull(answer.body) }
        self.pull(answer.body)
    }

    func load(redirectedTo request: URLRequest, by response: URLResponse) {
        self.note("redirected")
    }

    func load(
        challenged challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenged") { $0.challenges += 1 }
        let (disposition, credential) = self.answering?(challenge) ?? (.performDefaultHandling, nil)
        answer(disposition, credential)
    }

    func load(failed error: URLError) { self.note("failed") { $0.error = error } }

    func load(measured transaction: TransactionMeasurement) {
        self.note("measured") { $0.measured = transaction }
    }

    func loadWaitsForConnectivity() { self.note("waits") }

    private func pull(_ body: any BodySource) {
        let goesOn = self.pulling.withLock { state in
            state.isWoken = true
            return !state.isPulling
        }
        guard goesOn else { return }
        while self.takesTurn() {
            var step = body.next()
            while case .piece(let piece) = step {
                self.heard.change { $0.body += Array(piece.readableBytesView) }
                step = body.next()
            }
            if case .pending = step { continue }
            self.heard.change { $0.bodyEnd = step }
        }
    }

    /// Whether there is something to ask for; else the next wake begins a turn.
    private func takesTurn() -> Bool {
        self.pulling.withLock { state in
            defer { state.isWoken = false }
            state.isPulling = state.isWoken
            return state.isWoken
        }
    }

    /// Waits for the last call.
    func ended() async throws -> Heard {
        try await self.heard.wait(for: "the end of a load") { $0.measured != nil }
        return self.heard.value
    }
}

extension SessionEngine {
    /// Performs one load to its end.
    func heard(
        _ request: URLRequest, body: (any BodySource)? = nil, length: Int64? = nil,
        change: (inout LoadOrder) -> Void = { _ in }
    ) async throws -> LoadProbe.Heard {
        let probe = LoadProbe()
        var order = LoadOrder(request: request, task: URLSessionTask())
        if let body { order.body = UploadSource(source: body, length: length) }
        change(&order)
        let load = self.load(order, observer: probe)
        defer { withExtendedLifetime(load) {} }
        return try await probe.ended()
    }

    func heard(_ text: String) async throws -> LoadProbe.Heard {
        try await self.heard(request(text))
    }
}

func request(_ text: String) -> URLRequest {
    URLRequest(url: URL(string: text) ?? URL(fileURLWithPath: "/"))
}

/// Content that lies in memory, in pieces.
final class PiecesSource: BodySource {
    private let pieces: Mutex<[[UInt8]]>
    let reads = Event(0)
    let isCancelled = Event(false)

    init(_ pieces: String...) {
        self.pieces = Mutex(pieces.map { Array($0.utf8) })
    }

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        self.reads.change { $0 += 1 }
        let piece = self.pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        return piece.map { .piece(ByteBuffer(bytes: $0)) } ?? .end(trailers: Fields())
    }

    func cancel() { self.isCancelled.change { $0 = true } }
}
