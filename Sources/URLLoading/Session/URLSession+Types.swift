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
        case continueLoading = 0
        case useNewRequest = 1
        case cancel = 2
    }
}

extension URLSessionTask {
    /// Where a task is in its life.
    public enum State: Int, Sendable {
        case running = 0
        case suspended = 1
        case canceling = 2
        case completed = 3
    }
}

extension URLSessionConfiguration {
    /// Over several ways at once; kept and without effect on Linux.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }
}
