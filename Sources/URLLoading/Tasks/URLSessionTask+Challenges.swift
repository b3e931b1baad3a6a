import Foundation
import LarderHTTP
import Synchronization

// Who asks who the task is, and what it answers (§6).

extension URLSessionTask {
    /// Works on what is known of the task's credentials; one at a time, as a task does but one thing.
    ///
    /// Not under the task's lock: storages may be the program's.
    func withChallenges<Result>(_ body: (inout ChallengeMachine) -> Result) -> Result {
        let (kept, session) = self.guarded.withLock { ($0.challenges.take(), $0.session) }
        var machine = kept ?? ChallengeMachine(storage: session?.settings.urlCredentialStorage)
        let result = body(&machine)
        let left = machine
        self.guarded.withLock { $0.challenges = left }
        return result
    }

    /// What is sent with a request before anyone asks; nil: nothing.
    func preemption(for request: URLRequest) -> LoadAuthorization? {
        let (hasMachine, session) = self.guarded.withLock { ($0.challenges != nil, $0.session) }
        // As it nearly always is: nobody has asked this task, nor any before it.
        if !hasMachine, !ChallengeMachine.mayPreempt(by: session?.settings.urlCredentialStorage) {
            return nil
        }
        return self.withChallenges { $0.preemption(for: request) }
    }

    /// Looks whether a response is a challenge, and answers it.
    ///
    /// - Returns: whether it has been taken care of; else it is an ordinary response.
    func meetChallenge(of answer: LoadAnswer, _ head: ResponseHead, to request: URLRequest) -> Bool
    {
        guard head.status.rawValue == 401 || head.status.rawValue == 407 else {
            // Where nothing was sent there is nothing to be accepted.
            if self.guarded.withLock({ $0.challenges != nil }) {
                self.withChallenges { $0.accepted(head, to: request) }
            }
            return false
        }
        let content = self.guarded.withLock { $0.content.inMemory }
        let step = self.withChallenges {
            $0.answered(
                head, to: request, content: content, response: answer.response,
                proxy: answer.proxy)
        }
        if case .deliver = step { return false }
        self.perform(step, answer)
        return true
    }

    private func perform(_ step: ChallengeStep, _ answer: LoadAnswer) {
        switch step {
        case .deliver: self.respond(with: answer)
        case .fail(let error): self.settle(.failed(error))
        // The repetition finds its answer in what is known of the task's credentials.
        case .retry: self.reload(insteadOf: answer) { _ in }
        case .ask(let challenge, let isSessionWide):
            self.ask(challenge, isSessionWide: isSessionWide) { [self] disposition, credential in
                self.perform(
                    self.withChallenges { $0.decided(disposition, credential) }, answer)
            }
        }
    }

    /// Has the delegates decide about a challenge; the answer counts once, and not after the end.
    func ask(
        _ challenge: URLAuthenticationChallenge, isSessionWide: Bool,
        then answer:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let question = self.guarded.withLock({ $0.machine.ask() }) else { return }
        let decide: ChallengeAnswer = { [self] in
            guard self.guarded.withLock({ $0.machine.answer(question) }) else { return }
            answer($0, $1)
        }
        self.tell(nil, orElse: { decide(.performDefaultHandling, nil) }) {
            task, session, delegates in
            let asksTask: AsksAboutChallenge = { challenge, decide in
                session.delegates(of: task).call(.challenge) { delegates in
                    guard let delegate = delegates.task else {
                        return decide(.performDefaultHandling, nil)
                    }
                    delegate.urlSession(
                        session, task: task, didReceive: challenge, completionHandler: decide)
                }
            }
            guard isSessionWide, let delegate = delegates.session else {
                return asksTask(challenge, decide)
            }
            challenge.passOn = asksTask
            challenge.asker = task
            DelegateCall.make(to: delegate, .sessionChallenge) {
                delegate.urlSession(session, didReceive: challenge, completionHandler: decide)
            }
        }
    }
}

private typealias ChallengeAnswer =
    @Sendable (
        URLSession.AuthChallengeDisposition, URLCredential?
    ) -> Void

private typealias AsksAboutChallenge =
    @Sendable (
        URLAuthenticationChallenge, @escaping ChallengeAnswer
    ) -> Void

extension UploadBody {
    /// The content, where it is at hand and not long: for credentials that are made of it.
    fileprivate var inMemory: [UInt8]? {
        switch self {
        case .none: []
        case .data(let data): data.count <= 1 << 20 ? Array(data) : nil
        case .file, .stream, .streamed: nil
        }
    }
}
