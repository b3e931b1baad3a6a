import Foundation

/// Hears a load for its task, which it keeps alive as long as the load is.
final class LoadListener: LoadObserver {
    private let task: URLSessionTask
    /// Which load of the task it is.
    private let number: Int

    /// There is somebody to be asked and told; settled when the task begins.
    private let hasDelegate: Bool

    init(task: URLSessionTask, number: Int, hasDelegate: Bool) {
        self.task = task
        self.number = number
        self.hasDelegate = hasDelegate
    }

    func load(informational response: HTTPURLResponse) {
        self.task.informed(by: response, load: self.number)
    }

    func load(sent total: Int64) {
        self.task.sent(total, load: self.number)
    }

    func load(answered answer: LoadAnswer) {
        if !self.hasDelegate, answer.storing == nil, (answer.body as? HTTPLoad)?.isWhole == true {
            if self.task.purpose.relays(answer, of: self.task, load: self.number) { return }
        }
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

    var decidesAboutStoring: Bool { self.hasDelegate && self.task.purpose.asksForStoring }
    var answersChallenges: Bool { self.hasDelegate }
    var readsMeasurement: Bool { self.hasDelegate }
    // Of the first load alone: each further one may begin in the midst of the answer to the one before.
    var mayBeAnsweredAtOnce: Bool {
        !self.hasDelegate && self.task.purpose.isDirect && self.number == 1
    }
}
