extension URLSession {
    /// What to do about a challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// Use the credential; nil: go on without one.
        case useCredential = 0
        /// As if the delegate had no such method.
        case performDefaultHandling = 1
        /// Cancel the request (`URLError.cancelled`).
        case cancelAuthenticationChallenge = 2
        /// Ask about the next protection space; behind the last one, go on without a credential.
        case rejectProtectionSpace = 3
    }

    /// What to do with a response.
    public enum ResponseDisposition: Int, Sendable {
        /// Cancel the task.
        case cancel = 0
        /// Deliver the body.
        case allow = 1
        /// Go on as a download task.
        case becomeDownload = 2
        /// Go on as a stream task.
        case becomeStream = 3
    }

    /// What to do with a request that was put off.
    public enum DelayedRequestDisposition: Int, Sendable {
        /// Send it as it is.
        case continueLoading = 0
        /// Send the other one that is given with this.
        case useNewRequest = 1
        /// Cancel the task (`URLError.cancelled`).
        case cancel = 2
    }
}

extension URLSessionTask {
    /// Where a task is in its life.
    public enum State: Int, Sendable {
        /// It loads, or waits for its turn.
        case running = 0
        /// It was never resumed, or suspended more often than resumed since.
        case suspended = 1
        /// It was cancelled and has not completed yet.
        case canceling = 2
        /// It has nothing more to say.
        case completed = 3
    }
}

extension URLSessionConfiguration {
    /// Over several ways at once; kept and without effect on Linux.
    public enum MultipathServiceType: Int, Sendable {
        /// Over one way, the default.
        case none = 0
        /// Over a second way where the first one fails.
        case handover = 1
        /// Over whichever way answers sooner.
        case interactive = 2
        /// Over both ways, for more throughput.
        case aggregate = 3
    }
}
