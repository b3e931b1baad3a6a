import Foundation
import Synchronization

// A data task that goes on as another kind of task (§4.3).

extension URLSessionTask {
    /// Hands its response over to a download task.
    func becomeDownload() {
        guard let session = self.session else { return }
        let order = TaskOrder(self.originalRequest, for: DownloadPurpose(for: .delegate))
        let download = URLSessionDownloadTask(order, of: session)
        self.become(download, of: session) { session, task in
            session.delegates(of: download).call(.becameDownload) {
                $0.data?.urlSession(session, dataTask: task, didBecome: download)
            }
        }
    }

    /// Hands its response over to a stream task, which reads the body.
    func becomeStream() {
        guard let session = self.session else { return }
        let lane = self.guarded.withLock { $0.lane }
        let purpose = StreamPurpose(ofResponseFor: lane ?? session.dispatcher.lane())
        var order = TaskOrder(self.originalRequest, for: purpose)
        order.content = .none
        let stream = URLSessionStreamTask(order, of: session)
        self.become(stream, of: session) { session, task in
            session.delegates(of: stream).call(.becameStream) {
                $0.data?.urlSession(session, dataTask: task, didBecome: stream)
            }
        }
    }

    /// Hands its response over, with the body of which nothing has been taken yet, to a task that hears
    /// everything from now on; it hears nothing more itself.
    ///
    /// - Parameter tell: tells the delegate of it.
    private func become(
        _ heir: URLSessionTask, of session: URLSession,
        tell: @escaping @Sendable (URLSession, URLSessionDataTask) -> Void
    ) {
        guard let answer = self.guarded.withLock({ $0.answer }) else { return }
        let handedOver = answer.withoutStoring
        let (isMine, lane) = self.guarded.withLock { state -> (Bool, DelegateLane?) in
            guard !state.machine.isSettled else { return (false, nil) }
            // At once, before anything of the load finds the successor without it; nobody else has
            // got that yet.
            heir.guarded.withLock { $0.takeOver(state, with: handedOver) }
            state.progress?.aim(at: heir)
            state.machine.giveUp()
            state.successor = heir
            state.session = nil
            state.delegate = nil
            state.load = nil
            state.superseded = []
            state.answer = nil
            state.source = nil
            state.progress = nil
            return (true, state.lane)
        }
        // Who ended the task meanwhile has dealt with the answer.
        guard isMine else { return }
        // What goes on as another kind of task is not stored.
        answer.storing?.decide(nil)
        self.purpose.handedOver()
        let isWanted = session.replace(self, by: heir)
        heir.leaveUnbegun()?.uncount()
        if !isWanted { heir.cancel() }
        guard let lane, let task = self as? URLSessionDataTask else {
            return heir.goOnAsSuccessor()
        }
        // The session may cancel it before the message is under way: its end comes behind that.
        lane.send {
            tell(session, task)
            heir.goOnAsSuccessor()
        }
    }

    private func goOnAsSuccessor() {
        self.guarded.withLock { $0.awaitsIntroduction = false }
        self.receive()
        self.deliverIfComplete()
    }
}

extension TaskMachine {
    /// Another task has what this one was about.
    mutating func giveUp() {
        guard self.settle(), self.deliver() else { return }
        self.finish()
    }
}

extension TaskState {
    /// Goes on where another task was, behind the head of its response.
    fileprivate mutating func takeOver(_ before: borrowing TaskState, with answer: LoadAnswer) {
        self.machine = before.machine
        self.currentRequest = before.currentRequest
        self.response = before.response
        self.delegate = before.delegate
        self.label = before.label
        self.priority = before.priority
        self.sent = before.sent
        self.reported = before.reported
        self.expectedToSend = before.expectedToSend
        self.expectedToReceive = before.expectedToReceive
        self.clientExpectsToSend = before.clientExpectsToSend
        self.clientExpectsToReceive = before.clientExpectsToReceive
        self.lane = before.lane
        self.hasDelegate = before.hasDelegate
        self.begun = before.begun
        self.isKept = true
        self.awaitsIntroduction = true
        self.created = before.created
        self.load = before.load
        self.superseded = before.superseded
        self.answer = answer
        // A server may answer before it has all of the content.
        self.content = before.content
        self.isContentSpent = before.isContentSpent
        self.source = before.source
        self.progress = before.progress
        self.snapshots = before.snapshots
        self.challenges = before.challenges
        self.hasWaited = before.hasWaited
        self.redirects = before.redirects
        self.unmeasured = before.unmeasured
        self.transactions = before.transactions
        self.held = before.held
    }
}
