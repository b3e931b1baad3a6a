import Foundation
import Synchronization

// A data task that goes on as a download (§4.3).

extension URLSessionTask {
    /// Hands everything over to a download task: the response, the body, and what was counted.
    ///
    /// The data task is over then, without a completion of its own.
    func becomeDownload() {
        guard let session = self.session, let data = self as? URLSessionDataTask else { return }
        let purpose = DownloadPurpose()
        let download = URLSessionDownloadTask(
            TaskOrder(self.originalRequest, for: purpose), of: session)
        let legacy = self.guarded.withLock { state -> TaskState? in
            guard state.machine.settle(), state.machine.deliver() else { return nil }
            state.machine.finish()
            let legacy = state
            state.successor = download
            state.answer = nil
            state.load = nil
            return legacy
        }
        guard let legacy else { return }
        legacy.answer?.storing?.decide(nil)
        download.guarded.withLock { $0.inherit(legacy) }
        session.replace(self, by: download)
        self.send { [self] in
            session.delegates(of: self).data?.urlSession(
                session, dataTask: data, didBecome: download)
            let delegate = self.guarded.withLock { state in
                state.session = nil
                state.lane = nil
                return state.delegate.take()
            }
            withExtendedLifetime(delegate) {}
            download.receive()
        }
    }
}

extension TaskState {
    fileprivate mutating func inherit(_ other: TaskState) {
        self.machine.adopt(suspensions: other.machine.suspensions)
        self.currentRequest = other.currentRequest
        self.response = other.response
        self.delegate = other.delegate
        self.label = other.label
        self.priority = other.priority
        self.sent = other.sent
        self.expectedToSend = other.expectedToSend
        self.expectedToReceive = other.expectedToReceive
        self.clientExpectsToSend = other.clientExpectsToSend
        self.clientExpectsToReceive = other.clientExpectsToReceive
        self.lane = other.lane
        self.hasDelegate = other.hasDelegate
        self.begun = other.begun
        self.created = other.created
        self.load = other.load
        self.answer = other.answer
        self.answer?.storing = nil
        self.redirects = other.redirects
        self.unmeasured = other.unmeasured
        self.transactions = other.transactions
    }
}
