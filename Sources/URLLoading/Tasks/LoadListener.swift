import Foundation
import Synchronization

/// Hears a load for its task, which it keeps alive as long as the load is.
final class LoadListener: LoadObserver {
    private let task: URLSessionTask
    /// Which load of the task it is.
    private let number: Int

    init(task: URLSessionTask, number: Int) {
        self.task = task
        self.number = number
    }

    func load(informational response: HTTPURLResponse) {
        self.task.informed(by: response, load: self.number)
    }

    func load(sent total: Int64) {
        self.task.sent(total, load: self.number)
    }

    func load(answered answer: LoadAnswer) {
        self.task.answered(answer, load: self.number)
    }

    func load(redirectedTo request: URLRequest, by response: URLResponse) {
        self.task.redirected(to: request, by: response, load: self.number)
    }

    func load(
        challenged challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.task.challenged(challenge, load: self.number, answer: answer)
    }

    func load(failed error: URLError) {
        self.task.failed(error, load: self.number)
    }

    func load(broke error: any Error) {
        self.task.failed(error, load: self.number)
    }

    func load(measured transaction: TransactionMeasurement) {
        self.task.measured(transaction, load: self.number)
    }

    func loadWaitsForConnectivity() {
        self.task.waitsForConnectivity(load: self.number)
    }

    var decidesAboutStoring: Bool { self.task.purpose.asksForStoring && self.answersChallenges }

    /// Who hears of a task is settled when it begins.
    var answersChallenges: Bool { self.task.guarded.withLock { $0.hasDelegate } }
}
